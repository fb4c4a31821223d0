"""The smallest change with which claims would fit, proved: the allocator finds devices with it.

What an explanation says removed devices tells which changes could help. They are tried from the
least: what the claim asks for, then the node, then other pods; then two of them together. A change
is told only if the allocator allocates on the changed snapshot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, islice
from typing import Any

from conformance.compare.evidence import Object, key_of, name_of
from conformance.compare.whatif import (
    Case,
    Trial,
    consumers_of,
    cordoned,
    ended,
    freed,
    results_of,
    with_node_spec,
)
from reference_allocator.api import ResourceSlice
from reference_allocator.api.quantity import parse_quantity
from reference_allocator.environment import selector_environment
from reference_allocator.explain import Explanation
from reference_allocator.explain.wording import other_value
from reference_allocator.snapshot import Snapshot

VALUE, COUNT, SELECTOR, TOLERATION, NODE, POD = range(6)
"""The cost of a change: how much it asks of others than whoever wrote the claim."""

_MOST = 64  # changes of one kind
_SHOWN = 3
_GROUPS, _ALIKE = 16, 3


@dataclass(frozen=True, slots=True)
class Change:
    """One change: ``text`` goes on after "would fit if"; ``parts`` are told apart by ``cost``."""

    cost: int
    text: str
    apply: Callable[[Case], Case]

    def and_(self, other: Change) -> Change:
        """Both together."""
        return Change(
            self.cost + other.cost,
            f"{self.text}, and {other.text}",
            lambda case: other.apply(self.apply(case)),
        )


@dataclass(frozen=True, slots=True)
class Remedy:
    """A change with which the claims fit, and the node on which they do then."""

    text: str
    node: str


def remedies(
    case: Case, found: Explanation, alike: Iterable[Sequence[str]], seconds: float
) -> list[Remedy]:
    """The smallest change of each kind that helps, from the least; else the smallest two.

    Args:
        alike: names of nodes that lack the same; a few of each are tried.

    Raises InputError: an object has not the form of its kind.
    """
    trial = Trial(seconds)
    nodes = {name for names in islice(alike, _GROUPS) for name in names[:_ALIKE]}
    found = Explanation(tuple(report for report in found.nodes if report.node in nodes))
    case = replace(case, snapshot=_about(case.snapshot, nodes))
    changes = sorted(_changes(case, found), key=lambda change: change.cost)
    proved: dict[int, Remedy] = {}
    for change in changes:
        if len(proved) == _SHOWN:
            break
        if change.cost not in proved:
            fit = trial.fit(change.apply(case))
            if fit is not None:
                proved[change.cost] = Remedy(change.text, fit.node)
    if proved:
        return list(proved.values())
    pairs = (one.and_(other) for one, other in combinations(changes[:_MOST], 2))
    for change in sorted(pairs, key=lambda change: change.cost):
        if trial.over:
            break
        fit = trial.fit(change.apply(case))
        if fit is not None:
            return [Remedy(change.text, fit.node)]
    return []


def _about(snapshot: Snapshot, nodes: set[str]) -> Snapshot:
    """What allocations on some nodes depend on: a node has no part in others' own slices."""
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


def holders(case: Case, found: Explanation) -> dict[str, list[str]]:
    """Claim ``namespace/name`` -> the devices that it has and an explanation calls in use."""
    wanted = set(_removed(found, "in use"))
    held: dict[str, list[str]] = {}
    for claim in case.snapshot.allocated:
        names = [f"{item['driver']}/{item['pool']}/{item['device']}" for item in results_of(claim)]
        mine = [name for name in names if name in wanted]
        if mine:
            held["/".join(key_of(claim))] = mine
    return held


def _changes(case: Case, found: Explanation) -> Iterator[Change]:
    devices = {
        f"{item.driver}/{item.pool}/{device.name}": (item.driver, device.raw)
        for item in map(ResourceSlice.from_dict, case.snapshot.slices)
        for device in item.devices
    }
    yield from _of_requests(case, found, devices)
    yield from _of_nodes(case)
    pools = {
        tuple(device.split("/")[:2])
        for report in found.nodes
        for item in report.requests
        for device in (*item.left, *(one for gone in item.removals for one in gone.devices))
    }
    in_use = holders(case, found)
    near = [
        claim
        for claim in case.snapshot.allocated
        if any((item["driver"], item["pool"]) in pools for item in results_of(claim))
    ]
    near.sort(key=lambda claim: "/".join(key_of(claim)) not in in_use)
    for claim in near[:_MOST]:
        yield _without(claim)


def _without(claim: Object) -> Change:
    name, consumers = "/".join(key_of(claim)), consumers_of(claim)

    def apply(case: Case) -> Case:
        snapshot = case.snapshot
        for pod in consumers:
            snapshot = ended(snapshot, pod) if _known(snapshot, pod) else snapshot
        return replace(case, snapshot=freed(snapshot, name))

    if not consumers:
        return Change(POD, f"claim {name}, which no pod uses, were deleted", apply)
    words = f"pod {consumers[0]}" if len(consumers) == 1 else f"pods {', '.join(consumers)}"
    return Change(POD, f"{words} ended", apply)


def _known(snapshot: Snapshot, pod: str) -> bool:
    return any(pod in consumers_of(claim) for claim in snapshot.allocated)


def _of_nodes(case: Case) -> Iterator[Change]:
    for node in case.snapshot.nodes:
        spec, name = node.get("spec") or {}, name_of(node)
        if spec.get("unschedulable"):
            yield Change(
                NODE,
                f"node {name} were uncordoned",
                lambda case, name=name: replace(  # type: ignore[misc]
                    case, snapshot=cordoned(_untainted(case.snapshot, name), name, on=False)
                ),
            )
        taints = [
            taint
            for taint in spec.get("taints") or ()
            if taint.get("effect") != "PreferNoSchedule"
            and not str(taint.get("key")).startswith("node.kubernetes.io/")
        ]
        if taints and case.pod is not None:
            named = ", ".join(str(taint.get("key")) for taint in taints)
            yield Change(
                TOLERATION,
                f"the pod tolerated node {name}'s taint {named}",
                lambda case, taints=taints: replace(  # type: ignore[misc]
                    case, pod=_tolerating(case.pod or {}, "spec", taints)
                ),
            )


def _untainted(snapshot: Snapshot, node: str) -> Snapshot:
    """Without the taint that the node lifecycle controller puts on a node that is cordoned."""
    [spec] = [item.get("spec") or {} for item in snapshot.nodes if name_of(item) == node]
    taints = [
        item
        for item in spec.get("taints") or ()
        if item.get("key") != "node.kubernetes.io/unschedulable"
    ]
    return with_node_spec(snapshot, node, {"taints": taints})


def _tolerating(owner: Object, field: str, taints: Sequence[Object]) -> dict[str, Any]:
    more = [
        {"key": item.get("key"), "operator": "Exists", "effect": item.get("effect")}
        for item in taints
    ]
    part = owner.get(field) or {}
    return {**owner, field: {**part, "tolerations": [*(part.get("tolerations") or ()), *more]}}


def _of_requests(
    case: Case, found: Explanation, devices: Mapping[str, tuple[str, Any]]
) -> Iterator[Change]:
    """What each request could ask for instead; of alternatives, the first is changed."""
    environment = selector_environment(case.snapshot.features, case.snapshot.kubernetes)
    for place, claim in enumerate(case.claims):
        for number, request in enumerate(claim["spec"]["devices"].get("requests") or ()):
            body = request.get("exactly") or (request.get("firstAvailable") or [{}])[0]
            name = f"request {request['name']} of claim {'/'.join(key_of(claim))}"

            def change(
                cost: int, text: str, fields: Object, place: int = place, number: int = number
            ) -> Change:
                return Change(cost, text, lambda case: _with(case, place, number, fields))

            selectors = body.get("selectors") or []
            for index, selector in enumerate(selectors):
                removed = _removed(found, f"fail selector #{index}")
                values: dict[str, tuple[str, str, str]] = {}
                for device in removed:
                    driver, raw = devices[device]
                    other = other_value(selector["cel"]["expression"], driver, raw, environment)
                    if other is not None:
                        attribute, literal, value, expression = other
                        values[value] = attribute, literal, expression
                nearest = sorted(values.items(), key=lambda item: _distance(item[0], item[1][1]))
                for value, (attribute, literal, expression) in nearest[:_MOST]:
                    new = {"cel": {"expression": expression}}
                    yield change(
                        VALUE,
                        f"{name} selected {attribute} {value} instead of {literal}",
                        {"selectors": [*selectors[:index], new, *selectors[index + 1 :]]},
                    )
                if removed:
                    rest = [*selectors[:index], *selectors[index + 1 :]]
                    text = f"{name} did not have selector #{index}"
                    yield change(SELECTOR, text, {"selectors": rest})
            count = body.get("count") or 1
            for fewer in range(count - 1, 0, -1):
                yield change(
                    COUNT, f"{name} asked for {fewer} instead of {count}", {"count": fewer}
                )
            for device in _removed(found, "tainted"):
                taints = devices[device][1].get("taints") or ()
                more = _tolerating({"of": body}, "of", taints)["of"]["tolerations"]
                named = ", ".join(f"{item.get('key')}:{item.get('effect')}" for item in taints)
                yield change(TOLERATION, f"{name} tolerated {named}", {"tolerations": more})


def _with(case: Case, place: int, number: int, fields: Object) -> Case:
    """With some fields of a request changed; of a request with alternatives, of the first."""
    claim = case.claims[place]
    devices = claim["spec"]["devices"]
    requests = list(devices["requests"])
    request = requests[number]
    if request.get("exactly"):
        requests[number] = {**request, "exactly": {**request["exactly"], **fields}}
    else:
        first, *others = request["firstAvailable"]
        requests[number] = {**request, "firstAvailable": [{**first, **fields}, *others]}
    changed = {**claim, "spec": {**claim["spec"], "devices": {**devices, "requests": requests}}}
    return replace(case, claims=(*case.claims[:place], changed, *case.claims[place + 1 :]))


def _removed(found: Explanation, rule: str) -> list[str]:
    """The devices that a rule removed, on any node, each once."""
    devices = (
        device
        for report in found.nodes
        for item in report.requests
        for removal in item.removals
        if removal.rule == rule
        for device in removal.devices
    )
    return list(dict.fromkeys(devices))


def _distance(value: str, literal: str) -> float:
    """How far a value is from the one that was asked for; words are all equally far."""
    try:
        return abs(parse_quantity(value).as_float() - parse_quantity(literal).as_float())
    except ValueError:
        return float("inf")
