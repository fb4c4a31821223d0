"""``podResources``: the kubelet tells agents on its node which devices of claims containers have.

The API lists a claim that a container names as a whole, whichever of its requests the container
names (GetContainerClaimInfos in pkg/kubelet/cm/dra/manager.go).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pydantic import Field

from conformance.scenario.base import Strict
from conformance.scenario.expectations.base import Cluster, Known, Seen, Timed
from conformance.scenario.observation import ListedClaim


class PodResources(Strict):
    """Containers, and the claims that the PodResources API lists for each of them."""

    of: tuple[str, ...] = Field(min_length=1, description="containers as pod/container")
    claims: tuple[str, ...] = Field(
        description=(
            "names in the pods' spec.resourceClaims: these are listed, each with the devices that"
            " it is allocated, and no others; none: no claim is"
        )
    )
    cdi: bool = Field(default=False, description="each claim is listed with CDI devices")


class PodResourcesExpectation(Timed):
    """What the PodResources API of the kubelet lists (needs the ability `pod-resources`)."""

    pod_resources: PodResources

    @property
    def waits_for_start(self) -> bool:
        """The pods must have their claims prepared."""
        return True

    def describe(self) -> str:
        wanted = self.pod_resources
        claims = ", ".join(wanted.claims)
        what = f"the devices of {claims}" if claims else "no claim"
        cdi = ", with CDI devices" if wanted.cdi else ""
        return f"PodResources lists {what} for {', '.join(wanted.of)}{cdi}"

    def evaluate(self, cluster: Cluster) -> Seen:
        wanted = self.pod_resources
        observed: dict[str, Any] = {"podResources": list(wanted.of), "claims": list(wanted.claims)}
        wrong = []
        for entry in wanted.of:
            pod, _, container = entry.partition("/")
            listed = cluster.observe.pod_resources(pod, container)
            if listed is None:
                return Seen(False, f"the kubelet does not list {entry}", observed)
            problem = self._problem(pod, listed, cluster)
            wrong += [f"for {entry} {problem}"] if problem else []
        observed["fits"] = not wrong
        return Seen(not wrong, "; ".join(wrong) or "as allocated", observed)

    def _problem(self, pod: str, listed: Iterable[ListedClaim], cluster: Cluster) -> str:
        """What is listed otherwise than it is allocated; empty if nothing is."""
        shown = {
            (claim.namespace, claim.name): sorted(
                (d.driver, d.pool, d.device) for d in claim.devices
            )
            for claim in listed
        }
        own = {}
        for name in self.pod_resources.claims:
            claim = cluster.claim_of(pod, name)
            if claim is None:
                return f"there is no claim {name} yet"
            meta, status = claim["metadata"], claim.get("status") or {}
            devices = (status.get("allocation") or {}).get("devices") or {}
            own[meta["namespace"], meta["name"]] = sorted(
                (one["driver"], one["pool"], one["device"]) for one in devices.get("results") or ()
            )
        if shown != own:
            return f"it lists {shown or 'no claim'}; allocated is {own or 'none'}"
        bare = [claim.name for claim in listed if not any(one.cdi for one in claim.devices)]
        if self.pod_resources.cdi and bare:
            return f"it lists {', '.join(bare)} without CDI devices"
        return ""

    def lint(self, known: Known) -> None:
        wanted = self.pod_resources
        for index, entry in enumerate(wanted.of):
            name, _, container = entry.partition("/")
            known.named(("podResources", "of", index), "Pod", name)
            known.container(("podResources", "of", index), (name,), container)
            for place, claim in enumerate(wanted.claims):
                known.pod_claim(("podResources", "claims", place), (name,), claim)
        known.needed(("podResources",), "ability", "pod-resources")
        if wanted.cdi:
            known.needed(("podResources", "cdi"), "trait", "cdiPerClaim")
        known.needed(("podResources",), "kubelet")

    def placed(self) -> Iterable[tuple[str, int]]:
        return ((entry.partition("/")[0], 1) for entry in self.pod_resources.of)
