"""A cluster that changes is judged as its snapshot would be, change by change; nothing is kept."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from conformance.compare.audit.changing import SECONDS, Auditor
from conformance.compare.audit.once import audit
from conformance.compare.evidence import Obj
from reference_allocator.features import Features
from tests.compare.cluster import allocation, claim, device_class, node, pod, snapshot
from tests.compare.cluster import resource_slice as slice_of

Key = tuple[str, str]
FEATURES = Features.for_version("1.37.1")


def held(name: str, device: str, where: str, **meta: Any) -> Obj:
    made = claim(name)
    made["metadata"] |= meta
    made["status"] = {
        "allocation": allocation(device, node_name=where),
        "reservedFor": [{"resource": "pods", "name": name, "uid": f"uid-{name}"}],
    }
    return made


def user(name: str, phase: str) -> Obj:
    made = pod(name, nodeName="node-a") | {"status": {"phase": phase}}
    made["metadata"]["uid"] = f"uid-{name}"
    return made


def generation(number: int) -> Obj:
    made = slice_of("node-a")
    made["spec"]["pool"]["generation"] = number
    return made


def other_class() -> Obj:
    made = device_class()
    made["spec"]["selectors"] = [{"cel": {"expression": "false"}}]
    return made


STATES: dict[Key, list[Obj | None]] = {
    ("Node", "a"): [node("node-a"), None],
    ("Node", "b"): [node("node-b"), None],
    ("DeviceClass", "gpu"): [device_class(), other_class()],
    ("ResourceSlice", "a"): [slice_of("node-a"), slice_of("node-a", ["40Gi"]), generation(2), None],
    ("ResourceSlice", "b"): [slice_of("node-b"), None],
    **{
        ("ResourceClaim", f"uid-{name}"): [
            claim(name),
            held(name, "gpu-0", "node-a"),
            held(name, "gpu-1", "node-a"),
            held(name, "gpu-0", "node-b"),
            held(name, "gpu-1", "node-a", deletionTimestamp="T", finalizers=["x.io/y"]),
            None,
        ]
        for name in ("one", "two", "three")
    },
    **{
        ("Pod", f"uid-{name}"): [user(name, "Running"), user(name, "Failed"), None]
        for name in ("one", "two", "three")
    },
}
CHANGE = st.sampled_from([(key, state) for key, states in STATES.items() for state in states])


def whole(objects: dict[Key, Obj]) -> set[str]:
    def of(kind: str) -> tuple[Obj, ...]:
        return tuple(objects[key] for key in sorted(objects) if key[0] == kind)

    claims = sorted(of("ResourceClaim"), key=lambda item: str(item["metadata"]["name"]))
    document = snapshot(
        slices=of("ResourceSlice"),
        device_classes=of("DeviceClass"),
        nodes=of("Node"),
        pods=of("Pod"),
        claims=tuple(item for item in claims if "status" not in item),
        allocated=tuple(item for item in claims if "status" in item),
    )
    return {str(item) for item in audit({"pods": [], **document})}


@settings(max_examples=150, deadline=None)
@given(st.lists(st.lists(CHANGE, max_size=4), min_size=1, max_size=12))
def test_what_changes_is_judged_as_the_whole_cluster_would_be(
    batches: list[list[tuple[Key, Obj | None]]],
) -> None:
    objects = {key: state for key, states in STATES.items() if (state := states[0]) is not None}
    auditor = Auditor("1.37.1", FEATURES, 0)
    auditor.take_changes(objects)
    for moment, batch in enumerate(batches):
        auditor.judge(moment * 10)
        for key, state in batch:
            if state is None:
                objects.pop(key, None)
            else:
                objects[key] = state
        auditor.take_changes(dict(batch))
        auditor.judge(moment * 10 + 1)
        auditor.judge(moment * 10 + 1 + SECONDS)
        assert {str(item) for item in auditor.findings} == whole(objects)
    auditor.take_changes(dict.fromkeys(STATES))
    assert auditor.judge(1e6).new == ()
    assert auditor.allocated == 0
    left: dict[str, Any] = vars(auditor)
    left = {name: value for name, value in left.items() if isinstance(value, dict | set)}
    assert not any(left.pop("_objects").values())
    assert not any(left.values()), left


def test_a_finding_is_told_once_when_it_has_lasted_and_again_when_it_has_passed() -> None:
    auditor = Auditor("1.37.1", FEATURES, settle=10)
    states = {key: states[0] for key, states in STATES.items()}
    one, two = ("ResourceClaim", "uid-one"), ("ResourceClaim", "uid-two")
    states[one], states[two] = STATES[one][1], STATES[two][1]
    auditor.take_changes(states)
    assert auditor.allocated == 2
    news = auditor.judge(100)
    assert (news.new, news.due) == ((), 100 + SECONDS)
    assert [item.rule for item in auditor.judge(100 + SECONDS).new] == ["double-allocation"]
    auditor.take_changes({("Pod", "uid-one"): None})
    news = auditor.judge(101)
    assert (news.new, news.due) == ((), 111)
    assert [item.rule for item in auditor.judge(111).new] == ["reserved-for-nobody"]
    assert auditor.judge(112).new == ()
    auditor.take_changes({two: None})
    assert [item.rule for item in auditor.judge(113).passed] == ["double-allocation"]
    assert [item.rule for item in auditor.findings] == ["reserved-for-nobody"]


def test_an_object_that_cannot_be_read_leaves_its_own_pool_unjudged() -> None:
    auditor = Auditor("1.37.1", FEATURES, settle=0)
    one, two = held("one", "gpu-0", "node-a"), held("two", "gpu-0", "node-b")
    broken = slice_of("node-a")
    broken["spec"]["devices"] = "gone"
    states: dict[Key, Obj | None] = {
        ("Node", "a"): node("node-a"),
        ("DeviceClass", "gpu"): device_class(),
        ("ResourceSlice", "a"): broken,
        ("ResourceClaim", "1"): one,
    }
    auditor.take_changes(states)
    auditor.judge(0)
    states = {
        ("Node", "b"): node("node-b"),
        ("ResourceSlice", "b"): slice_of("node-b", []),
        ("ResourceClaim", "2"): two,
    }
    auditor.take_changes(states)
    auditor.judge(0)
    auditor.judge(1)
    rules = {(item.rule, item.subject) for item in auditor.findings}
    assert ("not-judged", "ns/one") in rules
    assert ("device", "ns/two") in rules
