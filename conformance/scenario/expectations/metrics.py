"""``metrics``: what a component counts about DRA is as it must be, or has grown by so much."""

from __future__ import annotations

from typing import Any

from pydantic import Field, model_validator

from conformance.scenario.base import Strict
from conformance.scenario.documents.validate import hint
from conformance.scenario.expectations.base import Cluster, Known, Seen, Timed
from conformance.scenario.metrics import MetricOf
from conformance.seam.abilities import Ability, metrics_ability
from kube.observations import METRICS, PREPARED, total


class Metrics(MetricOf):
    """A metric, and what its value, or with `grownSince` its growth, must be."""

    at_least: float | None = None
    at_most: float | None = None
    exactly: float | None = Field(
        default=None, description="for growth only where no one else uses the cluster"
    )

    @model_validator(mode="after")
    def _bounded(self) -> Metrics:
        if self.at_least is None and self.at_most is None and self.exactly is None:
            raise ValueError("give atLeast, atMost or exactly")
        return self

    def holds(self, value: float) -> bool:
        return (
            (self.at_least is None or value >= self.at_least)
            and (self.at_most is None or value <= self.at_most)
            and (self.exactly is None or value == self.exactly)
        )

    def wanted(self) -> str:
        bounds = {"at least": self.at_least, "at most": self.at_most, "exactly": self.exactly}
        return " and ".join(
            f"{word} {value:g}" for word, value in bounds.items() if value is not None
        )


class MetricsExpectation(Timed):
    """What a component counts (needs the ability `kubelet-metrics` or `metrics:<component>`)."""

    metrics: Metrics

    @property
    def counted(self) -> MetricOf | None:
        return self.metrics if self.metrics.grown_since else None

    def describe(self) -> str:
        wanted = self.metrics
        grown = f"grown by {wanted.wanted()} since step {wanted.grown_since}"
        return f"{wanted.told()} {grown if wanted.grown_since else wanted.wanted()}"

    def evaluate(self, cluster: Cluster) -> Seen:
        wanted = self.metrics
        observed: dict[str, Any] = {"metrics": wanted.name, "component": wanted.component}
        value = cluster.metric(wanted)
        if value is None:
            return Seen(False, f"{wanted.component} cannot be asked for its metrics now", observed)
        observed["fits"] = wanted.holds(value)
        found = f"it has grown by {value:g}" if wanted.grown_since else f"it is {value:g}"
        return Seen(wanted.holds(value), found, observed)

    def lint(self, known: Known) -> None:
        wanted = self.metrics
        theirs = {name for name, item in METRICS.items() if wanted.component in item.components}
        if wanted.name not in theirs:
            text = f"{wanted.component} has no metric {wanted.name!r} about DRA"
            known.wrong(("metrics", "name"), f"{text}; {hint(wanted.name, theirs)}")
        else:
            labels = METRICS[wanted.name].labels
            for label in sorted({*wanted.labels} - labels):
                text = f"not every minor has the label {label!r}; {hint(label, labels)}"
                known.wrong(("metrics", "labels", label), text)
        if wanted.grown_since is not None:
            known.step(("metrics", "grownSince"), wanted.grown_since)
        if wanted.node_of is not None:
            known.named(("metrics", "nodeOf"), "Pod", wanted.node_of)
        known.needed(("metrics",), "ability", metrics_ability(wanted.component))
        if wanted.component == "kubelet":
            known.needed(("metrics",), "kubelet")


class Prepared(Strict):
    """A node, and how many claims of the driver its kubelet must have prepared."""

    node: str = Field(description="the node's name, for example ${worker.name}")
    driver: str | None = Field(
        default=None, description="of which driver; another one is ${other.driver}"
    )
    at_least: int = Field(default=0, ge=0, description="so many of them")


class PreparedExpectation(Timed):
    """The kubelet has no claim prepared that nobody uses (needs the ability `kubelet-metrics`)."""

    # ``driver_name="<any>"`` is always there, a driver only while it has claims
    # (pkg/kubelet/cm/dra/claiminfo.go). The gauge counts what the driver confirmed, so it does not
    # show a driver that only says that it unprepared a claim.

    prepared: Prepared

    def describe(self) -> str:
        least = f"{self.prepared.at_least} or more claims" if self.prepared.at_least else "claims"
        least += f" of {self.prepared.driver}" if self.prepared.driver else ""
        return f"{least} prepared on {self.prepared.node}, none that is not in use"

    def evaluate(self, cluster: Cluster) -> Seen:
        node, least = self.prepared.node, self.prepared.at_least
        if self.prepared.driver is not None:
            cluster = cluster.of_driver(self.prepared.driver)
        profile = cluster.profile
        assert profile is not None, "scenarios of this tier run with a driver profile"
        in_use = cluster.observe.claims_in_use(node, profile.driver)
        samples = cluster.observe.samples("kubelet", PREPARED, node)
        observed: dict[str, Any] = {"prepared": cluster.canonical(node), "atLeast": least}
        if not samples:
            return Seen(
                False, f"the kubelet of {node} does not report what it has prepared", observed
            )
        prepared = int(total(samples, {"driver_name": profile.driver}))
        observed["fits"] = least <= prepared <= in_use
        found = f"the kubelet has prepared {prepared} claims, and {in_use} are in use there"
        return Seen(least <= prepared <= in_use, found, observed)

    def lint(self, known: Known) -> None:
        known.needed(("prepared",), "ability", Ability.KUBELET_METRICS)
        known.needed(("prepared",), "trait", "nodeLocal")
        known.needed(("prepared",), "kubelet")
