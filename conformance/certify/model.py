"""The conformance report as a document: the results, the submitter, the evidence."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Literal

import yaml
from pydantic import Field

from conformance.certify.values import (
    ComparisonSummary,
    Digest,
    Evidence,
    Hardware,
    Implementation,
    Known,
    Model,
    Number,
    Result,
    Skipped,
    Statistics,
    Suite,
    UsedProfile,
)
from conformance.scenario.base import API_VERSION
from kube.base.errors import ExitCode
from kube.values import KUBE_SCHEDULER


class _Dumper(yaml.SafeDumper):
    """A safe dumper that also writes the rarer line separators so that they are read back."""


def _represent_text(dumper: _Dumper, text: str) -> yaml.Node:
    # Plain and single-quoted scalars would break lines at these; in double quotes they are escaped.
    style = '"' if any(char in text for char in "\x85\u2028\u2029\ufeff") else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _represent_text)


class DriverCheckSummary(Model):
    """What a result of driver-check came to; every list is in the order of the checks."""

    digest: Digest
    date: str = Field(description="when it began, RFC 3339")
    result: Result = Field(description="as the verdict, in the words of profiles")
    supported_versions: tuple[str, ...] = ()
    passed: Number = Field(description="required checks that passed")
    failed: tuple[str, ...] = Field(default=(), description="required checks that failed")
    not_made: tuple[str, ...] = Field(
        default=(), description="required checks that were skipped, not run, or broke"
    )
    not_offered: tuple[str, ...] = Field(
        default=(), description="required checks of what the driver does not offer"
    )
    advised: tuple[str, ...] = Field(default=(), description="recommended checks that failed")


class ProfileResult(Model):
    """What one profile came to; every list is sorted."""

    name: str
    result: Result
    statistics: Statistics
    failed: tuple[str, ...] = ()
    known: tuple[Known, ...] = ()
    error: tuple[str, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    without: tuple[Skipped, ...] = Field(
        default=(),
        description="scenarios whose rule cannot exist for the driver; they do not count",
    )
    driver_check: Result | Literal["missing"] | None = Field(
        default=None, description="of the profile's part that driver-check makes, where it has one"
    )
    lost: tuple[str, ...] = ()
    not_selected: tuple[str, ...] = Field(
        default=(), description="scenarios of the profile that were not selected for the run"
    )
    unproven: tuple[str, ...] = Field(
        default=(), description="skipped scenarios of features that the driver's profile claims"
    )
    comparison: ComparisonSummary | None = None


class Support(StrEnum):
    """What a run shows of a feature."""

    SUPPORTED = "supported"
    """Each of its scenarios was run, something passed, and all that was skipped may be."""

    UNSUPPORTED = "unsupported"
    """Everything was skipped, and the driver's profile does not claim the feature."""

    FAILED = "failed"
    """A scenario failed or broke a rule; or, where the feature is claimed, was skipped."""

    NOT_TESTED = "not tested"
    """Nothing failed, and something was not selected, lost, broken off, or of the core skipped."""


class FeatureResult(Model):
    """What a run shows of one feature of DRA; every list is sorted."""

    name: str
    summary: str
    kep: str = Field(description="URL of the enhancement")
    stage: Literal["Alpha", "Beta", "GA"] | None = Field(
        description="of its feature gate in this Kubernetes minor; none where it has no such gate"
    )
    claimed: bool = Field(description="whether the driver's profile claims it beside the core")
    support: Support
    passed: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    known: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    not_tested: tuple[str, ...] = Field(
        default=(), description="scenarios that were not selected, lost, or broken off"
    )


class Devices(Model):
    """Devices of one product that the driver published during the run."""

    product: str = Field(description="what the profile's attribute `model` says of them")
    count: Number


class Inventory(Model):
    """The cluster, as the recorded snapshots show it: numbers, and no names of machines."""

    nodes: Number = Field(description="nodes that are not the scenarios' own")
    nodes_with_devices: Number
    devices: tuple[Devices, ...]


class MetIssue(Model):
    """A known issue of Kubernetes that was met in the run; it is not held against the driver."""

    name: str
    link: str
    scenarios: tuple[str, ...]


class ConformanceReport(Model):
    """A document of kind ConformanceReport."""

    api_version: Literal["dra-conformance/v1"] = API_VERSION
    kind: Literal["ConformanceReport"] = "ConformanceReport"
    date: str = Field(description="when the run ended, RFC 3339")
    implementation: Implementation
    kubernetes_version: str
    target: str
    scheduler: str = Field(
        default=KUBE_SCHEDULER, description="spec.schedulerName of the scenarios' pods"
    )
    driver: str | None
    driver_profile: UsedProfile | None
    feature_gates: dict[str, bool] = Field(description="gates known to be on or off")
    components: dict[str, str] = Field(description="component -> version")
    inventory: Inventory | None = Field(description="none where nothing was recorded")
    simulated: tuple[str, ...] = Field(description="what was simulated, in words")
    hardware: Hardware
    suite: Suite
    evidence: Evidence
    uncertified: tuple[str, ...] = Field(
        description="why no profile can be a success, whatever passed; usually empty"
    )
    comparison: ComparisonSummary | None = Field(description="of the whole run")
    known_issues: tuple[MetIssue, ...] = ()
    driver_check: DriverCheckSummary | None = Field(
        default=None, description="none where its result was not given"
    )
    profiles: tuple[ProfileResult, ...] = Field(min_length=1)
    features: tuple[FeatureResult, ...] = Field(description="every feature that has a scenario")

    @property
    def exit_code(self) -> ExitCode:
        """That of the worst profile: failure, then inconclusive, then partial."""
        order = [1, 3, 4, 0]
        codes = [item.result.exit_code for item in self.profiles]
        return min(codes, key=order.index)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON, keys in the order of the model."""
        return self.model_dump(mode="json", by_alias=True)

    def to_yaml(self) -> str:
        """The report as a file; the same report gives the same text."""
        return yaml.dump(
            self.to_json(), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100
        )
