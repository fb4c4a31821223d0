"""``prepared``: the claims that a kubelet has prepared are those that are in use on its node.

``driver_name="<any>"`` is always there, a driver only while it has claims
(pkg/kubelet/cm/dra/claiminfo.go). The gauge counts what the kubelet asked for and the driver said
yes to: it shows a kubelet that does not unprepare and a driver that refuses to, not one that only
says that it did.
"""

from __future__ import annotations

from typing import Any

from pydantic import Field

from conformance.scenario.base import Strict
from conformance.scenario.expectations.base import Cluster, Known, Seen, Timed
from conformance.scenario.observation import PREPARED, total


class Prepared(Strict):
    """A node, and how many claims of the driver its kubelet must have prepared."""

    node: str = Field(description="the node's name, for example ${worker.name}")
    driver: str | None = Field(
        default=None, description="of which driver; another one is ${other.driver}"
    )
    at_least: int = Field(default=0, alias="atLeast", ge=0, description="so many of them")


class PreparedExpectation(Timed):
    """The kubelet has no claim prepared that nobody uses (needs the ability `kubelet-metrics`)."""

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
                False, f"the kubelet of {node} does not tell what it has prepared", observed
            )
        prepared = int(total(samples, {"driver_name": profile.driver}))
        observed["fits"] = least <= prepared <= in_use
        found = f"the kubelet has prepared {prepared} claims, and {in_use} are in use there"
        return Seen(least <= prepared <= in_use, found, observed)

    def lint(self, known: Known) -> None:
        known.needed(("prepared",), "ability", "kubelet-metrics")
        known.needed(("prepared",), "trait", "nodeLocal")
        known.needed(("prepared",), "kubelet")
