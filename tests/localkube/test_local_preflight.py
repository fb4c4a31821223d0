from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ci.testing.lacking import missing_for_stage
from localkube.base import ClusterUsageError
from localkube.preflight import check_feature_gates, check_nodes, check_platform, missing_for_nodes

Change = Callable[[str, object], None]


def lacking() -> str:
    raise ClusterUsageError("Go 1.26")


@pytest.fixture
def change(monkeypatch: pytest.MonkeyPatch) -> Change:
    """Changes what is found out of a machine that has everything."""

    def now(name: str, value: object) -> None:
        monkeypatch.setattr(f"localkube.preflight.{name}", value)

    now("sys.platform", "linux")
    now("os.geteuid", lambda: 0)
    now("locate_tool", lambda name: f"/usr/bin/{name}")
    now("_namespace_problem", lambda: "")
    return now


@pytest.mark.usefixtures("change")
def test_able_machine_misses_nothing() -> None:
    assert missing_for_nodes() == []
    check_nodes()
    check_platform()


def test_machine_that_lacks_everything_hears_it_in_one_message(change: Change) -> None:
    change("os.geteuid", lambda: 1000)
    change("locate_tool", lambda _name: None)
    with pytest.raises(ClusterUsageError) as caught:
        check_nodes()
    message = str(caught.value)
    assert "root" in message
    assert "coreutils and util-linux: env, mount, nsenter, sleep, umount, unshare" in message


def test_only_root_missing_names_no_program(change: Change) -> None:
    change("os.geteuid", lambda: 1000)
    (line,) = missing_for_nodes()
    assert line.startswith("root")


def test_root_in_an_unprivileged_container_hears_about_namespaces(change: Change) -> None:
    change("_namespace_problem", lambda: "Operation not permitted")
    (line,) = missing_for_nodes()
    assert "Operation not permitted" in line
    assert "--privileged" in line


def test_other_operating_systems_are_refused(change: Change) -> None:
    change("sys.platform", "darwin")
    with pytest.raises(ClusterUsageError, match="needs Linux, this is darwin"):
        check_platform()


def test_feature_gates_are_tried_on_the_api_server_before_anything_starts(tmp_path: Path) -> None:
    server = tmp_path / "kube-apiserver"
    server.write_text(
        '#!/bin/sh\n[ "$1" = --feature-gates=A=true,B=false ] && [ "$2" = --version ] && exit 0\n'
        'echo \'E1 run.go:72] "command failed" err="unrecognized feature gate: C"\' >&2\nexit 1\n'
    )
    server.chmod(0o755)
    check_feature_gates(server, {})
    check_feature_gates(server, {"B": False, "A": True})
    with pytest.raises(ClusterUsageError, match="C=true: unrecognized feature gate: C"):
        check_feature_gates(server, {"C": True})


def test_what_a_stage_of_the_tests_lacks_is_said_before_anything_is_built(
    change: Change, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ci.testing.lacking.find_go", lambda: "go")
    monkeypatch.setattr("ci.testing.lacking.find_compiler", lambda: ("cc",))
    assert missing_for_stage("real") == []
    change("os.geteuid", lambda: 1000)
    monkeypatch.setattr("ci.testing.lacking.find_go", lacking)
    root, go = missing_for_stage("real")
    assert root.startswith("root")
    assert go == "Go 1.26"
    assert missing_for_stage("fuzz") == ["Go 1.26"]
    change("sys.platform", "darwin")
    assert missing_for_stage("real") == ["Linux"]
