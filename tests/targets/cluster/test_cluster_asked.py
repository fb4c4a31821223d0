"""Which parts of a cluster can be asked what they count and list, and what is said elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.engine.requirements import reason_to_skip
from conformance.scenario.loader import load_scenarios
from conformance.seam.abilities import Ability
from conformance.targets.cluster import accounts
from conformance.targets.cluster.reach import Reach
from kube.connection import Connection
from kube.observations import CREATES, Sample
from kube.values import Obj, User
from tests.certify.evidence import REJECTED, WAITS
from tests.kube.fake_api import FakeApi
from tests.kubesim import kit
from tests.scenario.shipped import ROOT
from tests.targets.cluster.conftest import MakeTarget, RecordingControl

GENERATED = ROOT / "extended/resource-claim/generated-claims-counted-in-metrics.yaml"
BRINGS_NODES = ROOT / f"{WAITS}.yaml"
TOLD = f'{CREATES}{{status="success"}} 3\n'


def test_the_control_plane_is_asked_where_the_clusters_source_can(make_target: MakeTarget) -> None:
    control = RecordingControl(TOLD)
    target = make_target(reach=Reach(control=control))
    abilities = target.capabilities().abilities
    assert {"metrics:kube-controller-manager", "metrics:kube-scheduler"} <= abilities
    scope = target.scope("demo")
    found = scope.observe.samples("kube-scheduler", CREATES, None)
    assert found == [Sample({"status": "success"}, 3.0)]
    assert control.requests == [("kube-scheduler", "metrics")]


def test_memory_is_known_where_the_clusters_source_can_see_it(make_target: MakeTarget) -> None:
    assert make_target(reach=Reach(control=RecordingControl())).peak_memory() == 3 << 20
    assert make_target().peak_memory() is None


def test_who_does_not_answer_tells_nothing(make_target: MakeTarget) -> None:
    scope = make_target(reach=Reach(control=RecordingControl())).scope("demo")
    assert scope.observe.samples("kube-scheduler", CREATES, None) is None


def test_elsewhere_a_scenario_is_skipped_and_says_why(make_target: MakeTarget) -> None:
    found = make_target().capabilities()
    [scenario] = load_scenarios([GENERATED])
    assert reason_to_skip(scenario.scenario.spec, found, None) == (
        "not supported by this target: metrics:kube-controller-manager: the control plane's metrics"
        " are read on local clusters only"
    )
    assert found.lacking["pod-resources"].endswith("on local clusters only")


@pytest.mark.parametrize(
    ("asks", "refused", "said"),
    [
        (True, "nodes patch", "your user is not allowed to patch nodes (see ci/rbac/suite.yaml)"),
        (
            True,
            "nodes/status patch",
            "your user is not allowed to patch nodes/status (see ci/rbac/suite.yaml)",
        ),
        (True, "pods create", None),
        (False, "nodes patch", None),
    ],
)
def test_who_may_not_make_nodes_skips_scenarios_that_bring_some(
    api: FakeApi,
    make_target: MakeTarget,
    monkeypatch: pytest.MonkeyPatch,
    asks: bool,
    refused: str,
    said: str | None,
) -> None:
    def may(_connection: Connection, _user: User | None, rule: Obj) -> bool:
        return f"{rule['resources'][0]} {rule['verbs'][0]}" != refused

    monkeypatch.setattr(accounts, "is_allowed", may)
    monkeypatch.setattr(accounts, "may", lambda *_: False)
    if asks:
        api.served["authorization.k8s.io/v1"] = {}
    found = make_target().capabilities()
    brings, brings_none = load_scenarios([BRINGS_NODES, ROOT / f"{REJECTED}.yaml"])
    wanted = said and f"not supported by this target: hollow-nodes: {said}"
    assert reason_to_skip(brings.scenario.spec, found, None) == wanted
    assert reason_to_skip(brings_none.scenario.spec, found, None) is None


@pytest.mark.parametrize(
    ("allowed", "admits", "says"),
    [
        ({"nodes"}, False, None),
        (set(), False, "the API server has not the authorizer Node: "),
        ({"nodes", "secrets"}, False, "another authorizer than Node lets kubelets do everything"),
        ({"nodes"}, True, "the API server has not the admission plugin NodeRestriction"),
    ],
)
def test_kubelets_accounts_are_of_use_where_they_are_confined(
    api: FakeApi,
    make_target: MakeTarget,
    monkeypatch: pytest.MonkeyPatch,
    allowed: set[str],
    admits: bool,
    says: str | None,
) -> None:
    def may(_connection: Connection, user: User | None, wanted: Obj, _agent: str = "") -> bool:
        return user is None or wanted["resource"] in allowed

    monkeypatch.setattr(accounts, "may", may)
    monkeypatch.setattr(accounts, "_accepts_lease_of_another", lambda *_: admits)
    api.served["authorization.k8s.io/v1"] = {}
    lack = make_target().capabilities().explain_lack(Ability.KUBELET_ACCOUNT)
    assert lack is says if says is None else says in (lack or "")


def test_kubelets_list_where_their_sockets_are(make_target: MakeTarget, tmp_path: Path) -> None:
    target = make_target(reach=Reach(pod_resources={"node-1": tmp_path / "none"}))
    assert "pod-resources" in target.capabilities().abilities
    scope = target.scope("demo")
    for name in ("node-1", "node-2"):  # nobody answers there; there is no such socket
        scope.create(kit.pod(name, nodeName=name))
        assert scope.observe.pod_resources(name, "c") is None
