"""Metrics as scenarios name them."""

from __future__ import annotations

from pydantic import Field, model_validator

from conformance.scenario.base import Strict
from kube.observations import Component


class MetricOf(Strict):
    """A metric of a component: the sum of its series with these labels."""

    component: Component
    node: str | None = Field(default=None, description="the kubelet's, such as ${worker.name}")
    node_of: str | None = Field(default=None, description="the kubelet is that of this pod's node")
    name: str = Field(description="as Kubernetes 1.37 has it; older minors' names are known")
    labels: dict[str, str] = Field(
        default_factory=dict, description="all series that have these are added up"
    )
    grown_since: str | None = Field(
        default=None,
        description="name of an earlier step: by how much it has grown since that step began",
    )

    @model_validator(mode="after")
    def _check_node(self) -> MetricOf:
        named = [name for name in (self.node, self.node_of) if name is not None]
        if len(named) != (1 if self.component == "kubelet" else 0):
            raise ValueError("a kubelet is named by node or nodeOf, any other component by neither")
        return self

    def describe(self) -> str:
        """Return the metric in a line, the same for all that ask for the same."""
        where = self.node or (f"{self.node_of}'s node" if self.node_of else "")
        labels = ", ".join(f"{name}={value}" for name, value in sorted(self.labels.items()))
        metric = f"{self.name}{{{labels}}}" if labels else self.name
        return f"{metric} of {self.component}" + (f" on {where}" if where else "")
