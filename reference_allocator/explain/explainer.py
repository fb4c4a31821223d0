"""The explanation why there is no allocation: how many devices there are, and what removed them.

For each node and request the devices of the request's class are counted down rule by rule, in the
order in which the search asks: in use, selectors, node, capacity, features, taints, attributes of
constraints. Where enough devices are left for every request, what is in conflict is searched for:
the smallest set of claims, or of requests of one claim, that cannot be allocated together.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, combinations, islice
from typing import Any, Final, TypeVar

from reference_allocator.allocator import Allocator
from reference_allocator.api import Node, ResourceClaim
from reference_allocator.api.reading import read_all
from reference_allocator.cluster.node import NodeView
from reference_allocator.cluster.pools import Pool, PoolDevice
from reference_allocator.errors import AllocationError, NodeAllocationError
from reference_allocator.explain.explanation import Explanation, NodeReport, Removal, RequestReport
from reference_allocator.explain.wording import explain_false
from reference_allocator.matching.matcher import Matcher
from reference_allocator.matching.resolved import Request
from reference_allocator.search.usage import Usage
from reference_allocator.snapshot import Snapshot

_MAX_DETAILS: Final = 3
_MAX_SUBSETS: Final = 256
_Item = TypeVar("_Item")


def explain(snapshot: Snapshot, *, seconds: float = 10.0) -> Explanation:
    """Explain what the allocator answers for the claims of a snapshot on each of its nodes.

    ``seconds``: how long all searches together may take; conflicts not found by then are left out.
    Raises InputError: an object has not the form of its kind; names the path.
    """
    deadline = time.monotonic() + seconds
    allocator = Allocator.from_snapshot(snapshot)
    read = read_all(snapshot.claims, ResourceClaim.from_dict, "claims")
    claims = list(zip(snapshot.claims, read, strict=True))
    return Explanation(
        tuple(
            _NodeExplainer(allocator, node, claims, deadline).make_report()
            for node in snapshot.nodes
        )
    )


class _NodeExplainer:
    """The explanation for one node. ``claims``: each as JSON, and as it was read from that."""

    def __init__(
        self,
        allocator: Allocator,
        node: Mapping[str, Any],
        claims: Sequence[tuple[Mapping[str, Any], ResourceClaim]],
        deadline: float,
    ) -> None:
        self._allocator = allocator
        self._node = Node.from_dict(node)
        self._claims = claims
        self._deadline = deadline

    def make_report(self) -> NodeReport:
        """Return why the claims can or cannot be allocated on the node."""
        outcome = self._allocate([claim for _, claim in self._claims])
        requests: tuple[RequestReport, ...] = ()
        pools: tuple[str, ...] = ()
        conflict: tuple[str, ...] = ()
        try:
            view = self._allocator.index.views.get_view(self._node)
            pools = tuple(_list_unusable(view.pools))
            requests = tuple(self._report_requests(view))
        except (AllocationError, NodeAllocationError):
            pass  # The outcome has it: the search cannot even start.
        if outcome.kind == "none" and requests and self._each_fits_alone(requests):
            conflict = self._find_conflict()
        return NodeReport(self._node.name, outcome.kind, outcome.error, pools, requests, conflict)

    def _allocate(self, claims: Sequence[Mapping[str, Any] | ResourceClaim]) -> Any:
        return self._allocator.allocate(self._node, claims, deadline=self._deadline)

    def _each_fits_alone(self, requests: Sequence[RequestReport]) -> bool:
        """Return whether each request fits alone, one with alternatives by one of them."""
        satisfiable: dict[tuple[str, str], bool] = {}
        for item in requests:
            key = (item.claim, item.request.partition("/")[0])
            satisfiable[key] = satisfiable.get(key, False) or item.alone
        return all(satisfiable.values())

    def _report_requests(self, view: NodeView) -> Iterator[RequestReport]:
        index = self._allocator.index
        matcher = Matcher(index.features, index.selectors)
        matcher.view = view
        usage = Usage(matcher)
        for raw, read in self._claims:
            claim = index.validator.validate_claim(read, matcher, view)
            for options in claim.requests:
                for request in options:
                    yield self._count_down(raw, request, view, usage)

    def _count_down(
        self, raw: Mapping[str, Any], request: Request, view: NodeView, usage: Usage
    ) -> RequestReport:
        removed: dict[tuple[str, str], list[str]] = {}
        remaining: list[str] = []
        foreign: dict[tuple[str, str], list[str]] = {}
        of_class = 0
        selectors = self._allocator.index.selectors
        for entry in view.candidates:
            failure = selectors.first_failure(request.class_selectors, entry)
            if failure is not None:
                detail = failure.error or self._explain_false(failure.expression, entry)
                key = (f"fail class selector #{failure.index}", detail)
                foreign.setdefault(key, []).append(str(entry.id))
                continue
            of_class += 1
            reason = self._find_reason(request, entry, view, usage)
            if reason is None:
                remaining.append(str(entry.id))
            else:
                removed.setdefault(reason, []).append(str(entry.id))
        needed = None if request.all_devices is not None else request.count
        alone = keep_requests(
            raw, {request.spec.name if request.parent is None else request.parent}
        )
        if request.parent is not None:
            alone = keep_alternative(alone, request.parent, request.spec.name)
        # No device counts twice for a request, so too few are not searched in.
        enough = needed is None or len(remaining) >= needed
        fits = enough and self._allocate([alone]).kind == "allocated"
        return RequestReport(
            claim=request.claim.ref,
            request=request.name,
            device_class=request.device_class.name,
            needed=needed,
            of_class=of_class,
            removals=tuple(_group_removals(removed if of_class else foreign)),
            remaining=tuple(remaining),
            alone=fits,
            obstacle=self._find_obstacle(alone) if enough and not fits else "",
        )

    def _find_obstacle(self, claim: Mapping[str, Any]) -> str:
        """Return what keeps a claim with one request from devices that all suit it."""
        devices = claim["spec"]["devices"]
        free = {**claim, "spec": {"devices": {**devices, "constraints": []}}}
        if self._allocate([free]).kind != "allocated":
            return "the stock of counters or capacity"
        names = [
            f"{kind} {item[kind]}"
            for item in devices["constraints"]
            for kind in ("matchAttribute", "distinctAttribute")
            if item.get(kind)
        ]
        return " or ".join(names)

    def _find_reason(
        self, request: Request, entry: PoolDevice, view: NodeView, usage: Usage
    ) -> tuple[str, str] | None:
        """Return the rule that removes a device, with what decided; None where it remains."""
        if not usage.is_available(request, entry, 0) or usage.is_kept_by_shares(request, entry):
            return "in use", ""
        if entry.withheld:
            return "with binding conditions, which are disabled", ""
        failure = self._allocator.index.selectors.first_failure(request.selectors, entry)
        if failure is not None:
            if failure.error is not None:
                return f"cannot be judged by selector #{failure.index}", failure.error
            return f"fail selector #{failure.index}", self._explain_false(failure.expression, entry)
        if not view.includes_device(entry):
            return "for other nodes", ""
        try:
            if not usage.matcher.has_capacity(request, entry):
                return "without enough capacity", _show_capacities(request, entry)
            if not usage.matcher.is_supported(entry):
                return "that need a feature which is off here", ""
            if usage.matcher.is_tainted(request, entry):
                taints = ", ".join(
                    f"{taint.key}={taint.value}:{taint.effect}" for taint in entry.device.taints
                )
                return "tainted", taints
            for _, constraint in request.constraints:
                attributes = usage.matcher.attributes
                if attributes.get_attribute(request, entry, constraint.attribute) is None:
                    return "without an attribute that a constraint needs", constraint.attribute
        except AllocationError as error:
            return "cannot be judged", str(error)
        return None

    def _explain_false(self, expression: str, entry: PoolDevice) -> str:
        environment = self._allocator.index.selectors.environment
        return explain_false(expression, entry.id.driver, entry.device.raw, environment)

    def _find_conflict(self) -> tuple[str, ...]:
        """Return the smallest set of claims, or of requests of one, that do not fit together."""
        claims = [(read.ref, raw) for raw, read in self._claims]
        chosen = self._find_smallest(claims, 1, lambda chosen: [raw for _, raw in chosen])
        if len(chosen) != 1:
            return tuple(f"claim {name}" for name, _ in chosen)
        raw = chosen[0][1]
        names = [request.name for request in ResourceClaim.from_dict(raw).requests]
        conflicting = self._find_smallest(
            names, 2, lambda chosen: [keep_requests(raw, set(chosen))]
        )
        return tuple(f"request {name}" for name in conflicting)

    def _find_smallest(
        self,
        items: Sequence[_Item],
        least: int,
        claims: Callable[[tuple[_Item, ...]], Sequence[Mapping[str, Any]]],
    ) -> tuple[_Item, ...]:
        """Return the smallest combination whose claims cannot be allocated; () if none is found."""
        sizes = range(least, len(items) + 1)
        subsets = chain.from_iterable(combinations(items, size) for size in sizes)
        for chosen in islice(subsets, _MAX_SUBSETS):
            if time.monotonic() > self._deadline:
                break
            if self._allocate(claims(chosen)).kind == "none":
                return chosen
        return ()


def keep_requests(claim: Mapping[str, Any], names: set[str]) -> dict[str, Any]:
    """Return a v1 ResourceClaim with only some of its requests, and the constraints among them."""
    devices = claim["spec"]["devices"]
    requests = [item for item in devices["requests"] if item["name"] in names]
    constraints: list[dict[str, Any]] = []
    for item in devices.get("constraints") or ():
        named = item.get("requests") or []
        kept_names = [name for name in named if name.partition("/")[0] in names]
        if kept_names or not named:
            constraints.append({**item, "requests": kept_names})
    return {**claim, "spec": {"devices": {"requests": requests, "constraints": constraints}}}


def keep_alternative(claim: Mapping[str, Any], parent: str, name: str) -> dict[str, Any]:
    """Return a v1 ResourceClaim whose request `parent` has only the alternative `name`."""
    devices = claim["spec"]["devices"]
    requests = [
        {
            **item,
            "firstAvailable": [
                option for option in item["firstAvailable"] if option["name"] == name
            ],
        }
        if item["name"] == parent
        else item
        for item in devices["requests"]
    ]
    return {**claim, "spec": {"devices": {**devices, "requests": requests}}}


def _list_unusable(pools: Sequence[Pool]) -> Iterator[str]:
    for pool in pools:
        if pool.incomplete and not pool.usable:
            yield f"pool {pool.id} is being updated (slices are missing)"
        elif pool.invalid_reason:
            yield f"pool {pool.id} is invalid: {pool.invalid_reason}"


def _group_removals(removed: Mapping[tuple[str, str], Sequence[str]]) -> Iterator[Removal]:
    """Yield one removal per rule and detail; where a rule has many details, the others in one."""
    by_rule: dict[str, list[tuple[str, Sequence[str]]]] = {}
    for (rule, detail), devices in removed.items():
        by_rule.setdefault(rule, []).append((detail, devices))
    for rule, details in by_rule.items():
        for detail, devices in details[:_MAX_DETAILS]:
            yield Removal(rule, detail, tuple(devices))
        other_devices = [device for _, devices in details[_MAX_DETAILS:] for device in devices]
        if other_devices:
            yield Removal(rule, "for other values", tuple(other_devices))


def _show_capacities(request: Request, entry: PoolDevice) -> str:
    requested = {} if request.spec.capacity is None else request.spec.capacity.requests
    capacity_texts: list[str] = []
    for name, amount in requested.items():
        capacity = entry.device.capacity.get(name)
        has = "has none" if capacity is None else f"of {capacity.value}"
        capacity_texts.append(f"{name} {amount} {has}")
    return ", ".join(capacity_texts)
