"""``metadata``: the files by which a driver describes its devices to containers.

KEP-5304: one file for each request and driver, at a path that a container can know beforehand; a
stream of one object in several API versions (k8s.io/dynamic-resource-allocation, ``api/metadata``).
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from pydantic import Field

from conformance.probe import METADATA
from conformance.scenario.expectations.base import Cluster, Known
from conformance.scenario.expectations.containers.base import ContainersExpectation, SeenBy, Views
from conformance.scenario.expectations.containers.identity import allocated, published


class Metadata(SeenBy):
    """What containers can read of the devices of a request."""

    claim: str = Field(description="name in the pods' spec.resourceClaims")
    request: str
    attributes: tuple[str, ...] = Field(
        default=(), description="these are as in the device's ResourceSlice"
    )


class MetadataExpectation(ContainersExpectation):
    """A driver's metadata about the devices of a request, in containers."""

    metadata: Metadata

    @property
    def wanted(self) -> Metadata:
        return self.metadata

    @property
    def about(self) -> str:
        return self.wanted.request

    def describe(self) -> str:
        who = ", ".join(self.wanted.seen_by)
        return f"metadata of the devices of {self.wanted.claim}/{self.wanted.request} in {who}"

    def wrong(self, views: Views, cluster: Cluster) -> list[str]:
        problems = {
            entry: self._problem(entry.partition("/")[0], view.outputs, cluster)
            for entry, view in views.items()
        }
        return [f"{entry}: {problem}" for entry, problem in problems.items() if problem]

    def _problem(self, pod: str, files: Mapping[str, str], cluster: Cluster) -> str:
        wanted = self.metadata
        claim = cluster.claim_of(pod, wanted.claim)
        if claim is None or cluster.profile is None:
            return f"claim {wanted.claim} is not there"
        driver, name = cluster.profile.driver, claim["metadata"]["name"]
        # A generated claim has a name that no container can know.
        made = "resource.kubernetes.io/pod-claim-name" in claim["metadata"].get("annotations", {})
        folder = f"resourceclaimtemplates/{wanted.claim}" if made else f"resourceclaims/{name}"
        path = f"{METADATA}/{folder}/{wanted.request}/{driver}-metadata.json"
        if path not in files:
            return f"there is no file {path}; there are {sorted(files) or 'none'}"
        try:
            found, _ = json.JSONDecoder().raw_decode(files[path])
            uid = found["metadata"]["uid"]
            [request] = found["requests"]
            shown = {(one["pool"], one["name"]): one for one in request["devices"]}
        except (ValueError, KeyError, TypeError) as error:
            return f"{path} is not DeviceMetadata: {error!r}"
        if (uid, request.get("name")) != (claim["metadata"]["uid"], wanted.request):
            return f"{path} is for request {request.get('name')!r} of claim {uid!r}"
        own = {
            (min(one.pools), one.name): one for one in allocated(claim, driver, [wanted.request])
        }
        if shown.keys() != own.keys():
            return f"{path} has devices {sorted(shown)}, allocated are {sorted(own)}"
        for key, device in own.items():
            told = shown[key].get("attributes") or {}
            said = published(device, cluster).get("attributes") or {}
            for attribute in wanted.attributes:
                if attribute in said and told.get(attribute) != said[attribute]:
                    return (
                        f"{path} says of {device} that {attribute} is {told.get(attribute)},"
                        f" its ResourceSlice {said[attribute]}"
                    )
        return ""

    def lint(self, known: Known) -> None:
        super().lint(known)
        wanted, pods = self.wanted, self.wanted.pods
        known.pod_claim(("metadata", "claim"), pods, wanted.claim)
        known.request(("metadata", "request"), wanted.request, None, pods, wanted.claim)
        known.needed(("metadata",), "trait", "deviceMetadata")
