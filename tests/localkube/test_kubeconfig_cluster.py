from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from kube import connection as connection_module
from kube.base.errors import InfrastructureError, UsageError
from kube.errors import reason_of
from localkube.base import ClusterAccess
from localkube.kubeconfig import KubeconfigCluster
from tests.kube.fake_api import TOKEN, FakeApi

READY = {
    "conditions": [{"type": "Ready", "status": "True"}],
    "nodeInfo": {"kubeletVersion": "v1.37.1"},
}


@pytest.fixture
def kubeconfig(api: FakeApi, tmp_path: Path) -> Path:
    return api.kubeconfig(tmp_path / "config")


def usage_error(path: Path, context: str = "fake") -> str:
    with pytest.raises(UsageError) as caught:
        KubeconfigCluster(path, context).up()
    message = str(caught.value)
    assert str(path) in message
    assert "\n" not in message
    return message


def test_a_cluster_that_answers_is_handed_over(api: FakeApi, kubeconfig: Path) -> None:
    api.put("nodes", {"metadata": {"name": "worker"}, "status": READY})
    lines: list[str] = []
    cluster = KubeconfigCluster(kubeconfig, "fake", image="my/image:1")
    access = cluster.up(lines.append)
    assert (access.kubeconfig, access.context) == (kubeconfig, "fake")
    assert access.kubernetes_version == "v1.37.1+fake"
    assert (access.image, access.nodes) == ("my/image:1", ("worker",))
    assert lines
    cluster.down()
    assert {method for method, _, _, _ in api.requests} == {"GET"}


@pytest.mark.parametrize(
    ("change", "usable"),
    [
        pytest.param({}, True, id="ready"),
        pytest.param({"status": {**READY, "conditions": []}}, False, id="not ready"),
        pytest.param({"status": {"conditions": READY["conditions"]}}, False, id="no kubelet"),
        pytest.param(
            {"spec": {"taints": [{"key": "nvidia.com/gpu", "effect": "NoSchedule"}]}},
            True,
            id="tainted, which pods may tolerate",
        ),
        pytest.param(
            {"spec": {"taints": [{"key": "k", "effect": "PreferNoSchedule"}]}}, True, id="soft"
        ),
        pytest.param(
            {"metadata": {"name": "n", "labels": {"dra-conformance.dev/run": "r"}}},
            False,
            id="made by a run",
        ),
    ],
)
def test_which_nodes_can_be_used(
    api: FakeApi, kubeconfig: Path, change: dict[str, Any], usable: bool
) -> None:
    api.put("nodes", {"metadata": {"name": "n"}, "status": READY, **change})
    assert bool(KubeconfigCluster(kubeconfig, "fake").up().nodes) == usable


def test_the_current_context_is_never_taken_by_accident(kubeconfig: Path) -> None:
    message = usage_error(kubeconfig, "")
    assert "--context" in message
    assert "the file has: fake" in message


def test_an_unknown_context_is_answered_with_those_that_exist(kubeconfig: Path) -> None:
    assert "no context 'prod'; the file has: fake" in usage_error(kubeconfig, "prod")


def test_a_file_that_does_not_exist_is_named(tmp_path: Path) -> None:
    assert "no such file" in usage_error(tmp_path / "missing")


def test_a_file_that_is_not_yaml_is_named_with_its_line_and_without_its_content(
    tmp_path: Path,
) -> None:
    path = tmp_path / "config"
    path.write_text(f"users:\n- token: {TOKEN}\n  x: [{TOKEN}\n")
    message = usage_error(path)
    assert f"{path}:" in message
    assert "not YAML" in message
    assert TOKEN not in message


@pytest.mark.parametrize("text", ["", "[]", "a: 1", "contexts: 3"])
def test_a_file_that_is_no_kubeconfig_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "config"
    path.write_text(text)
    assert "not a kubeconfig" in usage_error(path)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        pytest.param(
            {"clusters": []}, "names cluster 'fake', which is not defined", id="no cluster"
        ),
        pytest.param({"clusters": [{"name": "fake", "cluster": {}}]}, "no server", id="no server"),
        pytest.param(
            {
                "clusters": [
                    {
                        "name": "fake",
                        "cluster": {"server": "https://x", "certificate-authority": "gone.crt"},
                    }
                ]
            },
            "gone.crt",
            id="certificate missing",
        ),
    ],
)
def test_a_context_that_leads_nowhere_is_refused(
    kubeconfig: Path, change: dict[str, Any], said: str
) -> None:
    config = yaml.safe_load(kubeconfig.read_text())
    kubeconfig.write_text(yaml.safe_dump({**config, **change}))
    assert said in usage_error(kubeconfig)


def test_a_server_that_does_not_answer_is_named(api: FakeApi, kubeconfig: Path) -> None:
    api.close()
    with pytest.raises(InfrastructureError) as caught:
        KubeconfigCluster(kubeconfig, "fake").up()
    message = str(caught.value)
    assert api.url in message
    assert "context 'fake'" in message
    assert "Connection refused" in message
    assert TOKEN not in message
    assert "\n" not in message


def test_a_server_that_is_none_is_said(api: FakeApi, kubeconfig: Path) -> None:
    api.fail("GET", "/version", 404)
    with pytest.raises(InfrastructureError, match="is this the address of an API server"):
        KubeconfigCluster(kubeconfig, "fake").up()


def test_credentials_that_are_refused_are_told_from_no_answer(
    api: FakeApi, kubeconfig: Path
) -> None:
    config = yaml.safe_load(kubeconfig.read_text())
    config["users"][0]["user"]["token"] = "something-else"
    kubeconfig.write_text(yaml.safe_dump(config))
    with pytest.raises(
        InfrastructureError, match=r"refuses GET /version \(401: Unauthorized\)"
    ) as caught:
        KubeconfigCluster(kubeconfig, "fake").up()
    assert "something-else" not in str(caught.value)
    assert "wrong or have expired" in str(caught.value)
    assert "ci/rbac" not in str(caught.value)


def test_missing_rights_are_told_from_wrong_credentials(api: FakeApi, kubeconfig: Path) -> None:
    api.fail("GET", "/api/v1/nodes", 403)
    with pytest.raises(
        InfrastructureError, match=r"refuses GET /api/v1/nodes \(403.*ci/rbac/suite.yaml"
    ):
        KubeconfigCluster(kubeconfig, "fake").up()


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_server_that_is_busy_for_a_moment_is_asked_again(
    api: FakeApi, kubeconfig: Path, status: int
) -> None:
    api.fail("GET", "/version", status, times=2, Retry_After="0.1")
    assert KubeconfigCluster(kubeconfig, "fake").up().kubernetes_version == "v1.37.1+fake"


def test_a_server_that_stays_busy_is_said_to_be(
    api: FakeApi, kubeconfig: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection_module, "PATIENCE", 0.5)
    api.fail("GET", "/version", 503, times=9, Retry_After="3600")
    with pytest.raises(InfrastructureError, match=r"overloaded or not available: .*: told to fail"):
        KubeconfigCluster(kubeconfig, "fake").up()
    assert api.count("GET", "/version") == 2


@pytest.mark.parametrize(
    "answer",
    [
        {"groups": 5},
        {"groups": [5]},
        {"groups": [{"name": "resource.k8s.io"}], "items": "x"},
        {"groups": [{"name": "resource.k8s.io"}], "items": [{"metadata": 5}]},
        {"groups": [{"name": "resource.k8s.io"}], "items": [{"status": 5}]},
        [1],
    ],
)
def test_answers_of_another_shape_are_said(api: FakeApi, kubeconfig: Path, answer: object) -> None:
    for path in ("/version", "/apis", "/api/v1/nodes"):
        api.answers[path] = (200, json.dumps(answer))
    with pytest.raises(InfrastructureError, match="is this the address of an API server"):
        KubeconfigCluster(kubeconfig, "fake").up()


def test_control_characters_of_a_server_do_not_reach_the_terminal(
    api: FakeApi, kubeconfig: Path
) -> None:
    api.answers["/version"] = (403, '{"kind": "Status", "message": "\\u001b[31mred\\nline"}')
    with pytest.raises(InfrastructureError, match=r"\(403: \[31mred line\)"):
        KubeconfigCluster(kubeconfig, "fake").up()


def test_a_cluster_without_dra_is_a_usage_error(api: FakeApi, kubeconfig: Path) -> None:
    for version in [gv for gv in api.served if gv.startswith("resource.k8s.io/")]:
        del api.served[version]
    with pytest.raises(UsageError, match=r"does not serve the API group resource\.k8s\.io"):
        KubeconfigCluster(kubeconfig, "fake").up()


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (OSError("plain"), "plain"),
        (ValueError(), "ValueError"),
        (ValueError("<urllib3.connection.X object at 0x7f>: refused"), "refused"),
        (ValueError("HTTPSConnection(host='h', port=1): refused: again"), "refused: again"),
    ],
)
def test_reasons_are_one_line_without_the_objects_around_them(
    error: Exception, reason: str
) -> None:
    assert reason_of(error) == reason


def test_a_hand_over_survives_its_json_form() -> None:
    access = ClusterAccess(
        kubeconfig=Path("/tmp/k"),
        context="here",
        kubernetes_version="v1.37.1",
        image="i:1",
        nodes=("a", "b"),
        component_logs={"kube-apiserver": Path("/tmp/log")},
        versions={"runc": "without seccomp"},
    )
    assert ClusterAccess.from_json(json.loads(json.dumps(access.to_json()))) == access
