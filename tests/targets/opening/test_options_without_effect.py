"""An option that would do nothing is refused: else something else is tested, and passes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from conformance.clusters.local import LocalCluster
from conformance.clusters.local.state import Ports, State
from conformance.errors import UsageError
from conformance.options import from_given
from conformance.targets.opening.checks import check_options
from conformance.targets.opening.options import DEFAULT_VERSION, TargetOptions
from conformance.targets.opening.sources import _as_running
from conformance.targets.opening.target import open_target

CLUSTER: dict[str, Any] = {"target": "cluster"}
KUBECONFIG = {**CLUSTER, "cluster": "kubeconfig", "context": "c"}
LOCAL = {**CLUSTER, "cluster": "local"}
KIND = {**CLUSTER, "cluster": "kind"}
OLDEST: dict[str, Any] = {"kubernetes_version": "1.34.4"}


@pytest.mark.parametrize(
    ("options", "flag"),
    [
        ({"cluster": "local"}, "--cluster"),
        ({"kubeconfig": Path("/k")}, "--kubeconfig"),
        ({"context": "prod"}, "--context"),
        ({"image": "busybox"}, "--image"),
        ({"driver_command": ("x",)}, "--driver-command"),
        ({"scheduler": "volcano"}, "--scheduler"),
        ({**KIND, "nodes": 2}, "--nodes"),
        ({**KIND, "kubernetes_version": "1.35.0"}, "--kubernetes"),
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
        {"simulate": "l40sx8", "feature_gates": {"DRAListTypeAttributes": True}},
        KUBECONFIG,
        {"nodes": 2, "kubernetes_version": "1.35.0"},
        {**LOCAL, "kubernetes_version": "1.34.0"},
        {**KUBECONFIG, "record": True, "simulate": "l40sx8"},
        {**LOCAL, "nodes": 2, "driver_command": ("x",), "binaries": Path("/b"), "name": "n"},
        {**KIND, "name": "n", "image_archives": (Path("/i"),), "keep": True},
    ],
)
def test_options_that_mean_something_are_taken(options: dict[str, Any]) -> None:
    check_options(TargetOptions(**options))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"nodes": -1}, "--nodes -1: must be between"),
        ({"nodes": 2, "simulate": "one-gpu-held"}, "--nodes 2: the shape one-gpu-held defines"),
        ({**LOCAL, "simulate": "one-gpu-held"}, "a local cluster takes GPUs"),
        ({"simulate": "nope.yaml"}, "no cluster shape 'nope.yaml'"),
    ],
)
def test_a_shape_that_cannot_be_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        check_options(TargetOptions(**options))


@pytest.mark.parametrize("version", ["1.20", "x", "1.99.1"])
def test_a_version_whose_rules_are_not_known_is_refused(version: str) -> None:
    with pytest.raises(UsageError, match=r"known minors: 1\.34"):
        from_given(TargetOptions, {"kubernetes_version": version})


@pytest.mark.parametrize("version", ["1.34.0.1", "1.34/..", "1.34.x"])
def test_a_version_that_is_none_is_refused(version: str) -> None:
    with pytest.raises(UsageError, match=r"--kubernetes: .*Kubernetes version"):
        from_given(TargetOptions, {"kubernetes_version": version})


@pytest.mark.parametrize(
    ("given", "version"), [("v1.34", "1.34.4"), ("1.34.0", "1.34.0"), ("1.37", DEFAULT_VERSION)]
)
def test_a_minor_is_the_patch_that_is_pinned(given: str, version: str) -> None:
    assert from_given(TargetOptions, {"kubernetes_version": given}).version == version


def test_a_version_has_no_effect_on_given_binaries() -> None:
    both: dict[str, Any] = {"kubernetes_version": "1.34.0", "binaries": Path("/b")}
    with pytest.raises(UsageError, match="--kubernetes has no effect on --binaries"):
        check_options(TargetOptions(**LOCAL, **both))


def test_gates_of_a_local_cluster_are_those_of_its_version() -> None:
    check_options(TargetOptions(**LOCAL, feature_gates={"DRAAdminAccess": False}, **OLDEST))
    newer = TargetOptions(**LOCAL, feature_gates={"DRADerivedAttributes": True}, **OLDEST)
    with pytest.raises(UsageError, match=r"1\.34 has no DRA feature gate DRADerivedAttributes"):
        check_options(newer)


def test_a_target_is_not_opened_with_an_option_that_would_do_nothing() -> None:
    with pytest.raises(UsageError, match="--context"), open_target(TargetOptions(context="x")):
        pass


@pytest.mark.parametrize(
    ("gates", "message"),
    [
        ({"Nope": True}, "has no DRA feature gate Nope"),
        ({"DRADeviceTaint": True}, "did you mean DRADeviceTaints?"),
        ({"DRAAdminAccess": False}, "is locked to true"),
        ({"DynamicResourceAllocation": False}, "turns DRA off"),
        ({"DRADeviceTaints": False}, "DRADeviceTaintRules is on and depends on DRADeviceTaints"),
    ],
)
def test_a_feature_gate_that_kubernetes_would_refuse_is_refused(
    gates: dict[str, bool], message: str
) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        check_options(TargetOptions(feature_gates=gates))


@pytest.mark.parametrize("gate", ["DRANope", "DRAAdminAccess"])
def test_a_local_cluster_is_not_built_for_gates_of_dra_that_it_refuses(gate: str) -> None:
    with pytest.raises(UsageError, match=gate):
        check_options(TargetOptions(**LOCAL, feature_gates={gate: False}))


def test_gates_outside_dra_are_left_to_the_components_of_a_local_cluster() -> None:
    check_options(TargetOptions(**LOCAL, feature_gates={"NodeSwap": True}))
    own = TargetOptions(**LOCAL, feature_gates={"DRAInTheFuture": True}, binaries=Path("/b"))
    check_options(own)


def test_a_gate_cannot_be_given_both_ways() -> None:
    both = ["DRAAdminAccess=true", "DRAAdminAccess=false"]
    with pytest.raises(UsageError, match="is set to both true and false"):
        from_given(TargetOptions, {"feature_gates": both})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"driver_command": ("x",)}, "--driver-command"),
        ({"scheduler": "s", "scheduler_command": ("x",)}, "--scheduler-command"),
        ({"nodes": 3}, "--nodes 3: it has 1"),
        (OLDEST, "--kubernetes 1.34.4: it is v1.37.1"),
        ({"binaries": Path("/other")}, "--binaries: it has those of /binaries"),
        ({"feature_gates": {"A": True}}, "--feature-gate A"),
        ({"feature_gates": {"B": False}}, "--feature-gate B"),
    ],
)
def test_what_a_running_cluster_was_not_started_with_is_refused(
    options: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=f"runs already, and {message}.*cluster down --name n"):
        _as_running(TargetOptions(**LOCAL, name="n", **options), Running())


def test_a_running_cluster_is_used_by_those_who_want_what_it_is() -> None:
    same = TargetOptions(**LOCAL, name="n", binaries=Path("/binaries"), feature_gates={"B": True})
    assert _as_running(same, Running()) == same


class Running(LocalCluster):
    """A local cluster that runs and has not our own driver."""

    def __init__(self) -> None:
        pass

    def state(self) -> State:
        return running()

    def simulation(self) -> None:
        return None


def running() -> State:
    return State(
        name="n",
        binaries=Path("/binaries"),
        nodes=1,
        feature_gates={"B": True},
        ports=Ports(1, 2, 3, 4, 5, 6),
        network=None,
        owner=None,
        ready=True,
        kubernetes_version="v1.37.1",
    )


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({**KIND, "churn_time": 600.0}, "add --churn-here"),
        ({**KUBECONFIG, "churn_time": 600.0}, "add --churn-here"),
        ({**LOCAL, "churn_time": 600.0, "record": True}, "does not go with --compare"),
        ({"churn_here": True}, "--churn-here goes with"),
        ({"churn_seed": -1}, "must be between 1 and"),
    ],
)
def test_long_churn_needs_leave(options: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        check_options(TargetOptions(**options))


def test_long_churn_with_leave_is_accepted() -> None:
    check_options(TargetOptions(**{**KUBECONFIG, "churn_time": 600.0, "churn_here": True}))
    check_options(TargetOptions(**{**LOCAL, "churn_time": 600.0}))


@pytest.mark.parametrize("text", ["ten", "10", "61m", "-1s"])
def test_a_time_for_churn_that_is_none_or_too_long_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--churn-time"):
        from_given(TargetOptions, {"churn_time": text})
