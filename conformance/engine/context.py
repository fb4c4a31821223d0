"""What the steps and checks of one running scenario share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from conformance.engine.kinds import CLUSTER_SCOPED, default_version
from conformance.engine.ledger import Ledger
from conformance.engine.timing import TimedScope
from conformance.scenario.expectations import ObjectSelector, PodSelector
from conformance.scenario.model import Scenario
from conformance.scenario.profile import DriverProfile
from conformance.scenario.variables import Variables
from conformance.targets.base import Obj, Objs, Ref

POD_CLAIM_ANNOTATION = "resource.kubernetes.io/pod-claim-name"


@dataclass(frozen=True, slots=True)
class Seen:
    """The result of evaluating an expectation once.

    Attributes:
        holds: whether it is as expected.
        found: what was there, for the failure message.
        observed: the same in a form that can be compared between targets.
    """

    holds: bool
    found: str
    observed: Mapping[str, Any]


@dataclass(slots=True)
class Context:
    """One scenario in one run on one target.

    Attributes:
        claim_uids: (pod, name of the pod's claim) -> uid of the ResourceClaim, once seen.
        undecided: snapshots of pods that were seen to be pending for want of devices.
        record: whether decisions and snapshots are wanted (for comparison).
    """

    scenario: Scenario
    scope: TimedScope
    ledger: Ledger
    variables: Variables
    profile: DriverProfile | None
    record: bool = False
    claim_uids: dict[tuple[str, str], str] = field(default_factory=dict)
    undecided: list[dict[str, Any]] = field(default_factory=list)

    def get(self, kind: str, name: str, api_version: str | None = None) -> Obj | None:
        """An object of the scenario's namespace, or a cluster-scoped one."""
        namespace = None if kind in CLUSTER_SCOPED else self.scope.namespace
        return self.scope.get(Ref(api_version or default_version(kind), kind, name, namespace))

    def find(self, selector: ObjectSelector) -> Objs:
        """All objects that a selector names, by name."""
        version = selector.api_version or default_version(selector.kind)
        if selector.name is not None:
            obj = self.get(selector.kind, selector.name, version)
            found = [obj] if obj is not None else []
        else:
            found = self.scope.list(version, selector.kind, selector.labels)
        return sorted(
            (obj for obj in found if _selected(obj, selector)),
            key=lambda obj: str(obj["metadata"]["name"]),
        )

    def pods(self, selector: PodSelector) -> Objs:
        """The pods of a Job, or with labels, by name."""
        labels = selector.labels or {"batch.kubernetes.io/job-name": str(selector.job)}
        return sorted(
            self.scope.list("v1", "Pod", labels), key=lambda pod: str(pod["metadata"]["name"])
        )

    def claim_of(self, pod: str, pod_claim: str) -> Obj | None:
        """The ResourceClaim behind an entry of ``pod.spec.resourceClaims``; notes its uid."""
        found = self.get("Pod", pod)
        if found is None:
            return None
        name = None
        for entry in found["spec"].get("resourceClaims", ()):
            if entry["name"] == pod_claim:
                name = entry.get("resourceClaimName")
        for status in found.get("status", {}).get("resourceClaimStatuses", ()):
            if status["name"] == pod_claim:
                name = status.get("resourceClaimName", name)
        claim = self.get("ResourceClaim", name) if name else None
        if claim is not None:
            self.claim_uids[pod, pod_claim] = claim["metadata"]["uid"]
        return claim


def _selected(obj: Obj, selector: ObjectSelector) -> bool:
    meta = obj["metadata"]
    if selector.owned_by is not None and not any(
        owner.get("controller") and owner["name"] == selector.owned_by
        for owner in meta.get("ownerReferences", ())
    ):
        return False
    if selector.pod_claim is not None and selector.pod_claim != meta.get("annotations", {}).get(
        POD_CLAIM_ANNOTATION
    ):
        return False
    wanted = selector.labels or {}
    return all(meta.get("labels", {}).get(key) == value for key, value in wanted.items())
