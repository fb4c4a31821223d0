from __future__ import annotations

import gc
import json
import threading
from pathlib import Path
from typing import Any

import pytest

from conformance.targets.reference import ReferenceOptions, ReferenceTarget
from conformance.targets.reference.device_source import SimulatedGpus
from conformance.targets.reference.scope import ReferenceScope
from kube.nodes import RUN_LABEL
from kube.values import Obj, Query, Ref
from tests.kubesim import kit
from tests.kubesim.conftest import Open, new_scope


def test_what_is_asked_at_once_is_seen_together(open_target: Open) -> None:
    scope = new_scope(open_target(nodes=()))
    scope.create(kit.node("a"))
    seen: list[object] = []

    def make_and_look() -> None:
        scope.create(kit.pod(f"p{len(seen)}"))
        seen.append([pod["spec"].get("nodeName") for pod in scope.find(Query("v1", "Pod"))])

    scope.at_once([make_and_look, make_and_look])
    make_and_look()
    assert seen == [[None], [None, None], ["a", "a", "a"]]


def test_capabilities_say_what_it_serves(open_target: Open) -> None:
    target = open_target(devices=SimulatedGpus("a100-40x8", "gpu.example.org"))
    found = target.capabilities()
    assert found.tiers == {"allocation", "node", "device"}
    assert found.driver == "gpu.example.org"
    assert found.nodes == ("reference-node-0",)
    others = {name for name in found.abilities if not name.startswith("fault:")}
    assert others == {
        "cdi",
        "device-health",
        "double-allocation",
        "image",
        "impersonation",
        "kubelet-account",
        "kubelet-metrics",
        "metrics:kube-controller-manager",
        "metrics:kube-scheduler",
        "pod-resources",
        "root-containers",
    }
    assert {"fault:kube-scheduler", "fault:kubelet", "fault:node"} <= found.abilities
    assert {"v1", "batch/v1", "resource.k8s.io/v1", "resource.k8s.io/v1beta1"} <= found.served_apis
    assert found.feature_gates["DynamicResourceAllocation"] is True
    assert "NVML" in found.simulated
    scope = new_scope(target)
    [published] = scope.find(Query(kit.DRA, "ResourceSlice"))
    assert published["spec"]["driver"] == "gpu.example.org"
    [owner] = published["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"]) == ("Node", "reference-node-0")


def test_driver_publishes_its_slices_again(scope: ReferenceScope) -> None:
    [published] = scope.find(Query(kit.DRA, "ResourceSlice"))
    ref = Ref.of(published)
    scope.patch(ref, {"spec": {"devices": []}})
    assert kit.get(scope, ref)["spec"] == published["spec"]
    scope.delete(ref)
    again = kit.get(scope, ref)
    assert again["spec"] == published["spec"]
    assert again["metadata"]["uid"] != published["metadata"]["uid"]


def test_unknown_version_is_refused_and_leaves_nothing() -> None:
    with pytest.raises(ValueError, match=r"1\.20"):
        ReferenceTarget(ReferenceOptions(kubernetes_version="1.20.0"))


def test_close_removes_the_files_of_the_driver(open_target: Open) -> None:
    target = open_target()
    root: Path = target._root
    assert root.is_dir()
    target.close()
    target.close()
    assert not root.exists()


def test_files_go_also_when_nobody_closes_it() -> None:
    target = ReferenceTarget()
    root: Path = target._root
    del target
    gc.collect()
    assert not root.exists()


def test_time_passes_only_virtually(scope: ReferenceScope, target: ReferenceTarget) -> None:
    before = target.now()
    scope.pause(3600)
    assert target.now() == before + 3600
    assert scope.wait(lambda: None, 100) is None
    assert target.now() == before + 3700


def test_wait_returns_at_the_first_moment_that_fits(
    scope: ReferenceScope, target: ReferenceTarget
) -> None:
    scope.create(kit.pod("p"))
    kit.runs(scope, "p")
    started = target.now()
    scope.delete(kit.pod_ref("p"), grace_seconds=20)
    kit.gone(scope, kit.pod_ref("p"))
    assert target.now() - started < 1


def test_deleting_what_is_not_there_is_no_error(scope: ReferenceScope) -> None:
    scope.delete(kit.pod_ref("nobody"))
    assert scope.get(kit.pod_ref("nobody")) is None


def test_owned_lists_what_carries_the_run_label_in_deletion_order(
    target: ReferenceTarget, scope: ReferenceScope
) -> None:
    def of_run(obj: Obj, run: str) -> Obj:
        obj["metadata"]["labels"] = {RUN_LABEL: run}
        return obj

    scope.create(of_run(kit.device_class("mine"), "r1"))
    scope.create(of_run(kit.claim("c"), "r1"))
    scope.create(of_run(kit.pod("p", claims={"g": "c"}), "r1"))
    scope.create(of_run(kit.claim("other"), "r2"))
    kit.runs(scope, "p")
    assert [ref.kind for ref in target.owned("r1")] == ["Pod", "ResourceClaim", "DeviceClass"]
    assert target.owned("r1")[0] == Ref("v1", "Pod", "p", "ns")
    assert len(target.owned()) == 4


def test_diagnostics_show_objects_log_and_snapshot(
    target: ReferenceTarget, scope: ReferenceScope
) -> None:
    scope.create(kit.claim("c", kit.request(count=9)))
    scope.create(kit.pod("p", claims={"g": "c"}))
    other = new_scope(target, "other")
    other.create(kit.pod("stranger"))
    found = scope.diagnostics()
    assert [pod["metadata"]["name"] for pod in json.loads(found["pods.json"])] == ["p"]
    assert "cannot allocate all claims" in found["reference.log"]
    assert "stranger" not in found["reference.log"]
    assert json.loads(found["snapshot.json"])["kind"] == "Snapshot"
    assert {"nodes.json", "resourceslices.json", "deviceclasses.json"} <= set(found)


def story(target: ReferenceTarget, namespaces: tuple[str, ...]) -> dict[str, Any]:
    """Runs the same in some namespaces, returns what one of them looks like."""
    for namespace in namespaces:
        scope = new_scope(target, namespace)
        if scope.get(Ref(kit.DRA, "DeviceClass", kit.CLASS)) is None:
            scope.create(kit.device_class())
        scope.create(kit.template("t"))
        scope.create(kit.pod("p", templates={"g": "t"}))
        kit.runs(scope, "p")
    scope = target.scope("b")
    return {
        "pods": scope.find(Query("v1", "Pod")),
        "claims": scope.find(Query(kit.DRA, "ResourceClaim")),
        "events": scope.find(Query("v1", "Event")),
    }


def test_two_runs_are_alike_to_the_last_uid(open_target: Open) -> None:
    assert story(open_target(), ("a", "b")) == story(open_target(), ("a", "b"))


def test_other_namespaces_do_not_change_uids_and_names(open_target: Open) -> None:
    alone, beside = story(open_target(), ("b",)), story(open_target(), ("a", "b"))
    for key in ("pods", "claims"):
        names = [
            [(obj["metadata"]["name"], obj["metadata"]["uid"]) for obj in found[key]]
            for found in (alone, beside)
        ]
        assert names[0] == names[1]


def test_another_seed_gives_other_uids(open_target: Open) -> None:
    first, second = story(open_target(seed=1), ("b",)), story(open_target(seed=2), ("b",))
    assert first["pods"][0]["metadata"]["uid"] != second["pods"][0]["metadata"]["uid"]


def test_what_is_returned_can_be_changed_without_harm(scope: ReferenceScope) -> None:
    created = scope.create(kit.claim("c"))
    created["spec"]["devices"]["requests"].clear()
    found = kit.get(scope, kit.claim_ref("c"))
    found["metadata"].clear()
    assert len(kit.get(scope, kit.claim_ref("c"))["spec"]["devices"]["requests"]) == 1


def test_what_was_sent_is_not_changed(scope: ReferenceScope) -> None:
    sent = kit.pod("p", kit.container(resources={"limits": {"example.com/x": 1}}))
    before = json.dumps(sent)
    scope.create(sent)
    assert json.dumps(sent) == before


def test_scopes_can_be_used_from_several_threads(open_target: Open) -> None:
    target = open_target(devices=SimulatedGpus("a100-40x8"))
    new_scope(target, "first").create(kit.device_class())
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for round_ in range(3):
                namespace = f"ns-{number}-{round_}"
                scope = new_scope(target, namespace)
                scope.create(kit.template("t"))
                scope.create(kit.pod("p", templates={"g": "t"}))
                kit.runs(scope, "p")
                assert len(kit.seen(scope, "p")) == 1
                scope.delete(Ref("v1", "Namespace", namespace))
                kit.gone(scope, Ref("v1", "Namespace", namespace))
        except BaseException as error:  # noqa: BLE001 - handed to the test's own thread
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert target.scope("first").observe.cdi_claims() == {}
