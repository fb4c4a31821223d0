"""Finds what waits in a snapshot: a pod with its claims, a claim, or all claims together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from conformance.compare.evidence import Object, claim_names, full_name, has_ended, key_of
from conformance.compare.whatif import Case
from kube.base.errors import UsageError
from kube.slices import results_of
from reference_allocator.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Waiting:
    """A pod or a claim that is asked about.

    Attributes:
        name: ``namespace/name``; several, where a snapshot does not say which pods wait.
        case: what is to be allocated; None where nothing is.
        note: why nothing is, or what keeps the pod from being scheduled beside its devices.
    """

    name: str
    case: Case | None
    note: str = ""


def all_waiting(snapshot: Snapshot) -> list[Waiting]:
    """Return every pod that waits for claims; where pods are not known, all claims together."""
    if not snapshot.pods:
        names = ", ".join(map(full_name, snapshot.claims))
        return [Waiting(names, Case(snapshot, snapshot.claims))] if snapshot.claims else []
    pending = [_waiting_pod(snapshot, pod) for pod in snapshot.pods if _is_pending(pod)]
    return [item for item in pending if item.case is not None or item.note]


def waiting_of(snapshot: Snapshot, name: str) -> Waiting:
    """Return a claim or a pod by its ``namespace/name``. Raises UsageError: there is neither."""
    for claim in (*snapshot.claims, *snapshot.allocated):
        if full_name(claim) == name:
            return _waiting_claim(snapshot, claim, name)
    for pod in snapshot.pods:
        if full_name(pod) == name:
            return _waiting_pod(snapshot, pod)
    raise UsageError(
        f"{name}: there is no ResourceClaim, and no Pod with claims of that name; give"
        " NAMESPACE/NAME"
    )


def _is_pending(pod: Object) -> bool:
    return not has_ended(pod) and not (pod.get("spec") or {}).get("nodeName")


def _waiting_claim(snapshot: Snapshot, claim: Object, name: str) -> Waiting:
    if claim in snapshot.allocated:
        return Waiting(name, None, f"is not pending: {_describe_allocation(claim)}")
    users = [
        pod
        for pod in snapshot.pods
        if key_of(pod)[0] == key_of(claim)[0] and key_of(claim)[1] in claim_names(pod)
    ]
    pending = [pod for pod in users if _is_pending(pod)]
    if snapshot.pods and not pending:
        note = "no pod waits for it: a claim gets devices when a pod that uses it is scheduled"
        return Waiting(name, Case(snapshot, (claim,)), note)
    pod = pending[0] if pending else None
    return Waiting(name, Case(snapshot, (claim,), pod), _describe_gates(pod))


def _waiting_pod(snapshot: Snapshot, pod: Object) -> Waiting:
    """Return a pod and its claims, which are allocated together."""
    name, namespace = full_name(pod), key_of(pod)[0]
    names = {(namespace, item) for item in claim_names(pod)}
    open_claims = tuple(item for item in snapshot.claims if key_of(item) in names)
    have = [item for item in snapshot.allocated if key_of(item) in names]
    notes = [*_missing_claims(snapshot, pod, {key_of(item) for item in (*open_claims, *have)})]
    if open_claims:
        notes += filter(None, [_describe_gates(pod)])
        if (pod.get("spec") or {}).get("nodeName"):
            notes.append("it names its node, so that no scheduler allocates claims for it")
        return Waiting(name, Case(snapshot, open_claims, pod), "; ".join(notes))
    if not notes:
        notes = [_describe_allocation(item) for item in have]
        notes = [f"is not pending: {'; '.join(notes)}"] if notes else ["it has no claims"]
    return Waiting(name, None, "; ".join(notes))


def _missing_claims(
    snapshot: Snapshot, pod: Object, existing: set[tuple[str, str]]
) -> Iterator[str]:
    """Yield the pod's claims that are not there, each with the reason as far as it is known."""
    namespace = key_of(pod)[0]
    templates = set(map(key_of, snapshot.templates))
    status = pod.get("status") or {}
    created_claims = {
        item.get("name"): item.get("resourceClaimName")
        for item in status.get("resourceClaimStatuses") or ()
    }
    for entry in (pod.get("spec") or {}).get("resourceClaims") or ():
        template = entry.get("resourceClaimTemplateName")
        name = entry.get("resourceClaimName") or created_claims.get(entry.get("name"))
        if name and (namespace, name) not in existing:
            yield f"there is no ResourceClaim {name}"
        elif template and not name and entry.get("name") not in created_claims:
            exists = (namespace, template) in templates
            yield (
                f"the claim of ResourceClaimTemplate {template} is not made yet"
                if exists or not templates
                else f"there is no ResourceClaimTemplate {template}"
            )


def _describe_gates(pod: Object | None) -> str:
    gates = ((pod or {}).get("spec") or {}).get("schedulingGates") or ()
    names = ", ".join(str(item.get("name")) for item in gates)
    return f"scheduling gates hold the pod: {names}" if names else ""


def _describe_allocation(claim: Object) -> str:
    devices = [f"{item['driver']}/{item['pool']}/{item['device']}" for item in results_of(claim)]
    return f"claim {key_of(claim)[1]} has {', '.join(devices) or 'no devices'}"
