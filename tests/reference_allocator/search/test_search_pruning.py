"""Problems without a solution on which a plain search would take ages: steps are counted."""

from __future__ import annotations

import time
import timeit

import pytest

from reference_allocator.allocator import Allocator
from reference_allocator.api import Node
from reference_allocator.features import Features
from reference_allocator.index import Index
from reference_allocator.search.partitions import CounterStock
from tests.reference_allocator.builders import (
    ALL,
    DRIVER,
    NODE,
    Json,
    claim,
    device,
    device_class,
    devices,
    distinct,
    first_available,
    match,
    picked,
    request,
    resource_slice,
    solve,
    spec,
)

VALUE = f"{DRIVER}/v"


def valued(*values: object) -> list[Json]:
    return [
        resource_slice([device(f"d{index}", {"v": value}) for index, value in enumerate(values)])
    ]


def counted(total: int, *amounts: tuple[str, int]) -> list[Json]:
    """Devices that draw (counter set, amount); every set has the same total."""
    names = sorted({name for name, _ in amounts})
    return [
        resource_slice(name="c", slices=2, counters={name: {"n": str(total)} for name in names}),
        resource_slice(
            [
                device(f"d{index}", counters={name: {"n": str(amount)}})
                for index, (name, amount) in enumerate(amounts)
            ],
            slices=2,
        ),
    ]


def claims(count: int, each: int = 1) -> list[Json]:
    return [claim(request(count=each), name=f"c{index}") for index in range(count)]


def requests(count: int, *constraints: Json) -> list[Json]:
    wanted_requests = [request(f"r{index}") for index in range(count)]
    return [claim(*wanted_requests, constraints=constraints)]


def hard(n: int) -> dict[str, tuple[list[Json], list[Json]]]:
    plain = [resource_slice(devices(n))]
    last = claim(request("a", n // 2), request("b", 1, "false"))
    few = min(n, 32)
    doubled = [max(index - 1, 0) for index in range(few)]
    return {
        "one device too few": ([resource_slice(devices(few - 1))], claims(1, few)),
        "one claim too few": (plain, claims(n + 1)),
        "last request impossible": (plain, [last]),
        "counters one short": (counted(n // 2 - 1, *[("s", 1)] * n), claims(2, n // 4)),
        "counters of many devices one short": (
            counted(2, *[(f"s{index % (n // 4)}", 1) for index in range(n)]),
            [*claims(2, n // 4), claim(request(), name="more")],
        ),
        "distinct one short": (
            valued(*doubled),
            [claim(request(count=few), constraints=[distinct(VALUE)])],
        ),
        "distinct over requests one short": (valued(*doubled), requests(few, distinct(VALUE))),
        "match one short": (
            valued(*[index % 4 for index in range(n)]),
            [claim(request(count=n // 4 + 1), constraints=[match(VALUE)])],
        ),
        "match over requests one short": (
            valued(*[index % 4 for index in range(n)]),
            requests(n // 4 + 1, match(VALUE)),
        ),
    }


@pytest.mark.parametrize("n", [12, 24, 48])
@pytest.mark.parametrize("name", sorted(hard(12)))
def test_no_solution_is_found_out_in_few_steps(name: str, n: int) -> None:
    slices, claims = hard(n)[name]
    outcome = solve(slices, claims)
    assert outcome.kind == "none"
    assert outcome.steps < 20 * n


def fallible(n: int) -> dict[str, tuple[list[Json], list[Json]]]:
    """Problems in which a selector or a constraint can end in an error that is never reached."""
    missing = f"device.attributes['{DRIVER}'].kind == 'x'"
    plain = [resource_slice(devices(n))]
    one_named = [resource_slice([device("d0"), *devices(n, {"kind": "x"})])]
    return {
        "a later claim": (
            plain,
            [
                claim(request("a", n // 2), request("b", n // 2 + 1)),
                claim(request("c", 1, missing), name="never"),
            ],
        ),
        "a later request": (
            plain,
            [claim(request("a", n // 2), request("b", n // 2 + 1), request("c", 1, missing))],
        ),
        "an alternative that comes too late": (
            plain,
            [
                claim(
                    request("a", n // 2),
                    request("b", n // 2 + 1),
                    first_available("c", s0=spec(1), s1=spec(1, missing)),
                )
            ],
        ),
        "the device that fails is taken": (
            one_named,
            [
                claim(request("a", 1, f"!has(device.attributes['{DRIVER}'].kind)"), name="first"),
                claim(request("b", n // 2, missing), request("c", n // 2 + 1, missing)),
            ],
        ),
        "all devices under a constraint in a later claim": (
            valued(*range(n)),
            [
                claim(request("a", n // 2), request("b", n // 2 + 1)),
                claim(request("c", everything=True), constraints=[match(VALUE)], name="never"),
            ],
        ),
        "a value that no constraint compares": (
            valued(*[0] * n, [1]),
            [claim(request("a", n // 2), request("b", n // 2 + 1), constraints=[match(VALUE)])],
        ),
    }


@pytest.mark.parametrize("name", sorted(fallible(12)))
def test_an_error_that_is_never_reached_does_not_slow_the_search(name: str) -> None:
    slices, claims = fallible(16)[name]
    features = Features.for_version("1.37")
    outcome = solve(slices, claims, features=features, deadline=time.monotonic() + 5)
    assert (outcome.kind, outcome.error) == ("none", "")
    assert outcome.steps < 5000


def test_an_error_is_found_where_it_is_reached_however_late() -> None:
    missing = f"device.attributes['{DRIVER}'].kind == 'x'"
    slices = [resource_slice(devices(12))]
    outcome = solve(slices, [claim(request("a", 12, "true")), claim(request("b", 1, missing))])
    assert outcome.kind == "none"
    outcome = solve(slices, [claim(request("a", 11, "true")), claim(request("b", 1, missing))])
    assert outcome.kind == "error"


@pytest.mark.parametrize("name", sorted(set(hard(12)) - {"last request impossible"}))
def test_with_one_device_less_to_find_there_is_a_solution(name: str) -> None:
    slices, claims = hard(12)[name]
    if len(claims) > 1:
        fewer = claims[:-1]
        if name == "counters one short":
            fewer = [claims[0], claim(request(count=2), name="less")]
    else:
        (only,) = claims
        content = only["spec"]["devices"]
        if len(content["requests"]) > 1:
            content["requests"].pop()
        else:
            content["requests"][0]["exactly"]["count"] -= 1
        fewer = [only]
    assert picked(solve(slices, fewer))


def test_until_1_35_a_request_may_have_more_shares_than_there_are_devices() -> None:
    policy = {"value": "2", "requestPolicy": {"default": "1"}}
    shared = [device("d0", capacity={"n": policy}, shared=True), device("d1", shared=True)]
    wanted = claim(request("a", 3), request("b"), request("c", capacity={"n": "2"}))
    for kubernetes in ("1.34", "1.35"):
        index = Index(ALL, [resource_slice(shared)], [device_class()], kubernetes=kubernetes)
        outcome = Allocator(index).allocate(Node(NODE), [wanted])
        assert picked(outcome) == ["a=d1", "a=d1", "a=d1", "b=d1", "c=d0"]


def test_steps_are_counted_as_upstream_counts_them() -> None:
    slices = [resource_slice(devices(4))]
    assert solve(slices, claim(request(count=2))).steps == 5
    assert solve(slices, [claim(request()), claim(request(), name="b")]).steps == 7


def seconds_to_take_a_device(counters: int) -> float:
    """That draws on all of so many counters of its pool."""
    names = [f"n{index}" for index in range(counters)]
    item = resource_slice([device("d", counters={"s": dict.fromkeys(names, "1")})], slices=2)
    stock = resource_slice(name="c", slices=2, counters={"s": dict.fromkeys(names, "9")})
    view = Index(ALL, [item, stock]).views.get_view(Node(NODE))
    ((entry,), (pool,)) = view.candidates, view.pools
    counter_stock = CounterStock(pool)

    def take_and_give_back() -> None:
        before = counter_stock.take(entry)
        assert before is not None
        counter_stock.go_back(before)

    return min(timeit.repeat(take_and_give_back, number=300, repeat=15))


def test_taking_a_device_hardly_depends_on_how_many_counters_it_draws_on() -> None:
    assert seconds_to_take_a_device(256) < 20 * seconds_to_take_a_device(2)


def test_counters_are_not_looked_at_where_partitionable_devices_are_off() -> None:
    item = resource_slice(
        [*devices(16), *(device(f"p{index}", counters={"s": {"n": "1"}}) for index in range(4))]
    )
    off = Features.from_dict({**ALL.to_dict(), "partitionableDevices": False})
    claims = [claim(request("a", 8), request("b", 9)), claim(request("c", 1), name="second")]
    assert solve([item], claims, features=off).kind == "none"


def test_no_counter_runs_into_the_next_one() -> None:
    largest = str(2**63 - 1)
    item = resource_slice(
        [device("d", counters={"s": {"a": largest, "b": "1", "c": largest}})], slices=2
    )
    totals = {"a": largest, "b": "1", "c": largest}
    for name in (None, "a", "b", "c"):
        less = {**totals, name: "0"} if name else totals
        stock = resource_slice(name="c", slices=2, counters={"s": less})
        assert solve([item, stock], claim(request())).kind == ("none" if name else "allocated")
