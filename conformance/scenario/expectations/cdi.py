"""``cdi``: the CDI spec that the driver wrote for a claim is there, or is gone."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from conformance.scenario.base import Strict
from conformance.scenario.expectations.base import Cluster, Known, Seen, Timed


class Cdi(Strict):
    """A claim of a pod, and whether the driver's CDI spec for it is on a node."""

    pod: str
    claim: str = Field(description="name in the pod's spec.resourceClaims")
    present: bool


class CdiExpectation(Timed):
    """The CDI spec that the driver wrote for a claim of a pod (needs the ability `cdi`)."""

    cdi: Cdi

    def describe(self) -> str:
        """In a line."""
        state = "a" if self.cdi.present else "no"
        return f"{state} CDI spec for claim {self.cdi.claim} of {self.cdi.pod}"

    def evaluate(self, cluster: Cluster) -> Seen:
        """The claim's CDI spec is there, or is gone."""
        wanted = self.cdi
        observed: dict[str, Any] = {"cdi": f"{wanted.pod}/{wanted.claim}"}
        uid = cluster.claim_uid(wanted.pod, wanted.claim)
        if uid is None:
            return Seen(False, f"claim {wanted.claim} of pod {wanted.pod} was never seen", observed)
        files = list(cluster.cdi_specs(uid))
        observed["present"] = bool(files)
        found = f"CDI specs for it: {', '.join(files) or 'none'}"
        return Seen(bool(files) == wanted.present, found, observed)

    def lint(self, known: Known) -> None:
        """The pod, its claim, and the ability to see CDI specs."""
        known.named(("cdi", "pod"), "Pod", self.cdi.pod)
        known.pod_claim(("cdi", "claim"), (self.cdi.pod,), self.cdi.claim)
        known.needed(("cdi",), "ability", "cdi")
        known.needed(("cdi",), "trait", "cdiPerClaim")
        known.needed(("cdi",), "kubelet")
