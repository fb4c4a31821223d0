"""The smallest change with which claims would fit, proved: the allocator finds devices with it.

What an explanation says removed devices tells which changes could help. They are tried from the
least: what the claim asks for, then the node, then other pods; then two of them together. A change
is told only if the allocator allocates on the changed snapshot.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations, islice
from typing import Any, NamedTuple

from conformance.compare.case import (
    Case,
    Key,
    consumers_of,
    find_fitting_node,
    named_keys,
    remove_claim,
    split_by_nodes,
)
from conformance.compare.evidence import (
    Object,
    find_closest,
    full_name,
    key_of,
    mapping_field,
    name_of,
)
from conformance.compare.whatif import cordon_node, end_pod
from kube.slices import results_of
from reference_allocator.api import ResourceSlice
from reference_allocator.api.limits import ALLOCATION_RESULTS_MAX
from reference_allocator.api.quantity import parse_quantity
from reference_allocator.environment import selector_environment
from reference_allocator.explain import Explanation
from reference_allocator.explain.wording import suggest_value
from reference_allocator.snapshot import Snapshot

VALUE, COUNT, SELECTOR, TOLERATION, NODE, POD = range(6)
"""The cost of a change: how much it asks of others than whoever wrote the claim."""

_MAX_CHANGES = 64  # of one kind
_SHOWN = 3
_GROUPS, _ALIKE = 16, 3  # kinds of nodes, and nodes of each, that are tried
_MAX_CORDONED = 4
_FEW_NODES = 48  # of which all are tried


class Change(NamedTuple):
    """One change: ``text`` goes on after "would fit if"."""

    cost: int
    text: str
    apply: Callable[[Case], Case]


@dataclass(frozen=True, slots=True)
class Remedy:
    """A change with which the claims fit, and the node on which they do then."""

    change: str
    node: str


def find_remedies(
    case: Case,
    explanation: Explanation,
    alike: Iterable[Sequence[str]],
    seconds: float,
    failing: Sequence[str] = (),
) -> list[Remedy]:
    """Return the smallest change of each kind that helps, from the least; else the smallest two.

    ``alike``: names of nodes that lack the same; a few of each are tried. ``failing``: nodes with
    an error that ends the scheduler's attempt for all.

    Raises InputError: an object has not the form of its kind.
    """
    proved = prove_changes(case, explanation, alike, seconds, failing)
    return [Remedy(change, node) for change, _, node in proved]


def prove_changes(
    case: Case,
    explanation: Explanation,
    alike: Iterable[Sequence[str]],
    seconds: float,
    failing: Sequence[str] = (),
) -> list[tuple[str, Case, str]]:
    """Return text, changed case and node of what `find_remedies` tells."""
    until = time.monotonic() + seconds
    nodes = {name for names in islice(alike, _GROUPS) for name in names[:_ALIKE]}
    nodes |= set(failing)
    if len(case.snapshot.nodes) > _FEW_NODES:
        explanation = Explanation(
            tuple(report for report in explanation.nodes if report.node in nodes)
        )
        few = _leave_out_pods(restrict_to_nodes(case.snapshot, nodes))
        case = replace(case, snapshot=few)
    changes = sorted(_changes(case, explanation, failing), key=lambda change: change.cost)
    proved: dict[int, tuple[str, Case, str]] = {}
    for change in changes:
        if change.cost not in proved and len(proved) < _SHOWN and time.monotonic() < until:
            changed = change.apply(case)
            node = find_fitting_node(changed, until)
            if node is not None:
                proved[change.cost] = change.text, changed, node
    pairs = combinations(changes[:_MAX_CHANGES] if not proved else (), 2)
    for first, second in sorted(pairs, key=lambda pair: pair[0].cost + pair[1].cost):
        if time.monotonic() > until:
            break
        changed = second.apply(first.apply(case))
        node = find_fitting_node(changed, until)
        if node is not None:
            return [(f"{first.text}, and {second.text}", changed, node)]
    return list(proved.values())


def find_holders(case: Case, explanation: Explanation) -> dict[str, list[str]]:
    """Return claim ``namespace/name`` -> its devices that an explanation calls in use."""
    in_use = set(_removed_devices(explanation, "in use"))
    held: dict[str, list[str]] = {}
    for claim in case.snapshot.allocated:
        names = [f"{item['driver']}/{item['pool']}/{item['device']}" for item in results_of(claim)]
        if not in_use.isdisjoint(names):
            held[full_name(claim)] = [name for name in names if name in in_use]
    return held


def restrict_to_nodes(snapshot: Snapshot, nodes: set[str]) -> Snapshot:
    """Return what allocations on some nodes depend on.

    Claims that pods name stay, wherever their devices are: they keep these pods from other nodes.
    """
    few = [node for node in snapshot.nodes if name_of(node) in nodes]
    if not few:
        return replace(snapshot, nodes=())
    [part] = split_by_nodes(snapshot, few, len(few))
    of_pools = set(map(key_of, part.allocated))
    named = {
        key
        for pod in snapshot.pods
        if not mapping_field(pod, "spec").get("nodeName")
        for key in named_keys(pod)
    }
    allocated = (claim for claim in snapshot.allocated if key_of(claim) in named | of_pools)
    return replace(part, allocated=tuple(allocated))


def _leave_out_pods(snapshot: Snapshot) -> Snapshot:
    """Return a snapshot without the pods on other nodes that use none of its claims."""
    nodes = {"", *map(name_of, snapshot.nodes)}
    users = {pod for claim in snapshot.allocated for pod in consumers_of(claim)}
    near = tuple(
        pod
        for pod in snapshot.pods
        if (mapping_field(pod, "spec").get("nodeName") or "") in nodes or full_name(pod) in users
    )
    return replace(snapshot, pods=near or snapshot.pods)  # whether any is known counts, too


def _changes(case: Case, explanation: Explanation, failing: Sequence[str]) -> Iterator[Change]:
    devices = {
        f"{item.driver}/{item.pool}/{device.name}": (item.driver, device.raw)
        for item in map(ResourceSlice.from_dict, case.snapshot.slices)
        for device in item.devices
    }
    for claim in case.claims:
        for number, request in enumerate(claim["spec"]["devices"].get("requests") or ()):
            name = f"request {request['name']} of claim {'/'.join(key_of(claim))}"
            # Of alternatives, the first is changed.
            body = request.get("exactly") or (request.get("firstAvailable") or [{}])[0]
            for cost, text, fields in _request_changes(case, body, explanation, devices):
                yield Change(
                    cost, f"{name} {text}", partial(_change_request, key_of(claim), number, fields)
                )
    for node in case.snapshot.nodes:
        yield from _node_changes(node)
    if 0 < len(failing) <= _MAX_CORDONED:
        names = ", ".join(failing)
        text = (
            f"node {names} were cordoned" if len(failing) == 1 else f"nodes {names} were cordoned"
        )
        yield Change(NODE, text, partial(_cordon_nodes, failing))
    yield from _amount_changes(case)
    in_use = find_holders(case, explanation)
    near = sorted(
        case.snapshot.allocated,
        key=lambda allocated_claim: full_name(allocated_claim) not in in_use,
    )
    for claim in near[:_MAX_CHANGES]:
        pods = consumers_of(claim)
        if (case.pod is not None and full_name(case.pod) in pods) or _has_other_users(claim):
            continue
        if pods:
            yield Change(POD, f"pod {' and pod '.join(pods)} ended", partial(_end_pods, pods))
        elif key_of(claim) not in case.keys | named_keys(case.pod or {}):
            text = f"unused claim {full_name(claim)} were deleted"
            yield Change(POD, text, partial(_delete_claim, key_of(claim)))


def _has_other_users(claim: Object) -> bool:
    reserved = mapping_field(claim, "status").get("reservedFor") or ()
    return any(item.get("resource") != "pods" for item in reserved)


def _end_pods(pods: Sequence[str], case: Case) -> Case:
    snapshot = case.snapshot
    for pod in pods:
        snapshot = end_pod(snapshot, pod)
    return replace(case, snapshot=snapshot)


def _delete_claim(key: Key, case: Case) -> Case:
    return replace(case, snapshot=remove_claim(case.snapshot, key))


def _cordon_nodes(nodes: Sequence[str], case: Case) -> Case:
    snapshot = case.snapshot
    for node in nodes:
        snapshot = cordon_node(snapshot, node)
    return replace(case, snapshot=snapshot)


def _amount_changes(case: Case) -> Iterator[Change]:
    """Yield what containers could ask for less of, of the extended resources."""
    containers = (
        (field, index, container)
        for field in ("initContainers", "containers")
        for index, container in enumerate(case.pod_spec.get(field) or ())
    )
    for field, index, container in containers:
        requests = mapping_field(mapping_field(container, "resources"), "requests")
        for resource in sorted(requests.keys() & case.requested.keys()):
            amount = int(parse_quantity(str(requests[resource])).as_float())
            for fewer in range(min(amount - 1, ALLOCATION_RESULTS_MAX), 0, -1):
                text = f"container {container.get('name')} asked for {fewer} {resource}"
                changed = {**requests, resource: str(fewer)}
                apply = partial(_change_requests, field, index, changed)
                yield Change(COUNT, f"{text} instead of {amount}", apply)


def _change_requests(field: str, index: int, requests: Object, case: Case) -> Case:
    containers = [*case.pod_spec[field]]
    containers[index] = {**containers[index], "resources": {"requests": requests}}
    return replace(case, pod={**(case.pod or {}), "spec": {**case.pod_spec, field: containers}})


def _node_changes(node: Object) -> Iterator[Change]:
    spec, name = node.get("spec") or {}, name_of(node)
    if spec.get("unschedulable"):

        def uncordoned(case: Case) -> Case:
            return replace(case, snapshot=cordon_node(case.snapshot, name, on=False))

        yield Change(NODE, f"node {name} were uncordoned", uncordoned)
    taints = [
        taint
        for taint in spec.get("taints") or ()
        if taint.get("effect") != "PreferNoSchedule"
        and not str(taint.get("key")).startswith("node.kubernetes.io/")
    ]
    if taints:

        def tolerated(case: Case) -> Case:
            pod = case.pod or {}
            return replace(case, pod={**pod, "spec": _tolerating(case.pod_spec, taints)})

        named = ", ".join(str(taint.get("key")) for taint in taints)
        yield Change(TOLERATION, f"the pod tolerated node {name}'s taint {named}", tolerated)


def _tolerating(spec: Object, taints: Sequence[Object]) -> dict[str, Any]:
    """Return a pod's spec or a request that tolerates taints, too."""
    tolerations = [
        {"key": item.get("key"), "operator": "Exists", "effect": item.get("effect")}
        for item in taints
    ]
    return {**spec, "tolerations": [*(spec.get("tolerations") or ()), *tolerations]}


def _request_changes(
    case: Case, body: Object, explanation: Explanation, devices: Mapping[str, tuple[str, Any]]
) -> Iterator[tuple[int, str, Object]]:
    """Yield cost, text and changed fields of what a request could ask for instead."""
    classes, class_name = set(map(name_of, case.snapshot.device_classes)), body["deviceClassName"]
    near = find_closest(class_name, classes) if class_name not in classes else None
    if near:
        yield VALUE, f"named class {near} instead of {class_name}", {"deviceClassName": near}
    environment = selector_environment(case.snapshot.features, case.snapshot.kubernetes)
    selectors = body.get("selectors") or []
    for index, selector in enumerate(selectors):
        selectors_before, selectors_after = selectors[:index], selectors[index + 1 :]
        removed = _removed_devices(explanation, f"fail selector #{index}")
        other_values = {
            suggest_value(selector["cel"]["expression"], *devices[device], environment)
            for device in removed
        }
        for other in sorted(filter(None, other_values), key=lambda one: _distance(one[2], one[1]))[
            :_MAX_CHANGES
        ]:
            attribute, literal, value, expression = other
            changed = [*selectors_before, {"cel": {"expression": expression}}, *selectors_after]
            text = f"selected {attribute} {value} instead of {literal}"
            yield VALUE, text, {"selectors": changed}
        if removed or _removed_devices(explanation, f"cannot be judged by selector #{index}"):
            yield (
                SELECTOR,
                f"did not have selector #{index}",
                {"selectors": [*selectors_before, *selectors_after]},
            )
    count = body.get("count") or 1
    for fewer in range(min(count - 1, ALLOCATION_RESULTS_MAX), 0, -1):
        yield COUNT, f"asked for {fewer} instead of {count}", {"count": fewer}
    for device in _removed_devices(explanation, "tainted"):
        taints = devices[device][1].get("taints") or ()
        named = ", ".join(f"{item.get('key')}:{item.get('effect')}" for item in taints)
        yield TOLERATION, f"tolerated {named}", _tolerating(body, taints)


def _change_request(key: Key, number: int, fields: Object, case: Case) -> Case:
    """Return the case with fields of a request changed; of alternatives, those of the first."""

    def change(claim: Object) -> Object:
        devices = claim["spec"]["devices"]
        requests = list(devices["requests"])
        request = requests[number]
        if request.get("exactly"):
            requests[number] = {**request, "exactly": {**request["exactly"], **fields}}
        else:
            first, *others = request["firstAvailable"]
            requests[number] = {**request, "firstAvailable": [{**first, **fields}, *others]}
        return {**claim, "spec": {**claim["spec"], "devices": {**devices, "requests": requests}}}

    claims = tuple(
        change(claim) if key_of(claim) == key else claim for claim in case.snapshot.claims
    )
    return replace(case, snapshot=replace(case.snapshot, claims=claims))


def _removed_devices(explanation: Explanation, rule: str) -> list[str]:
    """Return the devices that a rule removed, on any node, each once."""
    devices = (
        device
        for report in explanation.nodes
        for item in report.requests
        for removal in item.removals
        if removal.rule == rule
        for device in removal.devices
    )
    return list(dict.fromkeys(devices))


def _distance(value: str, literal: str) -> float:
    """Return how far a value is from the one that was asked for; words are all equally far."""
    try:
        return abs(parse_quantity(value).as_float() - parse_quantity(literal).as_float())
    except ValueError:
        return float("inf")
