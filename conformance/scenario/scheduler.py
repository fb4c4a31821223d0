"""Scheduler profiles: which scheduler the pods of scenarios ask for, and what is not asked of it.

kube-scheduler words its messages and prefers nodes in ways of its own, and may give up a long
search. No API promises these, so another scheduler owes them only where its profile claims them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final, Literal

from pydantic import Field, field_validator

from conformance.scenario.base import DnsName, Named, Strict, dns_name
from conformance.scenario.documents.validate import hint, load_document, shipped_or_file
from conformance.scenario.registry import load_registry
from kube.base.errors import UsageError

OWN_WAYS: Final = ("Messages", "SchedulerFilterTimeout", "SchedulerScoring")
"""Features that are kube-scheduler's own wording or choice."""


class SchedulerSpec(Strict):
    """What the suite must know of a scheduler."""

    scheduler_name: DnsName = Field(description="spec.schedulerName of the pods that it schedules")
    description: str = ""
    source: str = Field(default="", description="repository and version that this was written for")
    claims: tuple[str, ...] = Field(
        default=(), description=f"of {', '.join(OWN_WAYS)}: what it does as kube-scheduler does"
    )
    without: dict[str, str] = Field(
        default={},
        description="feature (features.yaml) -> why it has none; its scenarios are skipped",
    )

    @field_validator("claims", "without")
    @classmethod
    def _check_features(
        cls, value: tuple[str, ...] | dict[str, str]
    ) -> tuple[str, ...] | dict[str, str]:
        features = load_registry().features
        for name in value:
            if name not in features:
                raise ValueError(f"no feature {name}; {hint(name, features)}")
        return value


class SchedulerProfile(Strict):
    """A scheduler other than the cluster's default, as ``--scheduler`` takes it."""

    api_version: Literal["dra-conformance/v1"]
    kind: Literal["SchedulerProfile"]
    metadata: Named
    spec: SchedulerSpec

    @property
    def name(self) -> str:
        """Return ``spec.schedulerName`` of its pods."""
        return self.spec.scheduler_name

    def explain_lack(self, feature: str) -> str | None:
        """Return why scenarios of a feature are not asked of it; None if they are."""
        if feature in self.spec.without:
            return f"scheduler {self.name} has no {feature}: {self.spec.without[feature]}"
        if feature in OWN_WAYS and feature not in self.spec.claims:
            return f"{feature} is kube-scheduler's own way, and no profile of {self.name} claims it"
        return None


def find_scheduler(name_or_file: str, directory: Path) -> SchedulerProfile:
    """Return a profile by its shipped name or file; else one for a scheduler of that name.

    Raises UsageError: no such file, a malformed profile, or no name of a scheduler.
    """
    file = shipped_or_file(name_or_file, directory, "scheduler profile")
    if file is not None:
        return load_document(SchedulerProfile, file, "scheduler profile")
    try:
        spec = SchedulerSpec(scheduler_name=dns_name(name_or_file))
    except ValueError as error:
        raise UsageError(
            f"--scheduler {name_or_file!r}: is neither a scheduler profile's file nor a"
            f" spec.schedulerName: {error}"
        ) from None
    return SchedulerProfile(
        api_version="dra-conformance/v1",
        kind="SchedulerProfile",
        metadata=Named(name=name_or_file),
        spec=spec,
    )
