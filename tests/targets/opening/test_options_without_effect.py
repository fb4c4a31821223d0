"""An option that would do nothing is refused: else something else is tested, and passes."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from conformance.targets.opening.checks import check_options
from conformance.targets.opening.options import DEFAULT_VERSION, TargetOptions
from conformance.targets.opening.sources import _match_running_cluster
from conformance.targets.opening.target import open_target
from kube.base.errors import UsageError
from kube.base.options import build_options
from localkube import LocalCluster
from localkube.state import Ports, State

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
        ({**KIND, "nodes": 2}, "--nodes"),
        ({**KIND, "kubernetes_version": "1.35.0"}, "--kubernetes"),
        ({"binaries": Path("/b")}, "--binaries"),
        ({"keep": True}, "--keep-cluster"),
        ({**LOCAL, "context": "prod"}, "--context"),
        ({**LOCAL, "image_archives": (Path("/i"),)}, "--image-archive"),
        ({**KIND, "feature_gates": {"DRAAdminAccess": True}}, "--feature-gate"),
        ({**KIND, "driver_command": ("x",)}, "--driver-command"),
        ({**KIND, "node_kubernetes": "1.36.3"}, "--node-kubernetes"),
        ({"upgrade_to": "1.37.1"}, "--upgrade-to"),
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
    ("options", "message"),
    [
        ({"kubernetes_version": "1.36.3", "node_kubernetes": "1.37.1"}, "at most 3 minors older"),
        ({"node_kubernetes": "1.33.0"}, "at most 3 minors older than the API server"),
        ({"node_kubernetes": "1.36.3", "nodes": 0}, "--nodes 0 has no kubelet"),
        ({"node_kubernetes": "1.36.3", "binaries": Path("/b")}, "--node-kubernetes has no effect"),
        ({"scheduler_kubernetes": "1.36.3"}, "this cluster's own is of --kubernetes"),
        ({"kubernetes_version": "1.34.4", "upgrade_to": "1.36.3"}, "by one minor, here from 1.34"),
        ({"kubernetes_version": "1.35.4", "upgrade_to": "1.34.4"}, "by one minor, here from 1.35"),
    ],
)
def test_versions_that_kubernetes_does_not_support_together_are_refused(
    options: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        check_options(TargetOptions(**LOCAL, **options))


def test_versions_that_kubernetes_supports_together_are_taken() -> None:
    for node in ("1.34", "1.37"):
        check_options(build_options(TargetOptions, {**LOCAL, "node_kubernetes": node}))
    of_next = {**LOCAL, "kubernetes_version": "1.36", "upgrade_to": "1.37"}
    check_options(build_options(TargetOptions, of_next))
    with pytest.raises(UsageError, match=r"^--node-kubernetes: "):
        build_options(TargetOptions, {**LOCAL, "node_kubernetes": "1.12"})


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
        {**LOCAL, **OLDEST, "feature_gates": {"DRAAdminAccess": False}},
        {**LOCAL, "feature_gates": {"NodeSwap": True}},  # is left to its components
        {**LOCAL, "feature_gates": {"DRAInTheFuture": True}, "binaries": Path("/b")},
        {**KUBECONFIG, "churn_time": 600.0, "churn_here": True},
        {**LOCAL, "churn_time": 600.0},
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
        (
            {**LOCAL, "kubernetes_version": "1.34.0", "binaries": Path("/b")},
            "--kubernetes has no effect on --binaries",
        ),
        (
            {**LOCAL, **OLDEST, "feature_gates": {"DRADerivedAttributes": True}},
            "1.34 has no DRA feature gate DRADerivedAttributes",
        ),
        ({"feature_gates": {"Nope": True}}, "has no DRA feature gate Nope"),
        ({"feature_gates": {"DRADeviceTaint": True}}, "did you mean DRADeviceTaints?"),
        ({"feature_gates": {"DRAAdminAccess": False}}, "is locked to true"),
        ({"feature_gates": {"DynamicResourceAllocation": False}}, "turns DRA off"),
        (
            {"feature_gates": {"DRADeviceTaints": False}},
            "DRADeviceTaintRules is on and depends on DRADeviceTaints",
        ),
        ({**LOCAL, "feature_gates": {"DRANope": False}}, "DRANope"),
        ({**LOCAL, "feature_gates": {"DRAAdminAccess": False}}, "DRAAdminAccess"),
        ({**KIND, "churn_time": 600.0}, "add --churn-here"),
        ({**KUBECONFIG, "churn_time": 600.0}, "add --churn-here"),
        ({**LOCAL, "churn_time": 600.0, "record": True}, "does not go with --compare"),
        ({"churn_here": True}, "--churn-here goes with"),
        ({"churn_seed": -1}, "must be between 1 and"),
    ],
)
def test_options_that_cannot_be_had_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        check_options(TargetOptions(**options))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        *(
            ({"kubernetes_version": text}, r"known minors: 1\.34")
            for text in ("1.20", "x", "1.99.1")
        ),
        *(
            ({"kubernetes_version": text}, "--kubernetes: .*Kubernetes version")
            for text in ("1.34.0.1", "1.34/..", "1.34.x")
        ),
        ({"feature_gates": ["A=true", "A=false"]}, "A is set to both true and false"),
        *(({"churn_time": text}, "--churn-time") for text in ("ten", "10", "61m", "-1s")),
    ],
)
def test_a_text_that_is_no_version_gate_or_time_is_refused(
    options: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        build_options(TargetOptions, options)


@pytest.mark.parametrize(
    ("given", "version"), [("v1.34", "1.34.4"), ("1.34.0", "1.34.0"), ("1.37", DEFAULT_VERSION)]
)
def test_a_minor_is_the_patch_that_is_pinned(given: str, version: str) -> None:
    assert build_options(TargetOptions, {"kubernetes_version": given}).version == version


def test_a_target_is_not_opened_with_an_option_that_would_do_nothing() -> None:
    with pytest.raises(UsageError, match="--context"), open_target(TargetOptions(context="x")):
        pass


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
        _match_running_cluster(TargetOptions(**LOCAL, name="n", **options), Running())


def test_a_running_cluster_is_used_by_those_who_want_what_it_is() -> None:
    same = TargetOptions(**LOCAL, name="n", binaries=Path("/binaries"), feature_gates={"B": True})
    assert _match_running_cluster(same, Running()) == replace(same, nodes=1)


class Running(LocalCluster):
    """A local cluster that runs and has not our own driver."""

    def __init__(self) -> None:
        pass

    def state(self) -> State:
        return running()

    def driver_command(self) -> tuple[str, ...]:
        return ()


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
