"""``metrics``: what a component counts about DRA is as it must be, or has grown by so much."""

from __future__ import annotations

from typing import Any

from pydantic import Field, model_validator

from conformance.scenario.base import Strict
from conformance.scenario.documents.validate import hint
from conformance.scenario.expectations.base import Cluster, Evaluation, Timed
from conformance.scenario.lint_context import LintContext
from conformance.scenario.metrics import MetricOf
from conformance.seam.abilities import Ability, metrics_ability
from kube.observations import METRICS, PREPARED, sum_samples


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

    def is_within_bounds(self, value: float) -> bool:
        return (
            (self.at_least is None or value >= self.at_least)
            and (self.at_most is None or value <= self.at_most)
            and (self.exactly is None or value == self.exactly)
        )

    def describe_bounds(self) -> str:
        bounds = {"at least": self.at_least, "at most": self.at_most, "exactly": self.exactly}
        return " and ".join(
            f"{word} {value:g}" for word, value in bounds.items() if value is not None
        )


class MetricsExpectation(Timed):
    """What a component counts (needs the ability `kubelet-metrics` or `metrics:<component>`)."""

    metrics: Metrics

    @property
    def growing_metric(self) -> MetricOf | None:
        return self.metrics if self.metrics.grown_since else None

    def describe(self) -> str:
        expected = self.metrics
        grown = f"grown by {expected.describe_bounds()} since step {expected.grown_since}"
        return (
            f"{expected.describe()} {grown if expected.grown_since else expected.describe_bounds()}"
        )

    def evaluate(self, cluster: Cluster) -> Evaluation:
        expected = self.metrics
        observed: dict[str, Any] = {"metrics": expected.name, "component": expected.component}
        value = cluster.read_metric(expected)
        if value is None:
            return Evaluation(
                False, f"{expected.component} cannot be asked for its metrics now", observed
            )
        observed["fits"] = expected.is_within_bounds(value)
        finding = f"it has grown by {value:g}" if expected.grown_since else f"it is {value:g}"
        return Evaluation(expected.is_within_bounds(value), finding, observed)

    def lint(self, lint: LintContext) -> None:
        expected = self.metrics
        component_metrics = {
            name for name, item in METRICS.items() if expected.component in item.components
        }
        if expected.name not in component_metrics:
            text = f"{expected.component} has no metric {expected.name!r} about DRA"
            lint.report_error(
                ("metrics", "name"), f"{text}; {hint(expected.name, component_metrics)}"
            )
        else:
            labels = METRICS[expected.name].labels
            for label in sorted({*expected.labels} - labels):
                text = f"not every minor has the label {label!r}; {hint(label, labels)}"
                lint.report_error(("metrics", "labels", label), text)
        if expected.grown_since is not None:
            lint.expects_step(("metrics", "grownSince"), expected.grown_since)
        if expected.node_of is not None:
            lint.expects_object(("metrics", "nodeOf"), "Pod", expected.node_of)
        lint.requires(("metrics",), "ability", metrics_ability(expected.component))
        if expected.component == "kubelet":
            lint.requires(("metrics",), "kubelet")


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

    def evaluate(self, cluster: Cluster) -> Evaluation:
        node, least = self.prepared.node, self.prepared.at_least
        if self.prepared.driver is not None:
            cluster = cluster.of_driver(self.prepared.driver)
        profile = cluster.profile
        assert profile is not None, "scenarios of this tier run with a driver profile"
        in_use = cluster.observe.claims_in_use(node, profile.driver)
        samples = cluster.observe.samples("kubelet", PREPARED, node)
        observed: dict[str, Any] = {"prepared": cluster.make_canonical(node), "atLeast": least}
        if not samples:
            return Evaluation(
                False, f"the kubelet of {node} does not report what it has prepared", observed
            )
        prepared = int(sum_samples(samples, {"driver_name": profile.driver}))
        observed["fits"] = least <= prepared <= in_use
        finding = f"the kubelet has prepared {prepared} claims, and {in_use} are in use there"
        return Evaluation(least <= prepared <= in_use, finding, observed)

    def lint(self, lint: LintContext) -> None:
        lint.requires(("prepared",), "ability", Ability.KUBELET_METRICS)
        lint.requires(("prepared",), "trait", "nodeLocal")
        lint.requires(("prepared",), "kubelet")
