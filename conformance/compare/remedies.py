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

from conformance.compare.evidence import Object, full_name, key_of, name_of
from conformance.compare.whatif import (
    Case,
    consumers_of,
    cordon_node,
    find_fitting_node,
    free_claim,
)
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

_MOST = 64  # changes of one kind
_SHOWN = 3
_GROUPS, _ALIKE = 16, 3  # kinds of nodes, and nodes of each, that are tried


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
    case: Case, explanation: Explanation, alike: Iterable[Sequence[str]], seconds: float
) -> list[Remedy]:
    """Return the smallest change of each kind that helps, from the least; else the smallest two.

    ``alike``: names of nodes that lack the same; a few of each are tried.

    Raises InputError: an object has not the form of its kind.
    """
    until = time.monotonic() + seconds
    nodes = {name for names in islice(alike, _GROUPS) for name in names[:_ALIKE]}
    explanation = Explanation(tuple(report for report in explanation.nodes if report.node in nodes))
    case = replace(case, snapshot=restrict_to_nodes(case.snapshot, nodes))
    changes = sorted(_changes(case, explanation), key=lambda change: change.cost)
    proved: dict[int, Remedy] = {}
    for change in changes:
        if change.cost not in proved and len(proved) < _SHOWN and time.monotonic() < until:
            node = find_fitting_node(change.apply(case), until)
            if node is not None:
                proved[change.cost] = Remedy(change.text, node)
    pairs = combinations(changes[:_MOST] if not proved else (), 2)
    for first, second in sorted(pairs, key=lambda pair: pair[0].cost + pair[1].cost):
        if time.monotonic() > until:
            break
        node = find_fitting_node(second.apply(first.apply(case)), until)
        if node is not None:
            return [Remedy(f"{first.text}, and {second.text}", node)]
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
    """Return what allocations on some nodes depend on: a node has no part in others' own slices."""
    slices = [
        item
        for item in snapshot.slices
        if not item["spec"].get("nodeName") or item["spec"]["nodeName"] in nodes
    ]
    pools = {(item["spec"]["driver"], item["spec"]["pool"]["name"]) for item in slices}
    return replace(
        snapshot,
        slices=tuple(slices),
        nodes=tuple(node for node in snapshot.nodes if name_of(node) in nodes),
        allocated=tuple(
            claim
            for claim in snapshot.allocated
            if any((item["driver"], item["pool"]) in pools for item in results_of(claim))
        ),
    )


def _changes(case: Case, explanation: Explanation) -> Iterator[Change]:
    devices = {
        f"{item.driver}/{item.pool}/{device.name}": (item.driver, device.raw)
        for item in map(ResourceSlice.from_dict, case.snapshot.slices)
        for device in item.devices
    }
    for claim_index, claim in enumerate(case.claims):
        for number, request in enumerate(claim["spec"]["devices"].get("requests") or ()):
            name = f"request {request['name']} of claim {'/'.join(key_of(claim))}"
            # Of alternatives, the first is changed.
            body = request.get("exactly") or (request.get("firstAvailable") or [{}])[0]
            for cost, text, fields in _request_changes(case, body, explanation, devices):
                yield Change(
                    cost, f"{name} {text}", partial(_change_request, claim_index, number, fields)
                )
    for node in case.snapshot.nodes:
        yield from _node_changes(node)
    in_use = find_holders(case, explanation)
    near = sorted(
        case.snapshot.allocated,
        key=lambda allocated_claim: full_name(allocated_claim) not in in_use,
    )
    for claim in near[:_MOST]:
        name, pods = full_name(claim), consumers_of(claim)
        text = (
            f"pod {' and pod '.join(pods)} ended" if pods else f"unused claim {name} were deleted"
        )
        yield Change(POD, text, partial(_free_in_case, name))


def _free_in_case(claim: str, case: Case) -> Case:
    return replace(case, snapshot=free_claim(case.snapshot, claim))


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
            :_MOST
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


def _change_request(claim_index: int, number: int, fields: Object, case: Case) -> Case:
    """Return the case with fields of a request changed; of alternatives, those of the first."""
    claim = case.claims[claim_index]
    devices = claim["spec"]["devices"]
    requests = list(devices["requests"])
    request = requests[number]
    if request.get("exactly"):
        requests[number] = {**request, "exactly": {**request["exactly"], **fields}}
    else:
        first, *other_alternatives = request["firstAvailable"]
        requests[number] = {**request, "firstAvailable": [{**first, **fields}, *other_alternatives]}
    changed = {**claim, "spec": {**claim["spec"], "devices": {**devices, "requests": requests}}}
    return replace(
        case, claims=(*case.claims[:claim_index], changed, *case.claims[claim_index + 1 :])
    )


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
