from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from conformance.clusters.base import ClusterUsageError
from conformance.clusters.local.preflight import (
    Machine,
    check_feature_gates,
    check_nodes,
    check_platform,
    missing_for_nodes,
    missing_for_stage,
)

ABLE = Machine(
    platform="linux",
    effective_uid=lambda: 0,
    locate=lambda name: f"/usr/bin/{name}",
    namespaces=lambda: "",
    builders=(),
)


def lacking() -> str:
    raise ClusterUsageError("Go 1.26")


def test_able_machine_misses_nothing() -> None:
    assert missing_for_nodes(ABLE) == []
    check_nodes(ABLE)
    check_platform(ABLE)


def test_machine_that_lacks_everything_hears_it_in_one_message() -> None:
    empty = dataclasses.replace(ABLE, effective_uid=lambda: 1000, locate=lambda _name: None)
    with pytest.raises(ClusterUsageError) as caught:
        check_nodes(empty)
    message = str(caught.value)
    assert "root" in message
    assert "coreutils and util-linux: env, mount, nsenter, sleep, umount, unshare" in message


def test_only_root_missing_names_no_program() -> None:
    (line,) = missing_for_nodes(dataclasses.replace(ABLE, effective_uid=lambda: 1000))
    assert line.startswith("root")


def test_root_in_an_unprivileged_container_hears_about_namespaces() -> None:
    confined = dataclasses.replace(ABLE, namespaces=lambda: "Operation not permitted")
    (line,) = missing_for_nodes(confined)
    assert "Operation not permitted" in line
    assert "--privileged" in line


def test_other_operating_systems_are_refused() -> None:
    with pytest.raises(ClusterUsageError, match="needs Linux, this is darwin"):
        check_platform(dataclasses.replace(ABLE, platform="darwin"))


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


def test_what_a_stage_of_the_tests_lacks_is_said_before_anything_is_built() -> None:
    poor = dataclasses.replace(ABLE, effective_uid=lambda: 1000, builders=(lacking,))
    root, go = missing_for_stage("real", poor)
    assert root.startswith("root")
    assert go == "Go 1.26"
    assert missing_for_stage("fuzz", poor) == ["Go 1.26"]
    assert missing_for_stage("real", dataclasses.replace(ABLE, platform="darwin")) == ["Linux"]
    assert missing_for_stage("real", ABLE) == []
