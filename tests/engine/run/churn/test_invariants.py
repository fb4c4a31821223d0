"""Each invariant, over histories of a few versions; and what is no violation."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.engine.run.churn_invariants import Inventory, reserved_for_nobody, violations_in

Obj = dict[str, Any]

SLICE: Obj = {
    "spec": {
        "driver": "d",
        "pool": {"name": "p"},
        "sharedCounters": [{"name": "gpu", "counters": {"memory": {"value": "40Gi"}}}],
        "devices": [
            {"name": "nic", "allowMultipleAllocations": True, "capacity": {"bw": {"value": "10"}}},
            *(
                {
                    "name": f"half-{number}",
                    "consumesCounters": [
                        {"counterSet": "gpu", "counters": {"memory": {"value": "20Gi"}}}
                    ],
                }
                for number in range(3)
            ),
        ],
    }
}


def claim(
    name: str, devices: tuple[str, ...] = (), users: tuple[str, ...] = (), **more: Any
) -> Obj:
    results = [{"driver": "d", "pool": "p", "device": item, **more} for item in devices]
    status: Obj = {"allocation": {"devices": {"results": results}}} if devices else {}
    if users:
        status["reservedFor"] = [{"resource": "pods", "name": u, "uid": u} for u in users]
    return {
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "ns", "uid": name},
        "spec": {},
        "status": status,
    }


def pod(name: str, *claims: str, node: str = "", phase: str = "Pending", **meta: Any) -> Obj:
    return {
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "ns", "uid": name, **meta},
        "spec": {
            "resourceClaims": [{"name": c, "resourceClaimName": c} for c in claims],
            **({"nodeName": node} if node else {}),
        },
        "status": {"phase": phase},
    }


def numbered(*states: Obj | str) -> list[tuple[int, str, Obj | None]]:
    return [
        (number, state, None)
        if isinstance(state, str)
        else (number, state["metadata"]["uid"], state)
        for number, state in enumerate(states, 1)
    ]


def broken(*states: Obj | str) -> list[tuple[str, int]]:
    found = violations_in(numbered(*states), Inventory.of([SLICE]))
    return [(violation.rule, violation.version) for violation in found]


def test_a_device_in_two_claims() -> None:
    assert broken(claim("a", ("x",)), claim("b", ("x",))) == [("overlap", 2)]
    assert broken(claim("a", ("x",)), "a", claim("b", ("x",))) == []


def test_shares_beyond_the_capacity() -> None:
    def share(name: str, amount: str) -> Obj:
        return claim(name, ("nic",), shareID=name, consumedCapacity={"bw": amount})

    assert broken(share("a", "6"), share("b", "4")) == []
    assert broken(share("a", "6"), share("b", "5")) == [("capacity", 2)]
    assert broken(share("a", "6"), "a", share("b", "5")) == []


def test_partitions_beyond_their_counters() -> None:
    halves = [claim(f"c{number}", (f"half-{number}",)) for number in range(3)]
    assert broken(*halves[:2]) == []
    assert broken(*halves) == [("counter", 3)]
    assert broken(halves[0], halves[1], "c0", halves[2]) == []
    admin = claim("c2", ("half-2",), adminAccess=True)
    assert broken(halves[0], halves[1], admin) == []


@pytest.mark.parametrize("after", [claim("a", ("x",)), claim("a"), "a"])
def test_a_claim_is_not_taken_from_a_bound_pod(after: Obj | str) -> None:
    start = [pod("p", "a"), claim("a", ("x",), ("p",))]
    assert broken(*start, pod("p", "a", node="n"), after) == [("in-use", 4)]
    assert broken(*start, after) == []  # it may be taken back before the pod is bound
    assert (
        broken(*start, pod("p", "a", node="n"), pod("p", "a", node="n", phase="Failed"), after)
        == []
    )
    assert broken(*start, pod("p", "a", node="n"), "p", after) == []
    leaving = pod("p", "a", node="n", deletionTimestamp="now")
    assert broken(*start, leaving, after) == [("in-use", 4)]


def test_a_pod_is_bound_only_with_all_of_its_claims() -> None:
    bound = pod("p", "a", "b", node="n")
    both = [claim("a", ("x",), ("p",)), claim("b", ("y",), ("p",))]
    assert broken(pod("p", "a", "b"), *both, bound) == []
    assert broken(pod("p", "a", "b"), both[0], bound) == [("unreserved", 3)]
    # Ended before it was bound: what it had reserved was taken back.
    assert broken(pod("p", "a", "b"), pod("p", "a", "b", node="n", phase="Succeeded")) == []
    assert broken(pod("p", "a", "b"), both[0], claim("b", ("y",)), bound) == [("unreserved", 4)]


def test_a_claim_is_reserved_only_for_pods_that_use_it() -> None:
    assert broken(pod("p", "other"), claim("a", ("x",), ("p",))) == [("foreign", 2)]
    own = claim("p-own", ("x",), ("p",))
    own["metadata"]["ownerReferences"] = [{"uid": "p"}]
    assert broken(pod("p"), own) == []


def reserved(*states: Obj | str) -> list[int]:
    return [violation.version for violation in reserved_for_nobody(numbered(*states))]


def test_a_reservation_of_a_pod_that_is_done_is_at_last_taken_back() -> None:
    used, freed = claim("a", ("x",), ("p", "q")), claim("a", ("x",), ("q",))
    both = [pod("p", "a", node="n"), pod("q", "a", node="n"), used]
    assert reserved(*both) == []
    assert reserved(*both, pod("p", "a", node="n", deletionTimestamp="now")) == []
    for end in (
        "p",
        pod("p", "a", node="n", phase="Failed"),
        pod("p", "a", deletionTimestamp="now"),
    ):
        assert reserved(*both, end) == [3]
        assert reserved(*both, end, "a") == []
        assert reserved(*both, end, freed) == []
        assert reserved(*both, end, freed, used) == []  # kubernetes#141274
        more = claim("a", ("x",), ("p", "q", "r"))
        gone: list[Obj | str] = [pod("r", "a", node="n"), more, "r"]
        assert reserved(*both, end, *gone) == [6, 6]
        assert reserved(*both, end, freed, *gone) == []  # its controller repeats itself
