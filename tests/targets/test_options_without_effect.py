"""An option that would do nothing is refused: else something else is tested, and passes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from conformance.clusters.local.state import Ports, State
from conformance.errors import UsageError
from conformance.targets.checking import check_options, check_running
from conformance.targets.opening import open_target
from conformance.targets.options import TargetOptions

CLUSTER: dict[str, Any] = {"target": "cluster"}
KUBECONFIG = {**CLUSTER, "cluster": "kubeconfig", "context": "c"}
LOCAL = {**CLUSTER, "cluster": "local"}
KIND = {**CLUSTER, "cluster": "kind"}


@pytest.mark.parametrize(
    ("options", "flag"),
    [
        ({"cluster": "local"}, "--cluster"),
        ({"kubeconfig": Path("/k")}, "--kubeconfig"),
        ({"context": "prod"}, "--context"),
        ({"driver_command": ("x",)}, "--driver-command"),
        ({"nodes": 2}, "--nodes"),
        ({"binaries": Path("/b")}, "--binaries"),
        ({"keep": True}, "--keep-cluster"),
        ({**LOCAL, "context": "prod"}, "--context"),
        ({**LOCAL, "image_archives": (Path("/i"),)}, "--image-archive"),
        ({**KIND, "feature_gates": {"DRAAdminAccess": True}}, "--feature-gate"),
        ({**KIND, "driver_command": ("x",)}, "--driver-command"),
        ({**KUBECONFIG, "name": "x"}, "--name"),
        ({**KUBECONFIG, "nodes": 0}, "--nodes"),
        ({**KUBECONFIG, "simulate": "l40sx8"}, "--simulate"),
        ({**KUBECONFIG, "record": True, "driver_command": ("x",)}, "--driver-command"),
    ],
)
def test_an_option_that_would_do_nothing_is_refused(options: dict[str, Any], flag: str) -> None:
    with pytest.raises(UsageError, match=f"^{flag} goes with "):
        check_options(TargetOptions(**options))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"simulate": "l40sx8", "feature_gates": {"DRAAdminAccess": True}},
        KUBECONFIG,
        {**KUBECONFIG, "record": True, "simulate": "l40sx8"},
        {**LOCAL, "nodes": 2, "driver_command": ("x",), "binaries": Path("/b"), "name": "n"},
        {**KIND, "name": "n", "image_archives": (Path("/i"),), "keep": True},
    ],
)
def test_options_that_mean_something_are_taken(options: dict[str, Any]) -> None:
    check_options(TargetOptions(**options))


def test_a_target_is_not_opened_with_an_option_that_would_do_nothing() -> None:
    with pytest.raises(UsageError, match="--context"), open_target(TargetOptions(context="x")):
        pass


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"driver_command": ("x",)}, "--driver-command"),
        ({"nodes": 3}, "--nodes 3: it has 1"),
        ({"binaries": Path("/other")}, "--binaries: it has those of /binaries"),
        ({"feature_gates": {"A": True}}, "--feature-gate A"),
        ({"feature_gates": {"B": False}}, "--feature-gate B"),
    ],
)
def test_what_a_running_cluster_was_not_started_with_is_refused(
    options: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=f"runs already, and {message}.*cluster down --name n"):
        check_running(TargetOptions(**LOCAL, name="n", **options), running())


def test_a_running_cluster_is_used_by_those_who_want_what_it_is() -> None:
    same = TargetOptions(**LOCAL, name="n", binaries=Path("/binaries"), feature_gates={"B": True})
    check_running(same, running())


def running() -> State:
    return State(
        name="n",
        binaries=Path("/binaries"),
        nodes=1,
        feature_gates={"B": True},
        ports=Ports(1, 2, 3, 4, 5),
        network=None,
        owner=None,
        ready=True,
    )
