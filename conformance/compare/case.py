"""What is to be allocated for a pod that waits, node by node, as the scheduler would try it.

Which claims that are may depend on the node: the claim for a pod's extended resources asks devices
for what the node has not itself (`reference_allocator.extended`). And on what the scheduler does
when no node does: it takes back a claim that nobody uses and whose devices are elsewhere.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from conformance.compare.evidence import (
    Object,
    claim_names,
    find_obstacle,
    has_ended,
    key_of,
    mapping_field,
    name_of,
    node_selector_of,
)
from kube.slices import results_of
from kubesim.pods import sum_requests
from reference_allocator.allocator import Allocator
from reference_allocator.api.quantity import parse_quantity
from reference_allocator.explain import Explanation, explain
from reference_allocator.explain.explanation import NodeReport
from reference_allocator.extended import (
    IMPLICIT_PREFIX,
    classes_by_resource,
    extended_claim,
    is_extended_resource,
)
from reference_allocator.gates import gates_for_version
from reference_allocator.snapshot import Snapshot

Key = tuple[str, str]
_GATE = "DRAExtendedResource"
_UNIT = 10**9
_NODES_AT_ONCE = 256


@dataclass(frozen=True, slots=True)
class Case:
    """Claims that are to be allocated together, for a pod if it is known, and the cluster.

    Attributes:
        keys: namespace and name of each claim that must have devices in the end.
    """

    snapshot: Snapshot
    keys: frozenset[Key]
    pod: Object | None = None

    @property
    def pod_spec(self) -> Object:
        """``spec`` of the pod; without one any pod is meant."""
        return mapping_field(self.pod or {}, "spec")

    @property
    def claims(self) -> tuple[Object, ...]:
        """The claims that have no devices yet."""
        return tuple(item for item in self.snapshot.claims if key_of(item) in self.keys)

    @property
    def held(self) -> tuple[Object, ...]:
        """The claims of the pod that have devices already."""
        keys = self.keys | named_keys(self.pod) if self.pod else self.keys
        return tuple(item for item in self.snapshot.allocated if key_of(item) in keys)

    @property
    def requested(self) -> Mapping[str, int]:
        """What the pod asks for of extended resources: name -> whole units."""
        if self.pod is None:
            return {}
        amounts = sum_requests({"spec": {}, **self.pod})
        return {
            name: -(-amount // _UNIT)
            for name, amount in amounts.items()
            if amount and is_extended_resource(name)
        }


def named_keys(pod: Object) -> frozenset[Key]:
    """Return namespace and name of the claims that a pod, or its status, names."""
    return frozenset((key_of(pod)[0], name) for name in claim_names(pod))


def consumers_of(claim: Object) -> list[str]:
    """Return ``namespace/name`` of the pods for which a claim is reserved."""
    namespace = key_of(claim)[0]
    reserved = mapping_field(claim, "status").get("reservedFor") or ()
    return [f"{namespace}/{item['name']}" for item in reserved if item.get("resource") == "pods"]


def providing_classes(snapshot: Snapshot) -> dict[str, str]:
    """Return extended resource -> the DeviceClass that provides it; nothing where none can."""
    try:
        gate = gates_for_version(snapshot.kubernetes).get(_GATE)
    except ValueError:
        gate = None
    # An API server whose gate is off drops the field.
    named = any(
        mapping_field(item, "spec").get("extendedResourceName") for item in snapshot.device_classes
    )
    if not named and gate is not None and not gate.default:
        return {}
    return classes_by_resource(snapshot.device_classes)


class Placement:
    """Says of each node what keeps a case from it beside devices, and what it would allocate."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self._claims = case.claims
        self._selectors = [item for item in map(node_selector_of, case.held) if item is not None]
        self._requested = case.requested
        self._classes = providing_classes(case.snapshot) if self._requested else {}
        self._used: dict[str, Counter[str]] = defaultdict(Counter)
        for pod in case.snapshot.pods if self._requested else ():
            node = mapping_field(pod, "spec").get("nodeName")
            if node and not has_ended(pod):
                self._used[str(node)] += sum_requests(pod)

    def find_obstacle(self, node: Object) -> str | None:
        """Return what keeps the pod from a node beside devices. Raises InputError."""
        problem = find_obstacle(node, self.case.pod_spec, self._selectors)
        if problem is not None:
            return problem
        return "; ".join(self._lacking_resources(node)) or None

    def list_claims(self, node: Object) -> tuple[Object, ...]:
        """Return the claims that would be allocated on a node."""
        if not self._classes or self.case.pod is None:
            return self._claims
        made = extended_claim(self.case.pod, node, self._classes)
        if made is None:
            return self._claims
        name = f"{name_of(self.case.pod)}-extended-resources"
        metadata = {**made.claim["metadata"], "name": name, "uid": f"{name}-uid"}
        return (*self._claims, {**made.claim, "metadata": metadata})

    def _lacking_resources(self, node: Object) -> Iterator[str]:
        """Yield the extended resources that neither devices nor the node itself provide."""
        allocatable = mapping_field(mapping_field(node, "status"), "allocatable")
        for name, amount in self._requested.items():
            own = parse_quantity(str(allocatable.get(name, "0"))).nanos // _UNIT
            free = own - self._used[name_of(node)][name] // _UNIT
            if own and amount > free:
                of_plugin = f"{name} is the node's own, of a device plugin"
                yield f"{of_plugin}: {free} of {own} free; {amount} needed"
            elif not own and name not in self._classes:
                yield f"no DeviceClass provides {name}, and no device plugin of the node does"


def explain_case(case: Case, seconds: float) -> tuple[Explanation, dict[str, str]]:
    """Return what the allocator says of each node, and what keeps the pod from nodes beside that.

    ``seconds``: how long all searches together may take.
    Raises InputError: an object has not the form of its kind.
    """
    placement = Placement(case)
    alike: dict[str, tuple[tuple[Object, ...], list[Object]]] = {}
    obstacles: dict[str, str] = {}
    for node in case.snapshot.nodes:
        problem = placement.find_obstacle(node)
        if problem is not None:
            obstacles[name_of(node)] = problem
        claims = placement.list_claims(node)
        requests = json.dumps([item["spec"] for item in claims[len(case.claims) :]])
        alike.setdefault(requests, (claims, []))[1].append(node)
    reports: dict[str, NodeReport] = {}
    for claims, nodes in alike.values():
        if claims:
            for part in split_by_nodes(replace(case.snapshot, claims=claims), nodes):
                explanation = explain(part, seconds=seconds)
                reports |= {report.node: report for report in explanation.nodes}
        else:
            reports |= {
                name_of(node): NodeReport(name_of(node), "allocated", "", (), (), ())
                for node in nodes
            }
    return Explanation(tuple(reports[name_of(node)] for node in case.snapshot.nodes)), obstacles


def split_by_nodes(
    snapshot: Snapshot, nodes: Sequence[Object], at_once: int = _NODES_AT_ONCE
) -> Iterator[Snapshot]:
    """Yield what allocations on a few of the nodes depend on, so that little is read at once.

    That is whole pools: of the few nodes, and those of which a slice is for no node in particular.
    Without its slices for other nodes such a pool would look incomplete.
    """
    pools_of_node: dict[str, set[Key]] = defaultdict(set)
    slices: dict[Key, list[int]] = defaultdict(list)
    for index, item in enumerate(snapshot.slices):
        spec = item["spec"]
        pool = (spec["driver"], spec["pool"]["name"])
        slices[pool].append(index)
        pools_of_node[spec.get("nodeName") or ""].add(pool)
    claims: dict[Key, dict[int, Object]] = defaultdict(dict)
    for index, claim in enumerate(snapshot.allocated):
        for result in results_of(claim):
            claims[result["driver"], result["pool"]][index] = claim
    for start in range(0, len(nodes), at_once):
        few = nodes[start : start + at_once]
        pools = pools_of_node[""].union(*(pools_of_node[name_of(node)] for node in few))
        users = {index: claim for pool in pools for index, claim in claims[pool].items()}
        yield replace(
            snapshot,
            nodes=tuple(few),
            slices=tuple(
                snapshot.slices[index]
                for index in sorted(index for pool in pools for index in slices[pool])
            ),
            allocated=tuple(users[index] for index in sorted(users)),
        )


def find_fitting_node(case: Case, until: float) -> str | None:
    """Return the first node on which the scheduler finds devices for the case; None: none.

    ``until``: of `time.monotonic`. Raises InputError: an object has not the form of its kind.
    """
    found = find_placement(case, until)
    return None if found is None else name_of(found[1])


def find_placement(case: Case, until: float) -> tuple[Case, Object] | None:
    """Return as `find_fitting_node`, with the case after what the scheduler takes back for it."""
    while True:
        node, failed = _find_node(case, until)
        if node is not None or failed:
            return None if failed or node is None else (case, node)
        retried = take_back_claim(case)
        if retried is None:
            return None
        case = retried


def _find_node(case: Case, until: float) -> tuple[Object | None, bool]:
    """Return the first node that does, and whether an error ends the attempt for all."""
    placement = Placement(case)
    suited = [node for node in case.snapshot.nodes if placement.find_obstacle(node) is None]
    allocator = Allocator.from_snapshot(case.snapshot)
    fitting = None
    for node in suited:
        claims = placement.list_claims(node)
        kind = allocator.allocate(node, claims, deadline=until).kind if claims else "allocated"
        if kind == "error":
            return None, True
        if kind == "allocated" and fitting is None:
            fitting = node
    return fitting, False


def take_back_claim(case: Case) -> Case | None:
    """Return the case after the scheduler has taken back a claim of the pod; None: it takes none.

    It is one with devices elsewhere that nobody else uses (PostFilter of dynamicresources).
    """
    if case.pod is None:
        return None
    pod = "/".join(key_of(case.pod))
    for claim in case.held:
        selector = node_selector_of(claim)
        if selector is None or set(consumers_of(claim)) - {pod} or _other_users(claim):
            continue
        elsewhere = replace(case, snapshot=replace(case.snapshot, allocated=(claim,)))
        placement = Placement(elsewhere)
        if any(
            find_obstacle(node, case.pod_spec, ()) is None and placement.find_obstacle(node)
            for node in case.snapshot.nodes
        ):
            key = key_of(claim)
            return replace(
                case, snapshot=deallocate_claim(case.snapshot, key), keys=case.keys | {key}
            )
    return None


def deallocate_claim(snapshot: Snapshot, key: Key) -> Snapshot:
    """Return it with a claim open again for the pods that name it."""
    opened = [
        {
            **claim,
            "status": {
                field: value
                for field, value in mapping_field(claim, "status").items()
                if field not in ("allocation", "reservedFor", "devices")
            },
        }
        for claim in snapshot.allocated
        if key_of(claim) == key
    ]
    return replace(
        snapshot,
        claims=(*snapshot.claims, *opened),
        allocated=tuple(claim for claim in snapshot.allocated if key_of(claim) != key),
    )


def remove_claim(snapshot: Snapshot, key: Key) -> Snapshot:
    """Return it without a claim."""
    return replace(
        snapshot,
        claims=tuple(item for item in snapshot.claims if key_of(item) != key),
        allocated=tuple(item for item in snapshot.allocated if key_of(item) != key),
    )


def _other_users(claim: Object) -> bool:
    reserved = mapping_field(claim, "status").get("reservedFor") or ()
    return any(item.get("resource") != "pods" for item in reserved)


def describe_resources(case: Case) -> Iterator[str]:
    """Yield for each extended resource that the pod asks for which class provides it."""
    classes = providing_classes(case.snapshot) if case.requested else {}
    for resource in case.requested:
        name = classes.get(resource)
        others = [
            name_of(item)
            for item in case.snapshot.device_classes
            if mapping_field(item, "spec").get("extendedResourceName") == resource
            and name_of(item) != name
        ]
        if name is not None:
            newest = f", the newest; also of {', '.join(sorted(others))}" if others else ""
            yield f"{resource} is of DeviceClass {name}{newest}"


def known_resources(snapshot: Snapshot) -> set[str]:
    """Return the extended resources that a pod could ask for."""
    own = {
        name
        for node in snapshot.nodes
        for name in mapping_field(mapping_field(node, "status"), "allocatable")
        if is_extended_resource(name)
    }
    classes = (f"{IMPLICIT_PREFIX}{name_of(item)}" for item in snapshot.device_classes)
    return own.union(providing_classes(snapshot), classes)
