"""Short ways to write API objects in tests. Everything is a v1 JSON dict, already defaulted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from reference_allocator.allocator import Allocator, Outcome
from reference_allocator.api.defaulting import default_claim
from reference_allocator.checks import Violation, check
from reference_allocator.features import Features
from reference_allocator.index import Index
from reference_allocator.snapshot import Snapshot

Json = dict[str, Any]

DRIVER = "gpu.example.com"
NODE = "node-a"
ALL = Features.all()


def attribute(value: object) -> Json:
    """A DeviceAttribute from a Python value; versions as ("version", text)."""
    match value:
        case ("version", text):
            return {"version": text}
        case bool():
            return {"bool": value}
        case int():
            return {"int": value}
        case str():
            return {"string": value}
        case [bool(), *_]:
            return {"bools": value}
        case [int(), *_]:
            return {"ints": value}
        case [str(), *_]:
            return {"strings": value}
        case dict():
            return value
    raise AssertionError(value)


def device(
    name: str,
    attributes: Mapping[str, object] | None = None,
    *,
    capacity: Mapping[str, Any] | None = None,
    counters: Mapping[str, Mapping[str, str]] | None = None,
    groups: Sequence[str] = (),
    shared: bool = False,
    **more: Any,
) -> Json:
    """A Device. `counters` is counter set -> counter -> amount, `capacity` name -> value."""
    built: Json = {"name": name, **more}
    if attributes:
        built["attributes"] = {key: attribute(value) for key, value in attributes.items()}
    if capacity:
        built["capacity"] = {
            key: value if isinstance(value, dict) else {"value": value}
            for key, value in capacity.items()
        }
    if counters:
        built["consumesCounters"] = [
            {
                "counterSet": counter_set,
                "counters": {key: {"value": amount} for key, amount in amounts.items()},
                **({"compatibilityGroups": list(groups)} if groups else {}),
            }
            for counter_set, amounts in counters.items()
        ]
    if shared:
        built["allowMultipleAllocations"] = True
    return built


def devices(count: int, attributes: Mapping[str, object] | None = None, **more: Any) -> list[Json]:
    """Devices dev-0 .. dev-(count-1) that are all alike."""
    return [device(f"dev-{index}", attributes, **more) for index in range(count)]


def resource_slice(
    content: Sequence[Json] = (),
    *,
    name: str = "slice",
    driver: str = DRIVER,
    pool: str = "pool",
    node: str | None = NODE,
    generation: int = 1,
    slices: int = 1,
    counters: Mapping[str, Mapping[str, str]] | None = None,
    **more: Any,
) -> Json:
    """A ResourceSlice for one node, or with `node=None` for what `more` says."""
    spec: Json = {
        "driver": driver,
        "pool": {"name": pool, "generation": generation, "resourceSliceCount": slices},
        **more,
    }
    if node is not None:
        spec["nodeName"] = node
    if content:
        spec["devices"] = list(content)
    if counters:
        spec["sharedCounters"] = [
            {"name": key, "counters": {name: {"value": amount} for name, amount in amounts.items()}}
            for key, amounts in counters.items()
        ]
    return {"metadata": {"name": name}, "spec": spec}


def device_class(name: str = "gpu", *selectors: str, config: Sequence[Json] = ()) -> Json:
    """A DeviceClass with CEL selectors."""
    spec: Json = {}
    if selectors:
        spec["selectors"] = [{"cel": {"expression": text}} for text in selectors]
    if config:
        spec["config"] = list(config)
    return {"metadata": {"name": name}, "spec": spec}


def opaque(value: str, driver: str = DRIVER) -> Json:
    """The opaque configuration of a driver."""
    return {"opaque": {"driver": driver, "parameters": {"value": value}}}


def spec(
    count: int = 1,
    *selectors: str,
    class_name: str = "gpu",
    everything: bool = False,
    capacity: Mapping[str, str] | None = None,
    **more: Any,
) -> Json:
    """The body of a request or subrequest."""
    built: Json = {"deviceClassName": class_name, **more}
    if everything:
        built["allocationMode"] = "All"
    else:
        built["count"] = count
    if selectors:
        built["selectors"] = [{"cel": {"expression": text}} for text in selectors]
    if capacity is not None:
        built["capacity"] = {"requests": dict(capacity)}
    return built


def request(name: str = "req", count: int = 1, *selectors: str, **more: Any) -> Json:
    """A request with `exactly`."""
    return {"name": name, "exactly": spec(count, *selectors, **more)}


def first_available(name: str, **alternatives: Json) -> Json:
    """A request with alternatives: subrequest name -> `spec(...)`."""
    return {
        "name": name,
        "firstAvailable": [{"name": key, **body} for key, body in alternatives.items()],
    }


def claim(
    *requests: Json,
    name: str = "claim",
    constraints: Sequence[Json] = (),
    config: Sequence[Json] = (),
) -> Json:
    """A defaulted ResourceClaim in namespace "default"."""
    content: Json = {"requests": list(requests)}
    if constraints:
        content["constraints"] = list(constraints)
    if config:
        content["config"] = list(config)
    metadata = {"namespace": "default", "name": name, "uid": f"uid-{name}"}
    return default_claim({"metadata": metadata, "spec": {"devices": content}})


def match(attribute_name: str, *requests: str) -> Json:
    """A matchAttribute constraint."""
    return _constraint("matchAttribute", attribute_name, requests)


def distinct(attribute_name: str, *requests: str) -> Json:
    """A distinctAttribute constraint."""
    return _constraint("distinctAttribute", attribute_name, requests)


def _constraint(kind: str, attribute_name: str, requests: Sequence[str]) -> Json:
    return {kind: attribute_name, **({"requests": list(requests)} if requests else {})}


def allocated(*taken: str | Json, name: str = "other") -> Json:
    """A claim that holds devices: names in the default pool, or whole results."""
    results = [
        {"request": "req", "driver": DRIVER, "pool": "pool", "device": item}
        if isinstance(item, str)
        else {"request": "req", "driver": DRIVER, "pool": "pool", **item}
        for item in taken
    ]
    return {
        **claim(request(), name=name),
        "status": {"allocation": {"devices": {"results": results}}},
    }


def node(name: str = NODE, *declared: str, **labels: str) -> Json:
    """A Node with labels and declared features."""
    return {
        "metadata": {"name": name, "labels": labels},
        "status": {"declaredFeatures": list(declared)},
    }


def solve(
    slices: Sequence[Json],
    claims: Sequence[Json] | Json,
    *,
    classes: Sequence[Json] | None = None,
    taken: Sequence[Json] = (),
    features: Features = ALL,
    on: Json | None = None,
    deadline: float | None = None,
) -> Outcome:
    """Allocates; an allocation must also satisfy the checker."""
    on = on or node()
    claims = [claims] if isinstance(claims, dict) else list(claims)
    classes = [device_class()] if classes is None else classes
    allocator = Allocator(Index(features, slices, classes, taken))
    outcome = allocator.allocate(on, claims, deadline=deadline)
    if outcome.kind == "allocated":
        snapshot = make_snapshot(slices, claims, classes=classes, taken=taken, features=features)
        broken = check(snapshot, on, claims, outcome.allocations)
        assert not broken, [str(item) for item in broken]
    return outcome


def make_snapshot(
    slices: Sequence[Json],
    claims: Sequence[Json],
    *,
    classes: Sequence[Json] | None = None,
    taken: Sequence[Json] = (),
    features: Features = ALL,
    nodes: Sequence[Json] | None = None,
) -> Snapshot:
    """A Snapshot of Kubernetes 1.37 with all features on unless said otherwise."""
    return Snapshot(
        kubernetes="1.37.1",
        features=features,
        slices=tuple(slices),
        device_classes=tuple([device_class()] if classes is None else classes),
        nodes=tuple([node()] if nodes is None else nodes),
        claims=tuple(claims),
        allocated=tuple(taken),
    )


def picked(outcome: Outcome) -> list[str]:
    """`request=device` for all devices of all claims, in order; fails where there is none."""
    assert outcome.kind == "allocated", (outcome.kind, outcome.error)
    return [
        f"{result['request']}={result['device']}"
        for allocation in outcome.allocations
        for result in allocation["devices"].get("results", [])
    ]


def rules(violations: Sequence[Violation]) -> set[str]:
    """The names of the rules that are broken."""
    return {item.rule for item in violations}
