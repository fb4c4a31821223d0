"""Feature gates of a cluster: told by its metrics, seen by a dry run, or not known."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from conformance.scenario.registry import load_registry
from conformance.targets.reference import ReferenceOptions, ReferenceTarget
from kube.errors import ApiError
from kube.values import Ref
from reference_allocator.gates import MINORS, gates_for_version, list_fixed_gates
from tests.kube.fake_api import FakeApi
from tests.targets.cluster.conftest import MakeTarget

FEATURES = load_registry().features.values()
PROBED = {str(feature.gate) for feature in FEATURES if feature.probe is not None}


def behave(api: FakeApi, version: str, gates: dict[str, bool]) -> Iterator[None]:
    """An API server of that version with these gates, whose metrics are closed."""
    options = ReferenceOptions(kubernetes_version=version, feature_gates=gates)
    with ReferenceTarget(options) as reference:
        scope = reference.scope("default")
        scope.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}})

        def dry_run(body: dict[str, Any]) -> dict[str, Any]:
            made = scope.create(body)
            scope.delete(Ref.of(made))
            return made

        api.git_version = f"v{version}"
        api.dry_run = dry_run
        yield


@pytest.fixture(params=[True, False], ids=["on", "off"])
def on(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture(params=MINORS)
def version(request: pytest.FixtureRequest) -> str:
    return f"{request.param}.0"


@pytest.fixture
def chosen(on: bool, version: str) -> dict[str, bool]:
    """All gates on, or all that may be off."""
    known = gates_for_version(version)
    return {
        name: gate.default if gate.locked else on
        for name, gate in known.items()
        if name != "DynamicResourceAllocation"
    }


@pytest.fixture
def closed(api: FakeApi, version: str, chosen: dict[str, bool]) -> Iterator[FakeApi]:
    for _ in behave(api, version, chosen):
        yield api


def test_a_dry_run_shows_gates_where_the_metrics_are_closed(
    closed: FakeApi, chosen: dict[str, bool], make_target: MakeTarget
) -> None:
    found = make_target().capabilities().feature_gates
    assert len(PROBED) == 8
    assert {name: found[name] for name in PROBED} == {
        name: chosen.get(name, False) for name in PROBED
    }
    posts = [path for method, path, _, _ in closed.requests if method == "POST"]
    assert posts
    assert [path for path in posts if "dryRun=All" not in path] == []
    assert closed.objects == {}


def test_a_gate_that_no_dry_run_shows_is_not_known(
    closed: FakeApi, on: bool, version: str, make_target: MakeTarget
) -> None:
    found = make_target().capabilities().feature_gates
    assert "DRASchedulerFilterTimeout" not in found
    # A gate that is on needs others, and these are on as well.
    status = gates_for_version(version)["DRAResourceClaimDeviceStatus"]
    expected = {"DRAResourceClaimDeviceStatus"} if on or status.locked else set()
    assert {"DRAResourceClaimDeviceStatus"} & found.keys() == expected


def test_metrics_that_may_be_read_are_believed_and_nothing_is_tried(
    api: FakeApi, make_target: MakeTarget
) -> None:
    api.metrics = 'kubernetes_feature_enabled{name="DRADeviceTaints",stage="BETA"} 0\n'
    assert make_target().capabilities().feature_gates["DRADeviceTaints"] is False
    assert api.count("POST", "dryRun") == 0


def test_who_only_reads_tries_nothing(closed: FakeApi, make_target: MakeTarget) -> None:
    found = make_target(only_read=True).capabilities().feature_gates
    assert found == list_fixed_gates(closed.git_version)
    assert closed.count("POST", "") == 0


def test_a_dry_run_that_is_forbidden_tells_nothing(api: FakeApi, make_target: MakeTarget) -> None:
    def forbidden(body: dict[str, Any]) -> dict[str, Any]:
        raise ApiError(403, "Forbidden", f"{body['kind']} is forbidden")

    api.dry_run = forbidden
    assert "DRADeviceTaints" not in make_target().capabilities().feature_gates


def test_what_a_minor_locks_or_lacks_is_known_anyhow(api: FakeApi, make_target: MakeTarget) -> None:
    api.git_version = "v1.34.3"
    found = make_target().capabilities().feature_gates
    assert found["DRADeviceTaintRules"] is False
    api.git_version = "v1.37.1"
    found = make_target().capabilities().feature_gates
    assert found["DRAResourceClaimDeviceStatus"] is True
    assert "DRADeviceTaintRules" not in found
