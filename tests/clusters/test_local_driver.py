from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, cast

import pytest

from conformance.clusters.base import ClusterUsageError
from conformance.clusters.local.api import LocalApi
from conformance.clusters.local.driver import (
    ROLE,
    check_command,
    driver_spec,
    pools_complete,
    published,
    registered_plugins,
)
from conformance.clusters.local.layout import Layout
from conformance.clusters.local.options import LocalOptions

LAYOUT = Layout("a", Path("/s/a"))


class Answers:
    """Stands in for a server: the same answer to every request."""

    def __init__(self, answer: Any) -> None:
        self._answer = answer

    def text(self, _path: str) -> Any:
        return self._answer

    def get(self, _path: str) -> Any:
        return self._answer


def answering(answer: Any) -> LocalApi:
    return cast("LocalApi", Answers(answer))


def slice_spec(pool: str = "p", generation: int = 1, count: int = 1, **more: Any) -> dict[str, Any]:
    return {
        "driver": "d.example.com",
        "nodeName": "node-1",
        "pool": {"name": pool, "generation": generation, "resourceSliceCount": count},
    } | more


def test_driver_gets_the_five_variables_that_drivers_read() -> None:
    spec = driver_spec(LAYOUT, LocalOptions(driver_command=("true",)), 2)
    assert dict(spec.env) == {
        "NODE_NAME": "node-2",
        "KUBECONFIG": "/s/a/pki/driver.kubeconfig",
        "CDI_ROOT": "/s/a/n2/cdi",
        "KUBELET_REGISTRAR_DIRECTORY_PATH": "/s/a/n2/k/plugins_registry",
        "KUBELET_PLUGINS_DIRECTORY_PATH": "/s/a/n2/k/plugins",
    }
    assert spec.inherit_env
    assert spec.inside == ""


def test_callers_variables_do_not_replace_those_that_every_driver_gets() -> None:
    options = LocalOptions(driver_command=("true",), driver_env={"A": "b", "NODE_NAME": "x"})
    env = driver_spec(LAYOUT, options, 1).env
    assert env["A"] == "b"
    assert env["NODE_NAME"] == "node-1"


def test_our_own_driver_runs_without_a_command() -> None:
    command = driver_spec(LAYOUT, LocalOptions(simulate="a100x8"), 1).command
    assert command[:4] == (sys.executable, "-m", "nvml_driver", "run")
    assert command[command.index("--simulate") + 1] == "a100x8"
    assert command[command.index("--driver-name") + 1] == "gpu.nvidia.com"
    for option in ("--device-root", "--state-dir"):
        assert command[command.index(option) + 1].startswith("/s/a/n1/d/")


def test_driver_command_is_found_before_anything_starts(tmp_path: Path) -> None:
    program = tmp_path / "driver"
    program.touch(mode=0o755)
    found = driver_spec(LAYOUT, LocalOptions(driver_command=(str(program), "--x")), 1)
    assert found.command == (str(program), "--x")
    check_command(LocalOptions(driver_command=(str(program),)))
    with pytest.raises(ClusterUsageError, match=r"no-such-driver.*not there or not executable"):
        check_command(LocalOptions(driver_command=("no-such-driver",)))


@pytest.mark.parametrize(
    ("specs", "complete"),
    [
        pytest.param([], False, id="no slice"),
        pytest.param([slice_spec()], True, id="one of one"),
        pytest.param([slice_spec(count=2)], False, id="one of two"),
        pytest.param([slice_spec(count=2), slice_spec(count=2)], True, id="two of two"),
        pytest.param(
            [slice_spec(count=2), slice_spec(generation=2, count=2)],
            False,
            id="newest generation has one of two",
        ),
        pytest.param(
            [slice_spec(count=5), slice_spec(generation=2)], True, id="older generation lingers"
        ),
        pytest.param(
            [slice_spec("p"), slice_spec("q", count=2)], False, id="one pool of two incomplete"
        ),
    ],
)
def test_pools_are_complete_when_their_newest_generation_is(
    specs: list[dict[str, Any]], complete: bool
) -> None:
    assert pools_complete(specs) is complete


def test_only_slices_of_this_driver_and_node_count() -> None:
    items = [
        {"spec": slice_spec(driver="other.example.com")},
        {"spec": slice_spec(nodeName="node-2")},
    ]
    api = answering({"items": items})
    assert not published(api, "d.example.com", "node-1")
    assert published(api, "d.example.com", "node-2")
    assert not published(answering(None), "d.example.com", "node-1")


METRICS = """\
# TYPE plugin_manager_total_plugins gauge
plugin_manager_total_plugins{socket_path="/k/a-reg.sock",state="actual_state_of_world"} 1
plugin_manager_total_plugins{socket_path="/k/b-reg.sock",state="desired_state_of_world"} 1
plugin_manager_total_plugins{socket_path="/k/c-reg.sock",state="actual_state_of_world"} 0
other{socket_path="/k/d-reg.sock",state="actual_state_of_world"} 1
"""


def test_only_plugins_that_the_kubelet_accepted_are_registered() -> None:
    assert registered_plugins(answering(METRICS)) == {"/k/a-reg.sock": 1}


def test_kubelet_that_does_not_answer_has_no_registered_plugins() -> None:
    assert registered_plugins(answering(None)) == {}


def test_driver_may_not_touch_pods_secrets_or_claims_status() -> None:
    allowed = {
        (group, resource)
        for rule in ROLE["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }
    assert allowed == {
        ("resource.k8s.io", "resourceslices"),
        ("resource.k8s.io", "resourceclaims"),
        ("", "nodes"),
    }
