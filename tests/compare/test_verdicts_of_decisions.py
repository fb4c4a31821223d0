from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import pytest

from conformance.compare.evidence import Obj, ask_reference
from conformance.compare.judging import devices_of, judge, judge_undecided
from conformance.compare.witness import Answer, Witness
from conformance.results.events.comparison import Judgement, Verdict
from kube.base.errors import UsageError
from reference_allocator.features import Features
from tests.compare.cluster import (
    Scripted,
    allocated,
    allocation,
    claim,
    decision,
    device_class,
    node,
    pod,
    prefer,
    resource_slice,
    snapshot,
)


class Unknowing(Witness):
    """The reference, with a checker that stumbles over what is new to it."""

    def check(
        self, snapshot: Obj, claims: Sequence[Obj], allocations: Sequence[Obj], node: str
    ) -> tuple[str, ...]:
        def ask() -> tuple[str, ...]:
            raise KeyError("someday")

        return ask_reference(ask)


def verdict(judgement: Judgement | None) -> str:
    return "none" if judgement is None else str(judgement.verdict)


def test_the_devices_of_the_reference_are_identical() -> None:
    judgement = judge(decision([claim()], [allocation("gpu-0")]))
    assert judgement.verdict is Verdict.IDENTICAL
    assert judgement.violations == ()
    assert (judgement.pod, judgement.node) == ("pod0", "node-a")


def test_other_devices_that_keep_every_rule_are_admissible() -> None:
    judgement = judge(decision([claim()], [allocation("gpu-1")]))
    assert judgement.verdict is Verdict.ADMISSIBLE
    assert "the reference would pick gpu-0 for gpu, not gpu-1 for gpu" in judgement.reason
    assert judgement.reference_allocation is not None
    assert devices_of(judgement.reference_allocation[0]) == devices_of(allocation("gpu-0"))


def test_the_order_of_devices_and_share_ids_do_not_count() -> None:
    found = allocation("gpu-1", "gpu-0")
    assert verdict(judge(decision([claim(count=2)], [found]))) == "identical"
    shared = allocation("gpu-0")
    shared["devices"]["results"][0]["shareID"] = "a671734a-e8e5-11e4-8fde-42010af09327"
    assert devices_of(shared) == devices_of(allocation("gpu-0"))


@pytest.mark.parametrize(
    ("claims", "allocations", "state", "rule"),
    [
        pytest.param(
            [claim()],
            [allocation("gpu-0")],
            snapshot(allocated=(allocated("other", "gpu-0"),)),
            "in-use",
            id="a device that another claim has",
        ),
        pytest.param(
            [claim(memory="64Gi")],
            [allocation("gpu-0")],
            snapshot(slices=(resource_slice(sizes=("40Gi", "80Gi")),)),
            "selector",
            id="a device that the selector refuses",
        ),
        pytest.param(
            [claim(), claim("claim-1")],
            [allocation("gpu-0"), allocation("gpu-0")],
            snapshot(),
            "in-use",
            id="one device for two claims",
        ),
        pytest.param(
            [claim(count=2)], [allocation("gpu-0")], snapshot(), "count", id="too few devices"
        ),
        pytest.param(
            [claim()], [allocation("gpu-7")], snapshot(), "device", id="a device that is not there"
        ),
    ],
)
def test_a_broken_rule_is_inadmissible_and_named(
    claims: list[Obj], allocations: list[Obj], state: Obj, rule: str
) -> None:
    judgement = judge(decision(claims, allocations, state))
    assert judgement.verdict is Verdict.INADMISSIBLE
    assert judgement.reason == judgement.violations[0]
    assert rule in " ".join(judgement.violations)


def test_the_right_devices_with_a_wrong_node_selector_are_inadmissible() -> None:
    found = allocation("gpu-0")
    found["nodeSelector"] = allocation("gpu-0", node_name="node-b")["nodeSelector"]
    judgement = judge(decision([claim()], [found]))
    assert judgement.verdict is Verdict.INADMISSIBLE
    assert "node" in judgement.reason.lower()


def test_the_right_devices_without_the_class_configuration_are_inadmissible() -> None:
    opaque = {"driver": "gpu.example.com", "parameters": {"interval": "Default"}}
    state = snapshot(device_classes=(device_class(config=[{"opaque": opaque}]),))
    judgement = judge(decision([claim()], [allocation("gpu-0")], state))
    assert judgement.verdict is Verdict.INADMISSIBLE
    assert "config" in judgement.reason
    found = allocation("gpu-0")
    found["devices"]["config"] = [{"source": "FromClass", "requests": [], "opaque": opaque}]
    assert verdict(judge(decision([claim()], [found], state))) == "identical"


def test_the_values_of_a_node_selector_are_a_set() -> None:
    def with_values(*values: str) -> Obj:
        found = allocation("gpu-0")
        expression = {"key": "zone", "operator": "In", "values": list(values)}
        found["nodeSelector"] = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
        return found

    witness = Scripted(Answer((with_values("a", "b"),)))
    assert verdict(judge(decision([claim()], [with_values("b", "a")]), witness)) == "identical"
    assert verdict(judge(decision([claim()], [with_values("a")]), witness)) == "inadmissible"


def test_what_the_reference_proves_to_be_impossible_is_reported_with_the_rule() -> None:
    state = snapshot(allocated=(allocated("other", "gpu-0", "gpu-1"),))
    judgement = judge(decision([claim()], [allocation("gpu-0")], state))
    assert judgement.verdict is Verdict.IMPOSSIBLE
    assert "the reference finds no allocation on node node-a" in judgement.reason
    assert "it breaks: in-use" in judgement.reason
    assert judgement.reference_allocation is None


def test_a_search_and_a_checker_that_disagree_are_reported() -> None:
    judgement = judge(decision([claim()], [allocation("gpu-0")]), Scripted())
    assert judgement.verdict is Verdict.IMPOSSIBLE
    assert "search and its checker disagree" in judgement.reason


@pytest.mark.parametrize(
    ("violations", "expected"), [((), "admissible"), (("selector: no",), "inadmissible")]
)
def test_a_search_that_gave_up_proves_nothing(violations: tuple[str, ...], expected: str) -> None:
    witness = Scripted(Answer(None, "timeout", proven=False), violations)
    assert verdict(judge(decision([claim()], [allocation("gpu-0")]), witness)) == expected


def test_a_snapshot_taken_after_the_decision_does() -> None:
    state = snapshot(allocated=(allocated("claim-0", "gpu-0"),))
    assert verdict(judge(decision([claim()], [allocation("gpu-0")], state))) == "identical"


def test_a_less_preferred_alternative_is_inadmissible_while_a_preferred_one_is_free() -> None:
    state = snapshot(slices=(resource_slice(sizes=("40Gi", "80Gi")),))
    wanted = prefer("claim-0", "64Gi", "32Gi")
    second = allocation("gpu-0", request="gpu/size-1")
    judgement = judge(decision([wanted], [second], state))
    assert judgement.verdict is Verdict.INADMISSIBLE
    assert "preference: claim claim-0 got alternative gpu/size-1" in judgement.reason
    first = allocation("gpu-1", request="gpu/size-0")
    assert verdict(judge(decision([wanted], [first], state))) == "identical"
    taken = copy.deepcopy(state)
    taken["allocated"] = [allocated("other", "gpu-1")]
    assert verdict(judge(decision([wanted], [second], taken))) == "identical"


def test_an_alternative_after_another_free_choice_is_admissible() -> None:
    # The second request's alternatives depend on what the first request took.
    wanted = prefer("claim-0", "64Gi", "32Gi")
    wanted["spec"]["devices"]["requests"].insert(
        0, {**claim()["spec"]["devices"]["requests"][0], "name": "any"}
    )
    state = snapshot(slices=(resource_slice(sizes=("40Gi", "80Gi")),))
    found = allocation("gpu-1", request="any")
    found["devices"]["results"] += allocation("gpu-0", request="gpu/size-1")["devices"]["results"]
    assert verdict(judge(decision([wanted], [found], state))) == "admissible"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        pytest.param({"snapshot": None}, r"\$\.snapshot", id="no snapshot"),
        pytest.param({"node": ""}, r"\$\.node", id="no node"),
        pytest.param({"node": "node-z"}, r"node 'node-z' is not in the snapshot", id="other node"),
        pytest.param({"claims": []}, r"\$\.allocations: 1 for 0 claims", id="no claims"),
        pytest.param({"claims": "x"}, r"\$\.claims", id="claims are text"),
        pytest.param({"allocations": [1]}, r"\$\.allocations", id="no object"),
        pytest.param({"claims": [{"spec": 7}]}, r"\$\.claims\[0\]\.spec", id="malformed claim"),
        pytest.param({"snapshot": {"kind": "x"}}, r"\$\.apiVersion", id="no snapshot document"),
    ],
)
def test_a_damaged_decision_is_a_usage_error_with_its_path(
    change: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        judge({**decision([claim()], [allocation("gpu-0")]), **change})


def test_a_decision_is_judged_alike_each_time() -> None:
    one, two = (judge(decision([claim()], [allocation("gpu-1")])) for _ in range(2))
    assert one == two


def test_a_pod_left_pending_though_devices_are_free_was_missed() -> None:
    judgement = judge_undecided(snapshot(claims=(claim(),)))
    assert judgement is not None
    assert judgement.verdict is Verdict.MISSED
    assert judgement.node == "node-a"
    assert "claim-0 stayed pending; the reference allocates gpu-0 for gpu" in judgement.reason


@pytest.mark.parametrize(
    "state",
    [
        pytest.param(snapshot(claims=(claim(count=3),)), id="too few devices"),
        pytest.param(
            snapshot(claims=(claim(),), allocated=(allocated("other", "gpu-0", "gpu-1"),)),
            id="all in use",
        ),
        pytest.param(snapshot(claims=(claim(memory="64Gi"),)), id="none matches"),
        pytest.param(snapshot(claims=(claim(count=2), claim("claim-1"))), id="not all together"),
        pytest.param(snapshot(claims=()), id="nothing is asked for"),
        pytest.param(snapshot(claims=(allocated("claim-0", "gpu-0"),)), id="allocated already"),
        pytest.param(
            snapshot(claims=(claim(),), nodes=(node(unschedulable=True),)), id="cordoned node"
        ),
        pytest.param(
            snapshot(
                claims=(claim(),), nodes=(node(taints=[{"key": "x", "effect": "NoSchedule"}]),)
            ),
            id="tainted node",
        ),
        pytest.param(
            {"snapshot": snapshot(claims=(claim(),)), "pod": pod(nodeSelector={"zone": "b"})},
            id="the pod may run elsewhere only",
        ),
    ],
)
def test_a_pod_that_had_to_wait_was_not_missed(state: Obj) -> None:
    assert judge_undecided(state) is None


def test_a_node_that_is_not_ready_does_not_count() -> None:
    broken = node()
    broken["status"]["conditions"][0]["status"] = "False"
    state = snapshot(claims=(claim(),), nodes=(broken, node("node-b")))
    assert judge_undecided(state) is None
    state["slices"].append(resource_slice("node-b"))
    judgement = judge_undecided({"snapshot": state, "pod": pod()})
    assert judgement is not None
    assert (judgement.pod, judgement.node) == ("pod0", "node-b")


@pytest.mark.parametrize(
    ("message", "missed"),
    [
        ("0/1 nodes are available: 1 Insufficient cpu.", False),
        ("0/1 nodes are available: 1 Insufficient memory.", True),
        ("0/1 nodes are available: 1 cannot allocate all claims.", True),
    ],
)
def test_a_pod_that_waits_for_what_devices_take_of_their_node_was_not_missed(
    message: str, missed: bool
) -> None:
    state = snapshot(claims=(claim(),))
    for device in state["slices"][0]["spec"]["devices"]:
        device["nodeAllocatableResources"] = {"cpu": {"mapping": {"deviceMultiplier": "20"}}}
    condition = {"type": "PodScheduled", "status": "False", "message": message}
    waiting = {**pod(), "status": {"conditions": [condition]}}
    judgement = judge_undecided({"snapshot": state, "pod": waiting})
    assert (judgement is not None) is missed


@pytest.mark.parametrize(("lacks_memory", "missed"), [(False, True), (True, False)])
def test_an_error_on_a_node_that_the_pod_cannot_use_ends_the_attempt(
    lacks_memory: bool, missed: bool
) -> None:
    # Its other claim has a device of node-a, and the scheduler asks for devices on node-b as well.
    entries = [{"name": name, "resourceClaimName": name} for name in ("claim-0", "given")]
    elsewhere = resource_slice("node-b")
    for device in elsewhere["spec"]["devices"] if lacks_memory else ():
        del device["capacity"]
    state = snapshot(
        slices=(resource_slice(), elsewhere),
        nodes=(node(), node("node-b")),
        claims=(claim(memory="40Gi"),),
        allocated=(allocated("given", "gpu-0"),),
    )
    judgement = judge_undecided({"snapshot": state, "pod": pod(resourceClaims=entries)})
    assert (judgement is not None) is missed
    assert judgement is None or judgement.node == "node-a"


def test_a_pod_whose_devices_take_nothing_of_their_node_was_missed() -> None:
    condition = {"type": "PodScheduled", "status": "False", "message": "Insufficient cpu"}
    waiting = {**pod(), "status": {"conditions": [condition]}}
    state = {"snapshot": snapshot(claims=(claim(),)), "pod": waiting}
    assert judge_undecided(state) is not None


@pytest.mark.parametrize(("resource", "missed"), [("cpu", False), ("memory", True)])
def test_a_pod_that_waits_for_what_it_requests_beside_devices_was_not_missed(
    resource: str, missed: bool
) -> None:
    condition = {"type": "PodScheduled", "status": "False", "message": "1 Insufficient cpu."}
    waiting = {**pod(), "status": {"conditions": [condition]}}
    waiting["spec"]["containers"] = [{"name": "c", "resources": {"requests": {resource: "1"}}}]
    judgement = judge_undecided({"snapshot": snapshot(claims=(claim(),)), "pod": waiting})
    assert (judgement is not None) is missed


def test_verdicts_are_ordered_from_best_to_worst() -> None:
    assert sorted(Verdict, key=lambda item: item.rank) == [
        Verdict.IDENTICAL,
        Verdict.ADMISSIBLE,
        Verdict.OVERLAPPING,
        Verdict.MISSED,
        Verdict.INADMISSIBLE,
        Verdict.IMPOSSIBLE,
    ]
    assert [item for item in Verdict if item.conformant] == [
        Verdict.IDENTICAL,
        Verdict.ADMISSIBLE,
        Verdict.OVERLAPPING,
    ]


def test_a_selector_with_a_protobuf_message_is_no_verdict() -> None:
    expression = "google.protobuf.BoolValue{value: device.driver != ''}"
    asked = claim()
    exactly = asked["spec"]["devices"]["requests"][0]["exactly"]
    exactly["selectors"] = [{"cel": {"expression": expression}}]
    with pytest.raises(UsageError, match="not judged: a protobuf message"):
        judge(decision([asked], [allocation("gpu-0")]))


def test_a_kind_of_request_that_the_reference_does_not_know_is_no_verdict() -> None:
    unknown = claim()
    unknown["spec"]["devices"]["requests"] = [{"name": "gpu", "someday": {}}]
    with pytest.raises(UsageError, match="newer Kubernetes than the suite knows"):
        judge(decision([unknown], [allocation("gpu-0")]), Unknowing())


@pytest.mark.parametrize(
    ("kubernetes", "expected"), [("1.35.4", Verdict.ADMISSIBLE), ("1.36.3", Verdict.IMPOSSIBLE)]
)
def test_a_selector_that_fails_is_met_by_chance_where_slices_come_in_any_order(
    kubernetes: str, expected: Verdict
) -> None:
    """The first slice's device lacks what the selector reads; another slice's has it."""
    pool = {"name": "node-a", "generation": 1, "resourceSliceCount": 2}
    without, suits = resource_slice(sizes=("40Gi",)), resource_slice(sizes=("40Gi",))
    for item, name in ((without, "a"), (suits, "b")):
        item["metadata"]["name"] = name
        item["spec"] |= {"pool": pool}
    del without["spec"]["devices"][0]["capacity"]
    suits["spec"]["devices"][0]["name"] = "gpu-1"
    state = snapshot(
        kubernetes=kubernetes, features=Features.for_version(kubernetes), slices=(without, suits)
    )
    judgement = judge(decision([claim(memory="40Gi")], [allocation("gpu-1")], state))
    assert judgement.verdict is expected, judgement.reason
    assert "no such key: memory" in judgement.reason
