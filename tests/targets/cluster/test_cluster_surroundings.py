"""What the target tells and takes away: capabilities, ownership, faults, hollow nodes, CDI."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from conformance.targets.cluster.capabilities import discover_capabilities
from conformance.targets.cluster.creator import HollowNodes
from conformance.targets.cluster.reach import Reach
from conformance.targets.cluster.reading import claims_in, spec_files, specs_in
from conformance.targets.cluster.scope import ClusterScope
from kube.base.errors import TargetError
from kube.connection import Connection
from kube.errors import ApiError
from kube.nodes import RUN_LABEL
from kube.values import Ref
from kubesim.apiserver.patches import merge
from tests.kube.fake_api import FakeApi
from tests.targets.cluster.conftest import MakeTarget, RecordingControl, until

DRIVER = "gpu.example.com"
WEBHOOKS = "MutatingWebhookConfiguration"
READY = [{"type": "Ready", "status": "True"}]
UID = "0b5ac1f6-6a6f-4c2b-9d0e-2f3f1f0a9c11"
OTHER = "11111111-6a6f-4c2b-9d0e-2f3f1f0a9c11"


def published(node: str, devices: list[dict[str, Any]], **pool: Any) -> dict[str, Any]:
    spec = {"driver": DRIVER, "nodeName": node, "pool": {"name": node, **pool}, "devices": devices}
    return {"metadata": {"name": f"{node}-{pool.get('generation', 0)}"}, "spec": spec}


@pytest.mark.parametrize("simulated", [False, True])
def test_capabilities_come_from_the_api_server(
    api: FakeApi, make_target: MakeTarget, simulated: bool
) -> None:
    info = {"kubeletVersion": "v1.37.1", "containerRuntimeVersion": "containerd://2.4.1"}
    status = {"conditions": READY, "nodeInfo": info}
    api.put("nodes", {"metadata": {"name": "node-1"}, "status": status})
    api.put("nodes", {"metadata": {"name": "not-ours"}, "status": status})
    devices: list[dict[str, Any]] = [{"name": "a"}]
    if simulated:
        mark = {"dra-conformance.dev/simulated": {"bool": True}}
        devices = [{"name": "a", "attributes": mark}]
    api.put("resourceslices", published("node-1", devices))
    api.metrics = (
        "# HELP kubernetes_feature_enabled ...\n"
        'kubernetes_feature_enabled{name="DRAAdminAccess",stage="BETA"} 1\n'
        'kubernetes_feature_enabled{name="DRAListTypeAttributes",stage="ALPHA"} 0\n'
    )
    found = make_target(driver=DRIVER).capabilities()
    assert found.kubernetes_version == "1.37.1"
    assert {"v1", "resource.k8s.io/v1", "resource.k8s.io/v1beta1"} <= found.served_apis
    assert found.tiers == {"allocation", "node", "device"}
    assert found.simulated == ((f"the devices of {DRIVER}",) if simulated else ())
    assert (found.driver, found.nodes) == (DRIVER, ("node-1",))
    assert found.abilities == {"image", "root-containers"}
    assert found.feature_gates["DRAAdminAccess"] is True
    assert found.feature_gates["DRAListTypeAttributes"] is False
    assert found.versions == {
        "kubernetes": "v1.37.1+fake",
        "kubelet": "v1.37.1",
        "containerd": "2.4.1",
    }


def test_the_oldest_kubelet_says_what_nodes_can_do(api: FakeApi, make_target: MakeTarget) -> None:
    kubelets = {"node-1": "v1.36.3", "node-2": "v1.34.4-eks-1", "other": "v1.33.0"}
    for name, version in kubelets.items():
        status = {"conditions": READY, "nodeInfo": {"kubeletVersion": version}}
        api.put("nodes", {"metadata": {"name": name}, "status": status})
    api.metrics = "".join(
        f'kubernetes_feature_enabled{{name="{name}",stage="BETA"}} 1\n'
        for name in ("DRAExtendedResource", "DRAConsumableCapacity", "ResourceHealthStatusMessage")
    )
    found = discover_capabilities(
        make_target().api, nodes=("node-1", "node-2"), driver=DRIVER, abilities=(), versions={}
    )
    assert (found.kubernetes_version, found.kubelet_version) == ("1.37.1", "1.34.4")
    off = {"DRAExtendedResource": False, "ResourceHealthStatusMessage": False}
    assert found.kubelet_gates.items() >= off.items()
    assert "DRAConsumableCapacity" not in found.kubelet_gates  # kubelets do not ask for it
    assert found.scheduling == (found.kubernetes_version, found.feature_gates)


def test_a_scheduler_of_another_version_decides_by_its_own_rules_and_reports_say_so(
    make_target: MakeTarget,
) -> None:
    found = discover_capabilities(
        make_target().api, nodes=(), driver=None, abilities=(), versions={}, scheduler="1.38.0"
    )
    version, gates = found.scheduling
    assert (found.kubernetes_version, version) == ("1.37.1", "1.38.0")
    assert gates["DRAAdminAccess"]
    said = {"scheduler": "1.38.0", "scheduler's rules": "those of a pre-release of Kubernetes 1.38"}
    assert found.versions.items() >= said.items()


def test_containers_may_be_root_unless_openshift_says_no(
    api: FakeApi, make_target: MakeTarget
) -> None:
    api.put("nodes", {"metadata": {"name": "node-1"}, "status": {"conditions": READY}})
    assert "root-containers" in make_target().capabilities().abilities
    api.served["security.openshift.io/v1"] = {}
    found = make_target().capabilities()
    assert "root-containers" not in found.abilities
    assert found.lacking["root-containers"].startswith("OpenShift's constraints")


def test_a_control_plane_alone_serves_allocation_only(
    api: FakeApi, make_target: MakeTarget
) -> None:
    found = make_target(driver=DRIVER).capabilities()
    assert found.tiers == {"allocation"}
    assert (found.nodes, found.abilities) == ((), frozenset())


def test_faults_go_to_the_clusters_source(make_target: MakeTarget) -> None:
    control = RecordingControl()
    target = make_target(reach=Reach(control=control, components=("kube-scheduler",)))
    assert "fault:kube-scheduler" in target.capabilities().abilities
    scope = target.scope("demo")
    scope.faults.disturb("kube-scheduler", "restart")
    assert control.requests == [("kube-scheduler", "restart")]
    with pytest.raises(TargetError, match="cannot kill etcd; components that it can: kube-sch"):
        scope.faults.disturb("etcd", "kill")
    scope.close()


def test_only_what_has_the_run_label_is_owned_in_deletion_order(
    api: FakeApi, make_target: MakeTarget
) -> None:
    def put(plural: str, name: str, run: str | None, namespace: str | None = None) -> None:
        meta: dict[str, Any] = {"name": name, "labels": {RUN_LABEL: run} if run else {}}
        api.put(plural, {"metadata": meta | ({"namespace": namespace} if namespace else {})})

    put("namespaces", "ns", "r1")
    put("nodes", "hollow", "r1")
    put("nodes", "real", None)
    put("deviceclasses", "gpu", "r2")
    put("resourceslices", "s", "r1")
    put("resourceclaims", "c", "r1", "ns")
    put("resourceclaims", "theirs", None, "ns")
    put("pods", "p", "r1", "ns")
    put("jobs", "j", "r1", "ns")
    target = make_target()
    assert target.owned("r1") == [
        Ref("batch/v1", "Job", "j", "ns"),
        Ref("v1", "Pod", "p", "ns"),
        Ref("resource.k8s.io/v1", "ResourceClaim", "c", "ns"),
        Ref("v1", "Namespace", "ns"),
        Ref("resource.k8s.io/v1", "ResourceSlice", "s"),
        Ref("v1", "Node", "hollow"),
    ]
    assert Ref("resource.k8s.io/v1", "DeviceClass", "gpu") in target.owned()
    assert len(target.owned()) == 7
    assert target.owned("r3") == []


def test_what_a_drivers_manifests_made_is_found_too_where_every_kind_is_asked_for(
    api: FakeApi, make_target: MakeTarget
) -> None:
    group, extensions, rbac = "gpu.example.com", "apiextensions.k8s.io", "rbac.authorization.k8s.io"
    admission = "admissionregistration.k8s.io"
    api.served |= {
        f"{extensions}/v1": {"customresourcedefinitions": ("CustomResourceDefinition", False)},
        f"{group}/v2": {"domains": ("Domain", False)},
        f"{group}/v1": {"domains": ("Domain", False), "olds": ("Old", True)},
        f"{rbac}/v1": {"clusterroles": ("ClusterRole", False)},
        f"{admission}/v1": {f"{WEBHOOKS.lower()}s": (WEBHOOKS, False)},
    }
    made = {
        f"{WEBHOOKS.lower()}s": f"{admission}/v1 {WEBHOOKS}",
        "serviceaccounts": "v1 ServiceAccount",
        "olds": f"{group}/v1 Old",
        "namespaces": "v1 Namespace",
        "domains": f"{group}/v2 Domain",
        "clusterroles": f"{rbac}/v1 ClusterRole",
        "deviceclasses": "resource.k8s.io/v1 DeviceClass",
        "customresourcedefinitions": f"{extensions}/v1 CustomResourceDefinition",
    }
    for plural in made:
        here = {"namespace": "n"} if plural in ("serviceaccounts", "olds") else {}
        api.put(plural, {"metadata": {"name": "ours", "labels": {RUN_LABEL: "driver-1"}, **here}})
        api.put(plural, {"metadata": {"name": "theirs", **here}})
    found = make_target().owned("driver-1", every_kind=True)
    assert {ref.name for ref in found} == {"ours"}
    kinds = [f"{ref.api_version} {ref.kind}" for ref in found]
    assert sorted(kinds) == sorted(made.values())
    first, *namespaced, last = kinds
    assert first.endswith(WEBHOOKS)
    assert set(namespaced[:2]) == {made["serviceaccounts"], made["olds"]}
    assert last.endswith("CustomResourceDefinition")
    listed = [accept for _, path, accept in _asked(api) if "labelSelector" in path]
    assert all("PartialObjectMetadata" in one for one in listed), "Secrets' data would come along"


def _asked(api: FakeApi) -> list[tuple[str, str, str]]:
    return [(method, path, headers["Accept"]) for method, path, headers, _ in api.requests]


@pytest.mark.parametrize("code", [0, 403, 404])
def test_what_cannot_be_listed_of_other_kinds_hinders_no_cleanup(
    api: FakeApi, make_target: MakeTarget, code: int
) -> None:
    """An extension server is away (0), one may not list, or a definition was deleted meanwhile."""
    api.put("nodes", {"metadata": {"name": "hollow", "labels": {RUN_LABEL: "r1"}}})
    if code:
        api.fail("GET", "/serviceaccounts", code)
    else:
        api.served["away.example.com/v1"] = {"things": ("Thing", True)}
        api.stale.add("away.example.com/v1")
    assert [ref.name for ref in make_target().owned("r1", every_kind=True)] == ["hollow"]
    assert not api.failures
    assert not api.count("GET", "/things")


def test_what_may_not_be_listed_is_no_empty_list(api: FakeApi, make_target: MakeTarget) -> None:
    api.fail("GET", "/nodes", 403)
    with pytest.raises(ApiError):
        make_target().owned()


@pytest.fixture
def hollow(api: FakeApi, tmp_path: Path) -> Iterator[HollowNodes]:
    connection = Connection.open(api.kubeconfig(tmp_path / "config"), "fake")
    nodes = HollowNodes(connection, renewal=0.05)
    yield nodes
    nodes.close()
    connection.close()


def renewed(api: FakeApi, times: int) -> None:
    seen = api.count("PATCH", "/nodes/n/status")
    until(lambda: api.count("PATCH", "/nodes/n/status") >= seen + times)


def test_a_hollow_nodes_status_is_written_and_its_heartbeat_renewed(
    api: FakeApi, hollow: HollowNodes
) -> None:
    node = api.put("nodes", {"metadata": {"name": "n"}})
    past = "2026-01-01T00:00:00Z"
    given = [{**READY[0], "lastHeartbeatTime": past}]
    written = hollow.adopt(node, {"conditions": given, "allocatable": {"cpu": "4"}})
    assert written["status"]["allocatable"] == {"cpu": "4"}
    (condition,) = written["status"]["conditions"]
    assert (condition["type"], condition["status"]) == ("Ready", "True")
    renewed(api, 2)
    status = api.objects["nodes", "", "n"]["status"]
    assert status["allocatable"] == {"cpu": "4"}
    assert status["conditions"][0]["lastHeartbeatTime"] > past
    assert status["conditions"][0]["lastTransitionTime"] == condition["lastTransitionTime"]


def test_what_a_scenario_writes_into_a_hollow_nodes_conditions_stays(
    api: FakeApi, hollow: HollowNodes
) -> None:
    hollow.adopt(api.put("nodes", {"metadata": {"name": "n"}}), {"conditions": READY})
    theirs = [
        {"type": "Ready", "status": "False", "lastTransitionTime": "2026-01-01T00:00:00Z"},
        {"type": "DiskPressure", "status": "True"},
    ]
    api.put("nodes", merge(api.objects["nodes", "", "n"], {"status": {"conditions": theirs}}))
    renewed(api, 2)
    ready, pressure = api.objects["nodes", "", "n"]["status"]["conditions"]
    assert ready["lastHeartbeatTime"]
    assert {**ready, "lastHeartbeatTime": None} == {**theirs[0], "lastHeartbeatTime": None}
    assert pressure == theirs[1]


def test_a_node_that_is_gone_is_not_renewed(api: FakeApi, hollow: HollowNodes) -> None:
    hollow.adopt(api.put("nodes", {"metadata": {"name": "n"}}), {"conditions": READY})
    renewed(api, 1)
    api.drop("nodes", "", "n")
    time.sleep(0.15)
    after = api.count("PATCH", "/nodes/n/status")
    time.sleep(0.15)
    assert api.count("PATCH", "/nodes/n/status") <= after + 1


def test_creating_a_node_with_a_status_makes_it_hollow(api: FakeApi, scope: ClusterScope) -> None:
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}
    created = scope.create({**node, "status": {"conditions": READY}})
    assert created["status"]["conditions"][0]["status"] == "True"
    assert api.count("PATCH", "/nodes/n/status") == 1


def test_cdi_specs_name_the_claims_that_they_are_for(tmp_path: Path) -> None:
    first, second = tmp_path / "node-1", tmp_path / "node-2"
    first.mkdir()
    second.mkdir()
    devices = [{"name": f"{UID}-gpu-0", "containerEdits": {"env": [f"CLAIM={OTHER}"]}}]
    (first / "k8s.gpu.example.com-claim.json").write_text(json.dumps({"devices": devices}))
    (second / f"claim-{UID}.yaml").write_text(yaml.safe_dump({"devices": []}))
    (second / f"half-{UID}.json").write_text('{"dev')
    (second / f"tmp-{UID}.part").write_text("{}")
    assert claims_in(spec_files([first, second, tmp_path / "missing"])) == {
        UID: (f"claim-{UID}.yaml", "k8s.gpu.example.com-claim.json"),
        OTHER: ("k8s.gpu.example.com-claim.json",),
    }
    assert specs_in(spec_files([first, second])) == [
        ("k8s.gpu.example.com-claim.json", {"devices": devices}),
        (f"claim-{UID}.yaml", {"devices": []}),
    ]


@pytest.mark.parametrize(
    ("suffix", "text"),
    [("json", "[" * 100_000), ("json", "[" + "[]," * 100_000 + "[]]"), ("yaml", "[" * 100_000)],
)
def test_a_spec_that_would_take_much_memory_is_left_out(
    tmp_path: Path, suffix: str, text: str
) -> None:
    (tmp_path / f"{UID}.{suffix}").write_text(text)
    (tmp_path / f"{OTHER}.json").write_text("{}")
    assert claims_in(spec_files([tmp_path])) == {OTHER: (f"{OTHER}.json",)}


def test_cdi_is_an_ability_only_where_the_specs_can_be_read(
    make_target: MakeTarget, scope: ClusterScope, tmp_path: Path
) -> None:
    with pytest.raises(TargetError, match="no ability cdi"):
        scope.observe.cdi_specs()
    target = make_target(reach=Reach(cdi=partial(spec_files, [tmp_path])))
    assert "cdi" in target.capabilities().abilities
    (tmp_path / f"{UID}.json").write_text("{}")
    other = target.scope("demo")
    assert list(other.observe.cdi_claims()) == [UID]
    # A waiting check sees the file go, though no event tells.
    calls: list[int] = []

    def gone() -> bool | None:
        calls.append(1)
        if len(calls) == 2:
            (tmp_path / f"{UID}.json").unlink()
        return True if not other.observe.cdi_claims() else None

    assert other.wait(gone, 5)
    other.close()


def test_policies_of_a_run_are_found_and_who_may_not_list_them_has_made_none(
    api: FakeApi, make_target: MakeTarget
) -> None:
    plural, kind = "validatingadmissionpolicies", "ValidatingAdmissionPolicy"
    version = "admissionregistration.k8s.io/v1"
    api.served[version] = {plural: (kind, False)}
    api.put(plural, {"metadata": {"name": "ours", "labels": {RUN_LABEL: "r1"}}})
    api.put(plural, {"metadata": {"name": "theirs"}})
    assert make_target().owned("r1") == [Ref(version, kind, "ours")]
    api.fail("GET", plural, 403)
    assert make_target().owned("r1") == []
