"""``environment`` and ``metadata``: how a driver configures and describes devices in containers.

Metadata (KEP-5304) is one file for each request and driver, at a path that a container can know
beforehand: a stream of one object in several API versions (k8s.io/dynamic-resource-allocation,
``api/metadata``).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from pydantic import Field, model_validator

from conformance.probe import METADATA
from conformance.scenario.expectations.base import Cluster, Known
from conformance.scenario.expectations.container_base import ContainersExpectation, SeenBy, Views
from conformance.scenario.expectations.container_identity import allocated, published
from kube.observations import ContainerView


class Environment(SeenBy):
    """A driver's configuration, or a claim, that shows in a container's environment."""

    config: str | None = Field(
        default=None, description="name below probe.configEnv of the driver profile"
    )
    claim: str | None = Field(
        default=None,
        description="name in the pods' spec.resourceClaims, whose uid shows (probe.claimEnv)",
    )

    absent: bool = Field(
        default=False, description="the configuration is not what shows: it is for other requests"
    )

    @model_validator(mode="after")
    def _one(self) -> Environment:
        if (self.config is None) == (self.claim is None):
            raise ValueError("give config or claim")
        if self.absent and self.config is None:
            raise ValueError("absent is said of a config")
        return self


class EnvironmentExpectation(ContainersExpectation):
    """A driver's configuration shows in the environment of containers."""

    environment: Environment

    def describe(self) -> str:
        what = self.environment.config or f"claim {self.environment.claim}"
        how = "without" if self.environment.absent else "with"
        return f"{', '.join(self.environment.seen_by)} {how} the environment of {what}"

    def wrong(self, views: Views, cluster: Cluster) -> list[str]:
        assert cluster.profile is not None, "scenarios with containers run with a driver profile"
        probe = cluster.profile.spec.probe
        if self.environment.claim is not None:
            return _without_claim(self.environment.claim, probe.claim_env or "", views, cluster)
        variables = probe.config_env.get(str(self.environment.config))
        if variables is None:
            return [f"the driver profile has no probe.configEnv.{self.environment.config}"]
        wrong = []
        for entry, view in views.items():
            missing = _without_config(entry, variables, view)
            if not self.environment.absent:
                wrong += missing
            elif not missing:
                wrong.append(f"{entry} shows config {self.environment.config}, which is not for it")
        return wrong

    def lint(self, known: Known) -> None:
        super().lint(known)
        if self.environment.config is not None:
            known.needed(("environment", "config"), "config", self.environment.config)
        else:
            known.pod_claim(
                ("environment", "claim"), self.environment.pods, str(self.environment.claim)
            )


def _without_config(entry: str, variables: Mapping[str, str], view: ContainerView) -> list[str]:
    """Which of a configuration's variables a container does not show, or with other values."""
    wrong = []
    for pattern, value in variables.items():
        values = {
            name: found
            for name, found in view.environment.items()
            if re.fullmatch(pattern.removeprefix("^").removesuffix("$"), name)
        }
        if not values or any(found != value for found in values.values()):
            wrong.append(f"{entry} has {values or 'nothing'} for {pattern} (expected {value!r})")
    return wrong


def _without_claim(name: str, pattern: str, views: Views, cluster: Cluster) -> list[str]:
    """Where the uid of the pod's claim is not in the environment, or another is, too."""
    wrong = []
    for entry, view in views.items():
        lines = (f"{key}={value}" for key, value in view.environment.items())
        shown = {match["claim"] for match in (re.match(pattern, line) for line in lines) if match}
        uid = cluster.claim_uid(entry.partition("/")[0], name)
        if shown != {uid}:
            wrong.append(f"{entry} shows {sorted(shown) or 'no claim'}, its claim is {uid}")
    return wrong


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

    def describe(self) -> str:
        who = ", ".join(self.metadata.seen_by)
        return f"metadata of the devices of {self.metadata.claim}/{self.metadata.request} in {who}"

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
            (min(one.device.pools), one.device.name): one.device
            for one in allocated(claim, driver, [wanted.request])
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
        wanted, pods = self.metadata, self.metadata.pods
        known.pod_claim(("metadata", "claim"), pods, wanted.claim)
        known.request(("metadata", "request"), wanted.request, None, pods, wanted.claim)
        known.needed(("metadata",), "trait", "deviceMetadata")
