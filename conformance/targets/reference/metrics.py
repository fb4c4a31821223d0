"""The metrics of a reference's components: what they have counted, and what there is now."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from conformance.scenario.base import POD_CLAIM_ANNOTATION
from conformance.scenario.observation import CLAIMS, PREPARED, Sample
from conformance.targets.reference.counts import admin_access
from conformance.targets.reference.nodes.kubelet import Kubelet
from conformance.targets.reference.world import World
from conformance.targets.seam.values import Obj
from reference_allocator.extended import ANNOTATION


def samples(world: World, component: str, name: str, node: str | None) -> Sequence[Sample] | None:
    """See `Observation.samples`; None where the component does not run."""
    kubelet = next((item for item in world.kubelets if item.node == node), None)
    if node is not None:
        if kubelet is None:
            return None
        component = kubelet.component
    if not world.components.runs(component):
        return None
    if name == PREPARED and kubelet is not None:
        return _prepared(kubelet)
    if name == CLAIMS:
        return _claims(world.cluster.store.all("ResourceClaim"))
    return world.cluster.counts.samples(component, name)


def _prepared(kubelet: Kubelet) -> list[Sample]:
    """Follows claimsInUse of pkg/kubelet/cm/dra/claiminfo.go."""
    complete = [item for item in kubelet.dra_manager.prepared.values() if item.complete]
    counted = Counter(driver for item in complete for driver in item.devices)
    return [
        Sample({"driver_name": "<any>"}, float(len(complete))),
        *(Sample({"driver_name": name}, float(count)) for name, count in counted.items()),
    ]


def _claims(claims: Sequence[Obj]) -> list[Sample]:
    """Follows customCollector of pkg/controller/resourceclaim/controller.go."""
    counted = Counter(
        (str("allocation" in claim["status"]).lower(), admin_access(claim), _source(claim))
        for claim in claims
    )
    return [
        Sample({"allocated": allocated, "admin_access": admin, "source": source}, float(count))
        for (allocated, admin, source), count in counted.items()
    ]


def _source(claim: Obj) -> str:
    annotations = claim["metadata"].get("annotations") or {}
    if annotations.get(ANNOTATION) == "true":
        return "extended_resource"
    return "resource_claim_template" if annotations.get(POD_CLAIM_ANNOTATION) else ""
