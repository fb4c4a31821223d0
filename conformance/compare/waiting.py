"""Finds what waits in a snapshot: a pod with its claims, a claim, or all claims together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from conformance.compare.case import (
    Case,
    Key,
    consumers_of,
    describe_resources,
    known_resources,
    named_keys,
    remove_claim,
)
from conformance.compare.evidence import (
    Object,
    find_closest,
    full_name,
    has_ended,
    key_of,
    mapping_field,
    name_of,
    named_classes,
)
from kube.base.errors import UsageError
from kube.slices import results_of
from kube.values import POD_CLAIM_ANNOTATION
from reference_allocator.api.limits import RESERVED_FOR_MAX
from reference_allocator.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Waiting:
    """A pod or a claim that is asked about.

    Attributes:
        name: ``namespace/name``; several, where a snapshot does not say which pods wait.
        case: what is to be allocated; None where nothing is, or where no node could do.
        note: why nothing is, or what keeps the pod from being scheduled beside its devices.
        pod_case: of a claim, the case of the pod that waits for it; a change must help that.
        resources: who provides the extended resources that the pod asks for.
    """

    name: str
    case: Case | None
    note: str = ""
    pod_case: Case | None = None
    resources: tuple[str, ...] = ()


def all_waiting(snapshot: Snapshot) -> list[Waiting]:
    """Return every pod that waits for claims; where pods are not known, all claims together."""
    if not snapshot.pods:
        names = ", ".join(map(full_name, snapshot.claims))
        case = Case(snapshot, frozenset(map(key_of, snapshot.claims)))
        return [Waiting(names, case)] if snapshot.claims else []
    claims = _Claims(snapshot)
    pending = [claims.find_waiting(pod) for pod in snapshot.pods if is_pending(pod)]
    return [item for item in pending if item.case is not None or item.note]


def waiting_of(snapshot: Snapshot, name: str) -> Waiting:
    """Return a pod or a claim by its ``namespace/name``; of both, the pod, with all its claims.

    Raises UsageError: there is neither.
    """
    for pod in snapshot.pods:
        if full_name(pod) == name:
            return waiting_pod(snapshot, pod)
    for claim in (*snapshot.claims, *snapshot.allocated):
        if full_name(claim) == name:
            return _find_waiting_claim(snapshot, claim, name)
    objects = (*snapshot.pods, *snapshot.claims, *snapshot.allocated)
    bare = name.rpartition("/")[2]
    same = {full_name(item) for item in objects if name_of(item) == bare}
    near = same.pop() if len(same) == 1 else find_closest(name, map(full_name, objects))
    advice = f"did you mean {near}?" if near else "give NAMESPACE/NAME"
    raise UsageError(
        f"{name}: there is no ResourceClaim, and no Pod with claims of that name; {advice}"
    )


def waiting_pod(snapshot: Snapshot, pod: Object) -> Waiting:
    """Return a pod of the snapshot, with all its claims."""
    return _Claims(snapshot).find_waiting(pod)


def is_pending(pod: Object) -> bool:
    """Return whether a pod has no node yet, and may get one."""
    return not has_ended(pod) and not mapping_field(pod, "spec").get("nodeName")


def _find_waiting_claim(snapshot: Snapshot, claim: Object, name: str) -> Waiting:
    if claim in snapshot.allocated:
        return Waiting(name, None, f"is not pending: {_describe_allocation(claim)}")
    claims = _Claims(snapshot)
    users = [
        pod
        for pod in snapshot.pods
        if key_of(pod)[0] == key_of(claim)[0] and key_of(claim) in claims.keys_of(pod)
    ]
    pending = [pod for pod in users if is_pending(pod)]
    case = Case(snapshot, frozenset({key_of(claim)}))
    notes = [*_describe_absent_classes(case)]
    if snapshot.pods and not pending:
        note = "no pod waits for it: a claim gets devices when a pod that uses it is scheduled"
        return Waiting(name, case, "; ".join((note, *notes)))
    if not pending:
        return Waiting(name, case, "; ".join(notes))
    of_pod = claims.find_waiting(pending[0])
    notes = [*filter(None, [_describe_gates(pending[0])]), *notes]
    return Waiting(name, replace(case, pod=pending[0]), "; ".join(notes), of_pod.case)


class _Claims:
    """The claims of a snapshot, by name and by whom they were made for."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    @cached_property
    def _claims(self) -> Mapping[Key, Object]:
        return {key_of(item): item for item in (*self._snapshot.claims, *self._snapshot.allocated)}

    @cached_property
    def _allocated(self) -> frozenset[Key]:
        return frozenset(map(key_of, self._snapshot.allocated))

    @cached_property
    def _templates(self) -> Mapping[Key, Object]:
        return {key_of(item): item for item in self._snapshot.templates}

    @cached_property
    def _made_claims(self) -> Mapping[tuple[str, str], Key]:
        """Uid of a pod and name of its entry -> the claim that was made for it."""
        return {
            (str(owner.get("uid")), entry): key
            for key, claim in self._claims.items()
            for entry in [_entry_of(claim)]
            for owner in mapping_field(claim, "metadata").get("ownerReferences") or ()
            if entry
        }

    def keys_of(self, pod: Object) -> frozenset[Key]:
        """Return the claims of a pod, those of which its status does not say yet, too."""
        uid = str(mapping_field(pod, "metadata").get("uid"))
        made = (
            self._made_claims.get((uid, str(entry.get("name"))))
            for entry in mapping_field(pod, "spec").get("resourceClaims") or ()
        )
        return named_keys(pod) | {key for key in made if key is not None}

    def find_waiting(self, pod: Object) -> Waiting:
        """Return a pod and its claims, which are allocated together."""
        snapshot, name = self._snapshot, full_name(pod)
        stale = mapping_field(mapping_field(pod, "status"), "extendedResourceClaimStatus")
        if stale.get("resourceClaimName") and is_pending(pod):
            # The scheduler deletes what an earlier attempt has made, and tries again.
            key = (key_of(pod)[0], str(stale["resourceClaimName"]))
            pod = {**pod, "status": {**pod["status"], "extendedResourceClaimStatus": {}}}
            snapshot = remove_claim(snapshot, key)
        keys, notes, refusals, made = set[Key](), list[str](), list[str](), list[Object]()
        for entry in mapping_field(pod, "spec").get("resourceClaims") or ():
            entry_key, note, claim = self._resolve(pod, entry)
            keys |= {entry_key} if entry_key is not None else set()
            if claim is not None:
                made.append(claim)
            notes += filter(None, [note])
        refusals = [text for key in sorted(keys) for text in self._refusals(pod, key)]
        snapshot = replace(snapshot, claims=(*snapshot.claims, *made)) if made else snapshot
        case = Case(snapshot, frozenset(keys), pod)
        resources = tuple(describe_resources(case))
        if refusals or not (keys or case.requested):
            return Waiting(name, None, "; ".join((*notes, *refusals)) or "it has no claims")
        if not case.claims and notes and not case.requested:
            return Waiting(name, None, "; ".join(notes))
        notes += filter(None, [_describe_gates(pod), _describe_group(pod)])
        if mapping_field(pod, "metadata").get("deletionTimestamp"):
            notes.append("it is being deleted, and no scheduler places it")
        notes += _describe_binding(case)
        if mapping_field(pod, "spec").get("nodeName"):
            if not case.claims:
                texts = map(_describe_allocation, case.held)
                return Waiting(name, None, f"is not pending: {'; '.join(texts)}")
            notes.append("it names its node, so that no scheduler allocates claims for it")
        notes += [*_near_resources(case), *_describe_absent_classes(case)]
        return Waiting(name, case, "; ".join(notes), resources=resources)

    def _resolve(self, pod: Object, entry: Object) -> tuple[Key | None, str, Object | None]:
        """Return an entry's claim, what there is to say, and the claim if it is not made yet."""
        namespace, entry_name = key_of(pod)[0], str(entry.get("name"))
        template = entry.get("resourceClaimTemplateName")
        statuses = {
            item.get("name"): item.get("resourceClaimName")
            for item in mapping_field(pod, "status").get("resourceClaimStatuses") or ()
        }
        name = entry.get("resourceClaimName") or statuses.get(entry.get("name"))
        if name:
            key = (namespace, str(name))
            if template and key in self._claims and not _is_made_for(self._claims[key], pod):
                return None, f"claim {name} was not made for it, but for a pod before it", None
            return (
                (key, "", None) if key in self._claims else (None, self._describe_absent(key), None)
            )
        if not template or entry_name in statuses:
            return None, "", None  # it needs none
        uid = str(mapping_field(pod, "metadata").get("uid"))
        made = self._made_claims.get((uid, entry_name))
        if made is not None:
            return made, f"claim {made[1]} is made for it and not in its status yet", None
        found = self._templates.get((namespace, str(template)))
        text = f"the claim of ResourceClaimTemplate {template} is not made yet"
        if found is None:
            absent = f"there is no ResourceClaimTemplate {template}"
            return None, absent if self._templates else text, None
        claim_name = f"{name_of(pod)}-{entry_name}"
        metadata = {"name": claim_name, "namespace": namespace, "uid": f"{uid}-{entry_name}"}
        spec = mapping_field(mapping_field(found, "spec"), "spec")
        claim = {**found, "kind": "ResourceClaim", "metadata": metadata, "spec": spec}
        return (namespace, claim_name), text, claim

    def _describe_absent(self, key: Key) -> str:
        near = find_closest(
            key[1], (name for namespace, name in self._claims if namespace == key[0])
        )
        return f"there is no ResourceClaim {key[1]}" + (f"; did you mean {near}?" if near else "")

    def _refusals(self, pod: Object, key: Key) -> Iterator[str]:
        """Yield why a claim keeps the pod from every node (PreEnqueue, PreFilter)."""
        claim = self._claims.get(key)
        if claim is None:
            return
        if mapping_field(claim, "metadata").get("deletionTimestamp"):
            yield f"claim {key[1]} is being deleted, and no pod is scheduled with it"
        users = mapping_field(claim, "status").get("reservedFor") or ()
        own = any(
            user.get("name") == (group_of(pod) if _is_group(user) else name_of(pod))
            for user in users
        )
        if key in self._allocated and len(users) >= RESERVED_FOR_MAX and not own:
            yield f"claim {key[1]} is used by {len(users)} pods, and by no more may it be"


def _is_made_for(claim: Object, pod: Object) -> bool:
    """Return whether a pod or its PodGroup controls a claim (IsForPod of resourceclaim/claim.go).

    Of what was typed by hand uids are not known, of a pod's group its name alone.
    """
    owners = mapping_field(claim, "metadata").get("ownerReferences") or ()
    controllers = [owner for owner in owners if owner.get("controller")]
    uid = str(mapping_field(pod, "metadata").get("uid") or "given")
    is_known = bool(controllers) and not uid.startswith("given")
    return not is_known or any(
        owner.get("uid") == uid
        or (owner.get("kind") == "PodGroup" and owner.get("name") == group_of(pod))
        for owner in controllers
    )


def _is_group(user: Object) -> bool:
    """Return whether an entry of ``status.reservedFor`` is a PodGroup."""
    return user.get("resource") == "podgroups"


def _describe_binding(case: Case) -> Iterator[str]:
    """Yield the conditions for which the scheduler may wait before it binds the pod (KEP-5007).

    Whether they are met is in the claim's ``status.devices``, which a snapshot has not.
    """
    for claim in case.held:
        if "/".join(key_of(case.pod or {})) in consumers_of(claim):
            for result in results_of(claim):
                if conditions := ", ".join(result.get("bindingConditions") or ()):
                    device = f"{result['driver']}/{result['pool']}/{result['device']}"
                    yield f"it is bound once {device} has the conditions {conditions}"


def _entry_of(claim: Object) -> str:
    """Return for which entry of a pod's claims a claim was made; empty: for none."""
    annotations = mapping_field(mapping_field(claim, "metadata"), "annotations")
    return str(annotations.get(POD_CLAIM_ANNOTATION) or "")


def _near_resources(case: Case) -> Iterator[str]:
    """Yield what may be meant by an extended resource that nobody provides."""
    known = known_resources(case.snapshot) if case.requested else set()
    for resource in case.requested:
        near = find_closest(resource, known) if resource not in known else None
        if near:
            yield f"nobody provides {resource}; did you mean {near}?"


def find_absent_classes(case: Case) -> list[str]:
    """Return the classes that the claims name and that are not there.

    The scheduler then tries no node (PreFilter of dynamicresources).
    """
    names = {name_of(item) for item in case.snapshot.device_classes}
    return sorted({name for claim in case.claims for name in named_classes(claim)} - names)


def _describe_absent_classes(case: Case) -> Iterator[str]:
    """Yield the classes that the claims name and that are not there, with one that may be meant."""
    for name in find_absent_classes(case):
        near = find_closest(name, map(name_of, case.snapshot.device_classes))
        yield f"there is no DeviceClass {name}" + (f"; did you mean {near}?" if near else "")


def _describe_gates(pod: Object) -> str:
    gates = mapping_field(pod, "spec").get("schedulingGates") or ()
    names = ", ".join(str(item.get("name")) for item in gates)
    return f"scheduling gates hold the pod: {names}" if names else ""


def group_of(pod: Object) -> str:
    """Return the name of the PodGroup with which a pod is placed (KEP-4671); empty: none."""
    group = mapping_field(mapping_field(pod, "spec"), "schedulingGroup")
    return str(group.get("podGroupName") or "")


def _describe_group(pod: Object) -> str:
    group = group_of(pod)
    return f"it is placed together with PodGroup {group}" if group else ""


def _describe_allocation(claim: Object) -> str:
    devices = [f"{item['driver']}/{item['pool']}/{item['device']}" for item in results_of(claim)]
    return f"claim {key_of(claim)[1]} has {', '.join(devices) or 'no devices'}"
