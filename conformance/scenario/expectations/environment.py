"""``environment``: a driver's configuration shows in containers."""

from __future__ import annotations

import re
from collections.abc import Iterable

from pydantic import Field

from conformance.scenario.base import Strict
from conformance.scenario.expectations.base import Cluster, Known, Seen, Timed, lint_seen_by


class Environment(Strict):
    """A driver's configuration that shows in a container's environment."""

    seen_by: tuple[str, ...] = Field(
        alias="seenBy", min_length=1, description="containers as pod/container"
    )
    config: str = Field(description="name below probe.configEnv of the driver profile")


class EnvironmentExpectation(Timed):
    """A driver's configuration shows in the environment of containers."""

    environment: Environment

    @property
    def waits_for_start(self) -> bool:
        """The containers must have started."""
        return True

    def describe(self) -> str:
        """In a line."""
        containers = ", ".join(self.environment.seen_by)
        return f"{containers} with the environment of {self.environment.config}"

    def evaluate(self, cluster: Cluster) -> Seen:
        """The driver's configuration shows in each container's environment."""
        wanted = self.environment
        observed: dict[str, object] = {"environment": wanted.config}
        variables = (
            cluster.profile.spec.probe.config_env.get(wanted.config) if cluster.profile else None
        )
        if variables is None:
            found = f"the driver profile has no probe.configEnv.{wanted.config}"
            return Seen(False, found, observed)
        wrong = []
        for entry in wanted.seen_by:
            pod, _, container = entry.partition("/")
            view = cluster.observe(pod, container)
            if view is None:
                return Seen(False, f"{entry} has shown nothing yet", observed)
            for pattern, value in variables.items():
                values = {
                    name: found
                    for name, found in view.environment.items()
                    if re.fullmatch(pattern.removeprefix("^").removesuffix("$"), name)
                }
                if not values or any(found != value for found in values.values()):
                    wrong.append(
                        f"{entry} has {values or 'nothing'} for {pattern} (expected {value!r})"
                    )
        observed["fits"] = not wrong
        return Seen(not wrong, "; ".join(wrong) or "as described", observed)

    def lint(self, known: Known) -> None:
        """The containers, and the configuration."""
        lint_seen_by(known, self.environment.seen_by, "environment")
        known.needed(("environment", "config"), "config", self.environment.config)
        known.needed(("environment",), "kubelet")

    def placed(self) -> Iterable[tuple[str, int]]:
        """The pods of the containers."""
        return ((entry.partition("/")[0], 1) for entry in self.environment.seen_by)
