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
from conformance.scenario.expectations.base import Cluster
from conformance.scenario.expectations.container_base import ContainersExpectation, SeenBy, Views
from conformance.scenario.expectations.container_identity import (
    find_published_device,
    list_allocated,
)
from conformance.scenario.lint_context import LintContext
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
        shown_name = self.environment.config or f"claim {self.environment.claim}"
        preposition = "without" if self.environment.absent else "with"
        return (
            f"{', '.join(self.environment.seen_by)} {preposition} the environment of {shown_name}"
        )

    def find_problems(self, views: Views, cluster: Cluster) -> list[str]:
        assert cluster.profile is not None, "scenarios with containers run with a driver profile"
        probe = cluster.profile.spec.probe
        if self.environment.claim is not None:
            return _explain_wrong_claims(
                self.environment.claim, probe.claim_env or "", views, cluster
            )
        variables = probe.config_env.get(str(self.environment.config))
        if variables is None:
            return [f"the driver profile has no probe.configEnv.{self.environment.config}"]
        problems = []
        for entry, view in views.items():
            missing = _explain_missing_config(entry, variables, view)
            if not self.environment.absent:
                problems += missing
            elif not missing:
                problems.append(
                    f"{entry} shows config {self.environment.config}, which is not for it"
                )
        return problems

    def lint(self, lint: LintContext) -> None:
        super().lint(lint)
        if self.environment.config is not None:
            lint.requires(("environment", "config"), "config", self.environment.config)
        else:
            lint.expects_pod_claim(
                ("environment", "claim"), self.environment.pods, str(self.environment.claim)
            )


def _explain_missing_config(
    entry: str, variables: Mapping[str, str], view: ContainerView
) -> list[str]:
    """Return which variables of a configuration a container lacks, or has with other values."""
    problems = []
    for pattern, value in variables.items():
        values = {
            name: value_found
            for name, value_found in view.environment.items()
            if re.fullmatch(pattern.removeprefix("^").removesuffix("$"), name)
        }
        if not values or any(value_found != value for value_found in values.values()):
            problems.append(f"{entry} has {values or 'nothing'} for {pattern} (expected {value!r})")
    return problems


def _explain_wrong_claims(name: str, pattern: str, views: Views, cluster: Cluster) -> list[str]:
    """Return where the uid of the pod's claim is not in the environment, or another is, too."""
    problems = []
    for entry, view in views.items():
        lines = (f"{key}={value}" for key, value in view.environment.items())
        shown_uids = {
            match["claim"] for match in (re.match(pattern, line) for line in lines) if match
        }
        uid = cluster.claim_uid(entry.partition("/")[0], name)
        if shown_uids != {uid}:
            problems.append(f"{entry} shows {sorted(shown_uids) or 'no claim'}, its claim is {uid}")
    return problems


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

    def find_problems(self, views: Views, cluster: Cluster) -> list[str]:
        problems = {
            entry: self._find_problem(entry.partition("/")[0], view.outputs, cluster)
            for entry, view in views.items()
        }
        return [f"{entry}: {problem}" for entry, problem in problems.items() if problem]

    def _find_problem(self, pod: str, files: Mapping[str, str], cluster: Cluster) -> str:
        expected = self.metadata
        claim = cluster.claim_of(pod, expected.claim)
        if claim is None or cluster.profile is None:
            return f"claim {expected.claim} is not there"
        driver, name = cluster.profile.driver, claim["metadata"]["name"]
        # A generated claim has a name that no container can know.
        is_generated = "resource.kubernetes.io/pod-claim-name" in claim["metadata"].get(
            "annotations", {}
        )
        folder = (
            f"resourceclaimtemplates/{expected.claim}" if is_generated else f"resourceclaims/{name}"
        )
        path = f"{METADATA}/{folder}/{expected.request}/{driver}-metadata.json"
        if path not in files:
            return f"there is no file {path}; there are {sorted(files) or 'none'}"
        try:
            document, _ = json.JSONDecoder().raw_decode(files[path])
            uid = document["metadata"]["uid"]
            [request] = document["requests"]
            shown_devices = {
                (device["pool"], device["name"]): device for device in request["devices"]
            }
        except (ValueError, KeyError, TypeError) as error:
            return f"{path} is not DeviceMetadata: {error!r}"
        if (uid, request.get("name")) != (claim["metadata"]["uid"], expected.request):
            return f"{path} is for request {request.get('name')!r} of claim {uid!r}"
        allocated = {
            (min(held_device.device.pools), held_device.device.name): held_device.device
            for held_device in list_allocated(claim, driver, [expected.request])
        }
        if shown_devices.keys() != allocated.keys():
            return f"{path} has devices {sorted(shown_devices)}, allocated are {sorted(allocated)}"
        for key, device in allocated.items():
            attributes = shown_devices[key].get("attributes") or {}
            published = find_published_device(device, cluster).get("attributes") or {}
            for attribute in expected.attributes:
                if attribute in published and attributes.get(attribute) != published[attribute]:
                    return (
                        f"{path} says of {device} that {attribute} is {attributes.get(attribute)},"
                        f" its ResourceSlice {published[attribute]}"
                    )
        return ""

    def lint(self, lint: LintContext) -> None:
        super().lint(lint)
        expected, pods = self.metadata, self.metadata.pods
        lint.expects_pod_claim(("metadata", "claim"), pods, expected.claim)
        lint.expects_request(("metadata", "request"), expected.request, None, pods, expected.claim)
        lint.requires(("metadata",), "trait", "deviceMetadata")
