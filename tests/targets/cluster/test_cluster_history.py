from __future__ import annotations

import threading
from typing import Any

from conformance.targets.cluster.decisions import find_decisions
from conformance.targets.cluster.history import History


def claim(
    name: str, devices: str = "", pod: str = "", selector: str = "", namespace: str = "demo"
) -> dict[str, Any]:
    status: dict[str, Any] = {}
    if devices:
        status["allocation"] = {"devices": {"results": [{"device": d} for d in devices.split(",")]}}
        if selector:
            field = {"key": "metadata.name", "operator": "In", "values": [selector]}
            status["allocation"]["nodeSelector"] = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    if pod:
        status["reservedFor"] = [{"resource": "pods", "name": pod, "uid": f"uid-of-{pod}"}]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": namespace, "uid": f"uid-of-{name}"},
        "spec": {},
        "status": status,
    }


def thing(kind: str, name: str, **spec: Any) -> dict[str, Any]:
    version = "v1" if kind == "Node" else "resource.k8s.io/v1"
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec}


class Recorded(History):
    """A history that is told objects in the order of their versions or in any other."""

    def tell(self, version: int, obj: dict[str, Any], *, gone: bool = False) -> None:
        uid = obj["metadata"].get("uid", obj["metadata"]["name"])
        self.add(obj["kind"], uid, version, None if gone else obj)

    def decided(self, nodes: dict[str, str] | None = None, namespace: str = "demo") -> list[Any]:
        return find_decisions(self, namespace, nodes or {}, "1.37.1", {"DRAAdminAccess": True})


def names(objects: list[dict[str, Any]]) -> list[str]:
    return [obj["metadata"]["name"] for obj in objects]


def test_a_state_lasts_from_its_version_until_the_next() -> None:
    history = Recorded()
    history.tell(5, thing("Node", "n", a=1))
    history.tell(9, thing("Node", "n", a=2))
    history.tell(12, thing("Node", "n"), gone=True)
    seen = [[obj["spec"] for obj in history.at(v)] for v in (4, 5, 8, 9, 11, 12)]
    assert seen == [[], [{"a": 1}], [{"a": 1}], [{"a": 2}], [{"a": 2}], []]


def test_what_comes_late_or_again_changes_nothing() -> None:
    history = Recorded()
    history.tell(9, thing("Node", "n", a=2))
    history.tell(5, thing("Node", "n", a=1))
    history.tell(20, thing("Node", "n", a=2))
    assert [len(states) for _, states in history.states("Node")] == [1]
    assert history.newest == 20


def test_a_list_tells_what_was_deleted_meanwhile() -> None:
    history = Recorded()
    history.tell(5, thing("Node", "old"))
    history.tell(30, thing("Node", "new"))
    history.add_list("Node", [], 20)
    assert names(history.at(19)) == ["old"]
    assert names(history.at(20)) == []
    assert names(history.at(30)) == ["new"]


def test_pruning_keeps_the_state_at_the_floor_and_all_after_it() -> None:
    history = Recorded()
    for version in (5, 10, 15):
        history.tell(version, thing("Node", "n", v=version))
    history.tell(3, thing("Node", "gone"))
    history.tell(6, thing("Node", "gone"), gone=True)
    history.prune(12)
    assert [obj["spec"]["v"] for obj in history.at(12)] == [10]
    assert [obj["spec"]["v"] for obj in history.at(15)] == [15]
    assert [len(states) for _, states in history.states("Node")] == [2]


def test_waiting_for_a_list_ends_when_all_of_it_is_known() -> None:
    history = Recorded()
    history.tell(3, thing("Node", "b"))
    assert not history.await_list("Node", {"a": 7}, 8, 0.05)
    timer = threading.Timer(0.05, lambda: history.tell(7, thing("Node", "a")))
    timer.start()
    assert not history.await_list("Node", {"a": 7}, 8, 0.3)  # b is gone, and that is not known
    history.tell(8, thing("Node", "b"), gone=True)
    history.tell(9, thing("Node", "c"))  # made after the list
    assert history.await_list("Node", {"a": 7}, 8, 0)


def test_claims_that_were_allocated_for_one_pod_are_one_decision_from_before_the_first() -> None:
    history = Recorded()
    history.tell(1, thing("ResourceSlice", "s", devices=[{"name": "d1"}]))
    history.tell(2, thing("DeviceClass", "c"))
    history.tell(3, thing("Node", "n"))
    history.tell(4, claim("a"))
    history.tell(5, claim("b"))
    history.tell(6, claim("other", "d9", "elsewhere", namespace="else"))
    history.tell(10, claim("a", "d1", "pod0"))
    history.tell(12, claim("b", "d2", "pod0"))
    history.tell(11, thing("ResourceSlice", "s", devices=[]))  # too late for this decision
    (decision,) = history.decided({"uid-of-pod0": "n"})
    assert (decision.pod, decision.namespace, decision.node) == ("pod0", "demo", "n")
    assert names(decision.claims) == ["a", "b"]
    assert all("allocation" not in c["status"] for c in decision.claims)
    assert [a["devices"]["results"][0]["device"] for a in decision.allocations] == ["d1", "d2"]
    snapshot = decision.snapshot
    assert snapshot["kind"] == "Snapshot"
    assert snapshot["kubernetes"] == "1.37.1"
    assert snapshot["features"]["adminAccess"] is True
    assert snapshot["slices"][0]["spec"]["devices"] == [{"name": "d1"}]
    assert names(snapshot["deviceClasses"]) == ["c"]
    assert names(snapshot["nodes"]) == ["n"]
    assert names(snapshot["claims"]) == ["a", "b"]
    assert names(snapshot["allocated"]) == ["other"]


def test_decisions_come_in_order_and_each_sees_the_ones_before() -> None:
    history = Recorded()
    for version, name in ((1, "a"), (2, "b")):
        history.tell(version, claim(name))
    history.tell(8, claim("b", "d2", "pod1"))
    history.tell(6, claim("a", "d1", "pod0"))
    first, second = history.decided()
    assert (first.pod, second.pod) == ("pod0", "pod1")
    assert names(first.snapshot["allocated"]) == []
    assert names(second.snapshot["allocated"]) == ["a"]


def test_a_claim_that_joins_an_allocation_or_changes_otherwise_is_no_decision() -> None:
    history = Recorded()
    history.tell(1, claim("a"))
    history.tell(6, claim("a", "d1", "pod0"))
    joined = claim("a", "d1", "pod0")
    joined["status"]["reservedFor"].append({"resource": "pods", "name": "p", "uid": "u"})
    history.tell(7, joined)
    assert len(history.decided()) == 1
    assert history.decided(namespace="other") == []


def test_a_claim_that_is_released_and_allocated_again_is_decided_twice() -> None:
    history = Recorded()
    history.tell(1, claim("a"))
    history.tell(2, claim("a", "d1", "pod0"))
    history.tell(3, claim("a"))
    history.tell(4, claim("a", "d2", "pod0"))
    assert [d.allocations[0]["devices"]["results"] for d in history.decided()] == [
        [{"device": "d1"}],
        [{"device": "d2"}],
    ]


def test_what_is_allocated_when_a_pod_is_tried_again_is_another_decision() -> None:
    history = Recorded()
    history.tell(1, claim("holder", devices="gpu-0", pod="before"))
    history.tell(2, claim("own"))
    history.tell(3, claim("shared"))
    history.tell(5, claim("own", devices="gpu-1", pod="p"))
    # The shared claim could not be written, so that the reservation of the other is taken back.
    history.tell(6, claim("own", devices="gpu-1"))
    history.tell(7, claim("holder", devices="gpu-0"), gone=True)
    history.tell(8, claim("own", devices="gpu-1", pod="p"))
    history.tell(9, claim("shared", devices="gpu-0", pod="p"))
    first, second = (one for one in history.decided() if one.pod == "p")
    assert [names(list(one.claims)) for one in (first, second)] == [["own"], ["shared"]]
    assert names(first.snapshot["allocated"]) == ["holder"]
    assert names(second.snapshot["allocated"]) == ["own"]


def test_a_pod_without_a_known_node_is_placed_by_the_allocations_selector() -> None:
    history = Recorded()
    history.tell(1, claim("a"))
    history.tell(2, claim("a", "d1", "pod0", selector="node-7"))
    history.tell(3, claim("b"))
    history.tell(4, claim("b", "d1", "pod1"))
    assert [d.node for d in history.decided()] == ["node-7", ""]


def test_a_claim_first_seen_allocated_is_given_without_its_allocation() -> None:
    history = Recorded()
    history.tell(5, claim("a", "d1", "pod0"))
    (decision,) = history.decided()
    assert decision.claims[0]["status"] == {}
    assert decision.snapshot["allocated"] == []


def test_a_decision_in_a_gap_of_any_kind_is_not_known_and_others_are() -> None:
    history = Recorded()
    history.tell(10, claim("before", "gpu-0", "p0"))
    history.tell(15, claim("within", "gpu-0", "p1"))
    history.add_list("ResourceClaim", ["uid-of-within"], 20, since=11)
    history.tell(30, claim("after", "gpu-1", "p2"))
    history.add_list("ResourceSlice", [], 40, since=33)
    history.tell(35, claim("unseen-slices", "gpu-1", "p3"))
    known = {names(list(item.claims))[0]: item.unknown for item in history.decided()}
    assert [name for name, why in known.items() if not why] == ["before", "after"]
    assert "ResourceClaim" in known["within"]
    assert "between resourceVersion 11 and 20" in known["within"]
    assert "ResourceSlice" in known["unseen-slices"]


def test_a_kind_is_known_up_to_a_list_that_says_nothing_new() -> None:
    history = Recorded()
    history.tell(10, claim("before", "gpu-0", "p0"))
    assert history.await_list("DeviceTaintRule", {}, 12, timeout=0)
    history.tell(15, claim("within", "gpu-1", "p1"))
    history.add_list("DeviceTaintRule", [], 20, since=3)
    known = {names(list(item.claims))[0]: item.unknown for item in history.decided()}
    assert known["before"] == ""
    assert "between resourceVersion 12 and 20" in known["within"]


def test_a_gap_is_forgotten_with_the_versions_in_it() -> None:
    history = Recorded()
    history.tell(10, claim("before", "gpu-0", "p0"))
    history.add_list("DeviceTaintRule", [], 20, since=10)
    history.prune(20)
    assert "between resourceVersion 10 and 20" in history.explain_gap(20)
    history.prune(21)
    assert history.explain_gap(20) == ""
