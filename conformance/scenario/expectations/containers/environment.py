"""``environment``: a driver's configuration shows in containers."""

from __future__ import annotations

import re
from collections.abc import Mapping

from pydantic import Field, model_validator

from conformance.scenario.expectations.base import Cluster, Known
from conformance.scenario.expectations.containers.base import ContainersExpectation, SeenBy, Views
from conformance.scenario.observation import ContainerView


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

    @property
    def wanted(self) -> Environment:
        return self.environment

    @property
    def about(self) -> str:
        return self.wanted.config or str(self.wanted.claim)

    def describe(self) -> str:
        what = self.wanted.config or f"claim {self.wanted.claim}"
        how = "without" if self.wanted.absent else "with"
        return f"{', '.join(self.wanted.seen_by)} {how} the environment of {what}"

    def wrong(self, views: Views, cluster: Cluster) -> list[str]:
        assert cluster.profile is not None, "scenarios with containers run with a driver profile"
        probe = cluster.profile.spec.probe
        if self.wanted.claim is not None:
            return _without_claim(self.wanted.claim, probe.claim_env or "", views, cluster)
        variables = probe.config_env.get(str(self.wanted.config))
        if variables is None:
            return [f"the driver profile has no probe.configEnv.{self.wanted.config}"]
        wrong = []
        for entry, view in views.items():
            missing = _without_config(entry, variables, view)
            if not self.wanted.absent:
                wrong += missing
            elif not missing:
                wrong.append(f"{entry} shows config {self.wanted.config}, which is not for it")
        return wrong

    def lint(self, known: Known) -> None:
        super().lint(known)
        if self.wanted.config is not None:
            known.needed(("environment", "config"), "config", self.wanted.config)
        else:
            known.pod_claim(("environment", "claim"), self.wanted.pods, str(self.wanted.claim))


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
