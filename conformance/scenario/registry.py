"""The lists that the suite ships: features, known issues, and named manifests.

A scenario names a feature. A known issue of Kubernetes is a failure that says nothing about a
driver. The named manifests are what is common to objects, said once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import cache
from typing import Annotated, Any, Literal, NamedTuple

from packaging.version import Version
from pydantic import Field

from conformance.data import scenarios_dir
from conformance.scenario.base import Manifest, Strict, parse_release
from conformance.scenario.documents.validate import load_document


class GateProbe(Strict):
    """An object that shows whether a feature gate is on, where nothing else does.

    It is created with dry run. With the gate off the API server drops what is behind it, so that
    something of the object is missing in its answer.
    """

    object: Manifest
    if_invalid: Literal["enabled", "disabled"] | None = Field(
        default=None,
        description="what the gate is if the object is refused as invalid; none: that is not known",
    )

    @property
    def on_if_invalid(self) -> bool | None:
        """Return whether a refusal (422) says that the gate is on; None if it says nothing."""
        return None if self.if_invalid is None else self.if_invalid == "enabled"


class Feature(Strict):
    """One DRA feature."""

    summary: str = Field(description="what it is, in a sentence")
    kep: str = Field(description="URL of the enhancement that defines it")
    gate: str | None = Field(
        default=None, description="its feature gate; none where none guards it any more"
    )
    probe: GateProbe | None = Field(
        default=None, description="how to see whether the gate is on without the server's metrics"
    )
    since: str | None = Field(
        default=None,
        description="the first Kubernetes minor in which it is on by default; none while it is off",
    )


class FeatureRegistry(Strict):
    """The features that scenarios may be about."""

    api_version: Literal["dra-conformance/v1"]
    kind: Literal["FeatureRegistry"]
    features: dict[str, Feature]


@cache
def load_registry() -> FeatureRegistry:
    """Return the registry that the suite ships, ``scenarios/features.yaml``."""
    return load_document(FeatureRegistry, scenarios_dir() / "features.yaml", "feature registry")


_Release = Annotated[str, Field(pattern=r"^1\.\d{1,3}\.\d{1,3}$")]


class Affected(Strict):
    """Patches of one minor, or of several, that have the issue."""

    first: _Release = Field(alias="from", description="the first version that has it")
    fixed: _Release | None = Field(
        default=None, alias="fixedIn", description="the first after it that has it no more; or none"
    )

    def covers_version(self, version: Version) -> bool:
        return Version(self.first) <= version and (
            self.fixed is None or version < Version(self.fixed)
        )


class ShownBy(Strict):
    """A failure that is the issue: of which scenario, and what it says."""

    scenario: str = Field(description="id, for example regressions/NAME")
    message: str = Field(min_length=10, description="a part of the message of the failure")


class RunningVersions(NamedTuple):
    """The versions of Kubernetes' components in a cluster.

    Attributes:
        others: of the API server and the kubelets.
        scheduler: of the scheduler.
    """

    others: frozenset[str]
    scheduler: str


class KnownIssue(Strict):
    """One issue, and how it shows."""

    summary: str = Field(min_length=10, description="what goes wrong, in a sentence")
    link: str = Field(
        pattern=r"^(https://|docs/found/)\S+$", description="where it is described or discussed"
    )
    affected: tuple[Affected, ...] = Field(min_length=1, description="versions that have it")
    component: Literal["kube-scheduler"] | None = Field(
        default=None, description="whose version must be affected; default: that of any component"
    )
    overlaps: bool = Field(
        default=False, description="it shows as a device in two claims, in whichever scenario"
    )
    shown_by: tuple[ShownBy, ...] = Field(
        default=(), description="failures of scenarios that are this issue"
    )
    errors: tuple[str, ...] = Field(
        default=(),
        description="parts of the scheduler's errors that are this issue, for explain and replay",
    )

    def affects(self, versions: RunningVersions) -> bool:
        """Return whether a cluster with these components has it."""
        if self.component is not None:
            return self.affects_version(versions.scheduler)
        return any(map(self.affects_version, (*versions.others, versions.scheduler)))

    def affects_version(self, version: str) -> bool:
        """Return whether a version like ``v1.37.1-gke.5`` has it; a pre-release is its release."""
        parsed_version = parse_release(version)
        return parsed_version is not None and any(
            item.covers_version(parsed_version) for item in self.affected
        )


class KnownIssues(Strict):
    """All that are known, by name."""

    api_version: Literal["dra-conformance/v1"]
    kind: Literal["KnownIssues"]
    issues: dict[str, KnownIssue]

    def list_failing_scenarios(self, versions: RunningVersions) -> frozenset[str]:
        """Return ids of the scenarios whose failures on a cluster are known."""
        issues = (issue for issue in self.issues.values() if issue.affects(versions))
        return frozenset(item.scenario for issue in issues for item in issue.shown_by)

    def match_errors(self, version: str, errors: Collection[str]) -> Iterator[KnownIssue]:
        """Yield the issues that a version has and that errors of its scheduler are."""
        for issue in self.issues.values():
            is_shown = any(part in error for part in issue.errors for error in errors)
            if is_shown and issue.affects_version(version):
                yield issue

    def match_failure(
        self, versions: RunningVersions, scenario: str, message: str, overlaps_alone: bool
    ) -> Iterator[tuple[str, KnownIssue]]:
        """Yield the issues that a failure is, with their names.

        Args:
            versions: of all components.
            overlaps_alone: all steps passed, and a device was in two claims.
        """
        for name, issue in self.issues.items():
            is_shown = any(
                item.scenario == scenario and item.message in message for item in issue.shown_by
            )
            if issue.affects(versions) and (is_shown or (overlaps_alone and issue.overlaps)):
                yield name, issue


@cache
def load_known_issues() -> KnownIssues:
    """Return the list that the suite ships, ``scenarios/known-issues.yaml``."""
    return load_document(KnownIssues, scenarios_dir() / "known-issues.yaml", "list of known issues")


Tier = Literal["allocation", "node", "device"]


class NamedManifest(Strict):
    """One kind of object that scenarios may write in short."""

    summary: str = Field(description="what one gets that says nothing but its name")
    fields: str = Field(description="where the fields beside the name go, for example spec.devices")
    manifest: dict[str, Any] = Field(description="the object, without its name")


class ManifestSet(Strict):
    """What scenarios need not write."""

    api_version: Literal["dra-conformance/v1"]
    kind: Literal["ManifestSet"]
    manifests: dict[str, NamedManifest]
    pods: dict[Tier, dict[str, Any]] = Field(description="what a pod has that does not say else")
    containers: dict[str, Any] = Field(description="what a container has that does not say else")
    device_class: str = Field(description="of a request that names none")


@cache
def load_manifests() -> ManifestSet:
    return load_document(ManifestSet, scenarios_dir() / "manifests.yaml", "set of manifests")
