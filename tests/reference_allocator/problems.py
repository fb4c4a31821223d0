"""Random small allocation problems, rich in rules and poor in devices."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from hypothesis import strategies as st

from reference_allocator.features import Features
from tests.reference_allocator.builders import (
    ALL,
    DRIVER,
    Json,
    allocated,
    claim,
    device,
    device_class,
    distinct,
    first_available,
    match,
    resource_slice,
    spec,
)

KIND = f'device.attributes["{DRIVER}"].kind'


@dataclass(frozen=True)
class Problem:
    """The arguments of `builders.solve`."""

    slices: list[Json]
    claims: list[Json]
    taken: list[Json]
    classes: list[Json]
    features: Features


_roots = st.sampled_from(["a", "a", "b", "c", None, ["a", "b"], ["c"], 1])
_selectors = st.sampled_from(
    [(), (), (f'{KIND} == "x"',), (f'{KIND} != "x"',), ("true", f'{KIND} == "y"')]
)
_failing = st.sampled_from([(f'device.attributes["{DRIVER}"].root == "a"',)])


@st.composite
def _devices(draw: st.DrawFn, prefix: str, rich: bool) -> list[Json]:
    built: list[Json] = []
    for index in range(draw(st.integers(1, 4))):
        attributes: dict[str, object] = {"kind": draw(st.sampled_from("xxy"))}
        root = draw(_roots)
        if root is not None:
            attributes["root"] = root
        optional_fields: dict[str, Any] = {}
        if draw(st.integers(0, 9)) == 0:
            optional_fields["taints"] = [{"key": "k", "effect": "NoSchedule"}]
        if rich and draw(st.booleans()):
            counter_set = draw(st.sampled_from(["s0", "s0", "s1"]))
            optional_fields["counters"] = {counter_set: {"n": str(draw(st.integers(0, 2)))}}
            optional_fields["groups"] = draw(st.sampled_from([(), (), ("g",), ("g", "h")]))
        if rich and draw(st.booleans()):
            optional_fields["capacity"] = {"bw": str(draw(st.integers(1, 4)))}
            optional_fields["shared"] = draw(st.booleans())
        built.append(device(f"{prefix}{index}", attributes, **optional_fields))
    return built


@st.composite
def _specs(draw: st.DrawFn, rich: bool, everything: bool) -> Json:
    optional_fields: dict[str, Any] = {}
    if rich and draw(st.integers(0, 3)) == 0:
        optional_fields["capacity"] = {"bw": str(draw(st.integers(0, 3)))}
    if draw(st.integers(0, 5)) == 0:
        optional_fields["tolerations"] = [{"key": "k", "operator": "Exists"}]
    selectors = draw(_failing if rich and draw(st.integers(0, 5)) == 0 else _selectors)
    return spec(
        draw(st.integers(1, 3)),
        *selectors,
        everything=everything and draw(st.integers(0, 7)) == 0,
        **optional_fields,
    )


@st.composite
def _claims(draw: st.DrawFn, index: int, rich: bool) -> Json:
    requests: list[Json] = []
    for number in range(draw(st.integers(1, 3))):
        name = f"r{number}"
        if draw(st.integers(0, 3)) == 0:
            options = {
                f"s{option}": draw(_specs(rich, rich)) for option in range(draw(st.integers(1, 2)))
            }
            requests.append(first_available(name, **options))
            continue
        body = draw(_specs(rich, rich))
        if rich and draw(st.integers(0, 9)) == 0:
            body["adminAccess"] = True
        requests.append({"name": name, "exactly": body})
    constraints: list[Json] = []
    for _ in range(draw(st.sampled_from([0, 0, 1, 1, 2]))):
        kind = draw(st.sampled_from([match, distinct]))
        named = draw(st.sampled_from([(), (), ("r0",), ("r0", "r1")]))
        constraints.append(kind(f"{DRIVER}/root", *named))
    return claim(*requests, name=f"c{index}", constraints=constraints)


@st.composite
def problems(draw: st.DrawFn, *, rich: bool = True) -> Problem:
    """A problem; a `rich` one may have counters, shares, admin access, All and selector errors."""
    slices: list[Json] = [
        resource_slice(draw(_devices("d", rich)), name="devices", slices=1 + rich)
    ]
    if rich:
        totals = {f"s{index}": {"n": str(draw(st.integers(0, 4)))} for index in range(2)}
        slices.append(resource_slice(name="counters", slices=2, counters=totals))
    if draw(st.booleans()):
        slices.append(
            resource_slice(
                draw(_devices("e", False)),
                name="shared",
                pool="other",
                node=None,
                allNodes=True,
                generation=draw(st.integers(0, 1)),
                slices=draw(st.sampled_from([1, 1, 1, 2])),
            )
        )
    names = [item["name"] for item in slices[0]["spec"]["devices"]]
    held = draw(st.lists(st.sampled_from(names), unique=True, max_size=2))
    allocated_claims = [allocated(*held)] if held else []
    claims = [draw(_claims(index, rich)) for index in range(draw(st.integers(1, 3)))]
    features = ALL
    if rich:
        switches = {name.name: st.booleans() for name in fields(Features)}
        any_features = st.builds(Features, **switches)
        some = st.just(ALL), st.just(ALL), st.just(Features.for_version("1.37")), any_features
        features = draw(st.one_of(*some))
    return Problem(slices, claims, allocated_claims, [device_class()], features)
