"""``metrics``: what a component counts about DRA is as it must be, or has grown by so much."""

from __future__ import annotations

from typing import Any

from pydantic import Field, model_validator

from conformance.scenario.documents.near import hint
from conformance.scenario.expectations.base import Cluster, Known, Seen, Timed
from conformance.scenario.observation import METRICS, MetricOf, ability


class Metrics(MetricOf):
    """A metric, and what its value, or with `grownSince` its growth, must be."""

    at_least: float | None = Field(default=None, alias="atLeast")
    at_most: float | None = Field(default=None, alias="atMost")
    exactly: float | None = Field(
        default=None, description="of growth only where nobody else uses the cluster"
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
        """The bounds, in words."""
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
        known.needed(("metrics",), "ability", ability(wanted.component))
        if wanted.component == "kubelet":
            known.needed(("metrics",), "kubelet")
