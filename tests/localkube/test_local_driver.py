from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any, cast

import pytest

from kube.slices import pools_complete
from localkube import DriverProgram, command_driver
from localkube.api import LocalApi
from localkube.base import ClusterUsageError
from localkube.driver.attached import has_published, registered_plugins
from localkube.driver.spec import RULES, check_unused, driver_spec
from localkube.layout import Layout

LAYOUT = Layout("a", Path("/s/a"))


def driver(*command: str) -> DriverProgram:
    return command_driver("d.example.com", command)


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


def test_driver_gets_the_variables_that_drivers_read_and_a_folder_of_its_own() -> None:
    spec = driver_spec(LAYOUT, driver("true"), 2)
    assert dict(spec.env) == {
        "NODE_NAME": "node-2",
        "KUBECONFIG": "/s/a/pki/driver.kubeconfig",
        "CDI_ROOT": "/s/a/n2/cdi",
        "KUBELET_REGISTRAR_DIRECTORY_PATH": "/s/a/n2/k/plugins_registry",
        "KUBELET_PLUGINS_DIRECTORY_PATH": "/s/a/n2/k/plugins",
        "DRA_CONFORMANCE_DRIVER_DIRECTORY": "/s/a/n2/d",
        "NO_PROXY": "*",
        "no_proxy": "*",
    }
    assert spec.inherit_env


def test_driver_of_others_runs_in_its_node_and_in_the_folder_where_it_was_named() -> None:
    spec = driver_spec(LAYOUT, driver("true", "config.yaml"), 2)
    assert spec.inside == "node-2"
    assert spec.command[1] == f"--chdir={Path.cwd()}"
    assert spec.command[2:] == (shutil.which("true"), "config.yaml")


def test_devices_that_are_in_use_are_not_taken_away() -> None:
    def claim(name: str, driver: str) -> dict[str, Any]:
        results = [{"driver": driver, "pool": "node-1", "device": "gpu-0"}]
        status = {"allocation": {"devices": {"results": results}}}
        return {"metadata": {"namespace": "ns", "name": name}, "status": status}

    waiting = {"metadata": {"namespace": "ns", "name": "waiting"}, "status": {}}
    check_unused([waiting, claim("other", "d.example.org")], "d.example.com")
    with pytest.raises(ClusterUsageError, match=r"claims \(ns/used\); delete their pods"):
        check_unused([waiting, claim("used", "d.example.com")], "d.example.com")


def test_driver_command_is_found_before_anything_starts(tmp_path: Path) -> None:
    program = tmp_path / "driver"
    program.touch(mode=0o755)
    found = driver_spec(LAYOUT, driver(str(program), "--x"), 1)
    assert found.command[2:] == (str(program), "--x")
    driver(str(program)).check()
    with pytest.raises(
        ClusterUsageError, match=r"no-such-driver.*does not exist or is not executable"
    ):
        driver("no-such-driver").check()


@pytest.mark.parametrize(
    ("specs", "complete"),
    [
        pytest.param([], False, id="no slice"),
        pytest.param([slice_spec()], True, id="one of one"),
        pytest.param([slice_spec(count=2)], False, id="one of two"),
        pytest.param([slice_spec(count=2), slice_spec(count=2)], True, id="two of two"),
        pytest.param([slice_spec(), slice_spec()], False, id="two of one"),
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
    assert not has_published(api, "d.example.com", "node-1")
    assert has_published(api, "d.example.com", "node-2")
    assert not has_published(answering(None), "d.example.com", "node-1")


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
        for rule in RULES
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }
    assert allowed == {
        ("resource.k8s.io", "resourceslices"),
        ("resource.k8s.io", "resourceclaims"),
        ("", "nodes"),
    }
