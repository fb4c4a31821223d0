from __future__ import annotations

from typing import Any

from conformance.seam.overlaps import ClaimHolders, in_use, overlaps_in

Obj = dict[str, Any]


def claim(name: str, *devices: str, version: int = 0, namespace: str = "ns", **result: Any) -> Obj:
    results = [{"driver": "d", "pool": "p", "device": item, **result} for item in devices]
    allocation = {"allocation": {"devices": {"results": results}}} if devices else {}
    meta = {"name": name, "namespace": namespace, "uid": name, "resourceVersion": str(version)}
    return {"kind": "ResourceClaim", "metadata": meta, "status": allocation}


def history(*states: Obj | tuple[str, int]) -> list[tuple[int, str, Obj | None]]:
    """Claims in their versions; a name and a version for one that is deleted."""
    found: list[tuple[int, str, Obj | None]] = []
    for state in states:
        if isinstance(state, tuple):
            found.append((state[1], state[0], None))
        else:
            meta = state["metadata"]
            found.append((int(meta["resourceVersion"]), meta["uid"], state))
    return found


def test_a_device_that_was_released_first_is_in_one_claim() -> None:
    states = history(
        claim("a", "gpu-0", version=1), claim("a", version=2), claim("b", "gpu-0", version=3),
        ("b", 4), claim("c", "gpu-0", "gpu-1", version=5), claim("d", "gpu-2", version=6),
    )  # fmt: skip
    assert overlaps_in(states) == []


def test_a_device_in_two_claims_is_told_of_the_scheduler() -> None:
    states = history(claim("a", "gpu-0", version=1), claim("b", "gpu-1", "gpu-0", version=2))
    (found,) = overlaps_in(states)
    assert (found.device, found.claim, found.holder, found.version) == ("gpu-0", "ns/b", "ns/a", 2)
    assert str(found).startswith("kube-scheduler allocated gpu-0 of pool p to ns/b while ns/a has")


def test_admin_access_and_shares_have_others_beside_them() -> None:
    for sharing in ({"adminAccess": True}, {"shareID": "a671734a-e8e5-11e4-8fde-42010af09327"}):
        one, two = claim("a", "gpu-0", version=1), claim("b", "gpu-0", version=2, **sharing)
        assert overlaps_in(history(one, two)) == []
        assert overlaps_in(history(two, one)) == []


def test_what_happens_until_nobody_has_the_device_follows_from_the_first_overlap() -> None:
    states = history(
        claim("a", "gpu-0", version=1), claim("b", "gpu-0", version=2), ("b", 3),
        claim("c", "gpu-0", version=4), ("a", 5), claim("d", "gpu-0", version=6),
    )  # fmt: skip
    (found,) = overlaps_in(states)
    assert [item.claim for item in found.chain] == ["ns/b", "ns/c", "ns/d"]
    assert [item.holder for item in found.chain] == ["ns/a", "ns/a", "ns/c"]
    assert "it also went to ns/c, ns/d" in str(found)
    again = history(
        ("c", 7), ("d", 8), claim("e", "gpu-0", version=9), claim("f", "gpu-0", version=10)
    )
    assert [item.claim for item in overlaps_in([*states, *again])] == ["ns/b", "ns/f"]


def test_the_same_claim_written_again_is_no_other_claim() -> None:
    states = history(*(claim("a", "gpu-0", version=version) for version in (1, 2, 3)))
    assert overlaps_in(states) == []


def test_after_a_new_list_only_what_the_list_has_counts() -> None:
    watch = ClaimHolders()
    watch.hear("ADDED", claim("a", "gpu-0", version=10))
    # a was deleted, and b got the device, while nothing was heard.
    listed = [claim("b", "gpu-0", version=15)]
    watch.hear("LISTED", {"metadata": {"resourceVersion": "20"}, "items": listed})
    assert watch.overlaps() == []
    listed = [claim("b", "gpu-0", version=15), claim("c", "gpu-0", version=16)]
    watch.hear("LISTED", {"metadata": {"resourceVersion": "30"}, "items": listed})
    (found,) = watch.overlaps()
    assert (found.claim, found.version) == ("ns/c", 30)


def test_an_old_state_told_late_brings_no_deleted_claim_back() -> None:
    watch = ClaimHolders()
    watch.hear("DELETED", claim("a", "gpu-0", version=12))
    watch.hear("ADDED", claim("a", "gpu-0", version=10))
    watch.hear("ADDED", claim("b", "gpu-0", version=13))
    assert watch.overlaps() == []


def test_a_finding_begins_where_the_run_is_concerned_and_is_told_once() -> None:
    watch = ClaimHolders()
    for namespace in ("ours", "also-ours"):
        watch.follow(namespace)
    for state in (
        claim("a", "gpu-0", namespace="foreign", version=1),
        claim("b", "gpu-0", namespace="foreign", version=2),
        claim("c", "gpu-0", namespace="ours", version=3),
        claim("d", "gpu-0", namespace="also-ours", version=4),
        claim("e", "gpu-1", namespace="ours", version=5),
        claim("f", "gpu-1", namespace="foreign", version=6),
    ):
        watch.hear("MODIFIED", state)
    first, second = watch.touching("ours")
    assert [item.claim for item in first.chain] == ["ours/c", "also-ours/d"]
    assert (first.namespace, second.namespace) == ("ours", "ours")
    assert [item.namespace for item in watch.touching("also-ours")] == ["ours"]
    assert watch.touching("elsewhere") == []


def claim_of(node: str = "n", driver: str = "d", **status: Any) -> dict[str, Any]:
    fields = [{"key": "metadata.name", "operator": "In", "values": [node]}]
    allocation = {
        "devices": {"results": [{"driver": driver, "pool": node, "device": "x"}]},
        "nodeSelector": {"nodeSelectorTerms": [{"matchFields": fields}]},
    }
    return {"status": {"allocation": allocation, "reservedFor": [{"name": "p"}], **status}}


def test_only_claims_that_somebody_has_on_that_node_count() -> None:
    others = [
        claim_of("m"),
        claim_of(driver="e"),
        claim_of(reservedFor=[]),
        claim_of(allocation=None),
        {},
    ]
    assert in_use([claim_of(), *others, claim_of()], "d", "n") == 2
