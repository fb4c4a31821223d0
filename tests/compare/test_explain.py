"""Why a claim is pending: asked of a target that is only read, and of a saved snapshot."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from conformance.compare.explain import explain_file, explain_pending
from conformance.engine.setup import Setup
from conformance.engine.suite import run_suite
from conformance.errors import UsageError
from conformance.scenario.loader import load_scenarios
from conformance.targets.opening.options import TargetOptions
from conformance.targets.opening.target import open_reference
from conformance.targets.reference import ReferenceTarget
from conformance.targets.reference.scope import ReferenceScope
from tests.targets.reference import kit

SELECTOR = {"cel": {"expression": "device.attributes['gpu.nvidia.com'].productName == 'X'"}}


@pytest.fixture
def scope() -> Iterator[ReferenceScope]:
    with ReferenceTarget() as target:
        scope = target.scope("ns")
        scope.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ns"}})
        scope.create(kit.device_class())
        yield scope


def test_the_selector_that_removes_the_devices_is_named(scope: ReferenceScope) -> None:
    scope.create(kit.claim("picky", kit.request(selectors=[SELECTOR])))
    assert explain_pending(scope, "picky") == (
        f"ns/picky: 0/1 nodes: {kit.NODE}: 4 devices of class gpu.nvidia.com: "
        "4 fail selector #0 (productName Tesla T4 is not X)"
    )


def test_a_pods_claims_are_explained_together(scope: ReferenceScope) -> None:
    scope.create(kit.claim("three", kit.request(count=3)))
    scope.create(kit.claim("two", kit.request(count=2)))
    scope.create(kit.claim("bystander", kit.request(count=4)))
    scope.create(kit.pod("p", kit.container("c", "a", "b"), claims={"a": "three", "b": "two"}))
    text = explain_pending(scope, "p")
    assert "each can be allocated alone, but not claim ns/three and claim ns/two together" in text
    assert "bystander" not in text


def test_a_claim_that_nothing_keeps_pending_is_reported_so(scope: ReferenceScope) -> None:
    scope.create(kit.claim("free"))
    text = explain_pending(scope, "free")
    assert "can be allocated" in text
    assert "no rule of DRA keeps the claim pending" in text


def test_what_an_allocated_claim_has_is_reported(scope: ReferenceScope) -> None:
    scope.create(kit.claim("used"))
    scope.create(kit.pod("p", kit.container("c", "a"), claims={"a": "used"}))
    kit.runs(scope, "p")
    with pytest.raises(UsageError, match=r"is not pending: claim used has gpu.nvidia.com/.*/gpu-"):
        explain_pending(scope, "used")


@pytest.mark.parametrize("name", ["nothing", "bare"])
def test_what_has_no_claim_is_an_error(scope: ReferenceScope, name: str) -> None:
    scope.create(kit.pod("bare", kit.container()))
    with pytest.raises(UsageError, match=f"ns/{name}: "):
        explain_pending(scope, name)


def test_a_saved_snapshot_is_explained_without_a_target(
    scope: ReferenceScope, tmp_path: Path
) -> None:
    scope.create(kit.claim("five", kit.request(count=5)))
    path = tmp_path / "snapshot.json"
    path.write_text(json.dumps(scope.snapshot()))
    assert "4 devices of class gpu.nvidia.com: 4 left; 5 needed" in explain_file(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ("{}", r"is not a snapshot: \$.apiVersion: is missing; expected"),
        ('{"apiVersion": "dra-conformance/v1", "kind": "Snapshot"}', "is not a snapshot"),
    ],
)
def test_a_file_that_is_no_snapshot_is_named(content: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    path.write_text(content)
    with pytest.raises(UsageError, match=message) as caught:
        explain_file(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("path", ["/dev/zero", "/", "/absent"])
def test_what_is_not_a_file_is_not_read(path: str) -> None:
    with pytest.raises(UsageError, match=r"is not a regular file|No such file"):
        explain_file(Path(path))


SCENARIO = """
apiVersion: dra-conformance/v1
kind: Scenario
metadata: {name: never-allocated}
spec:
  summary: A pod that asks for more devices than there are is expected to run.
  level: core
  feature: ResourceClaim
  tier: node
  requires: {devices: 1}
  references: [https://kep.k8s.io/4381]
  timeouts: {eventually: 1s}
  steps:
  - apply:
    - apiVersion: resource.k8s.io/v1
      kind: ResourceClaim
      metadata: {name: many}
      spec:
        devices: {requests: [{name: gpu, exactly: {deviceClassName: "${class.gpu}", count: 9}}]}
    - apiVersion: v1
      kind: Pod
      metadata: {name: pod0}
      spec:
        containers: [{name: ctr0, image: "${image}", resources: {claims: [{name: c}]}}]
        resourceClaims: [{name: c, resourceClaimName: many}]
  - expect:
    - {pod: pod0, phase: Running}
"""


def test_a_failed_scenario_says_why_its_claims_have_no_allocation(tmp_path: Path) -> None:
    path = tmp_path / "never-allocated.yaml"
    path.write_text(SCENARIO)
    loaded = load_scenarios([path])
    with open_reference(TargetOptions()) as opened:
        [finished] = run_suite(loaded, Setup("run", opened), ()).finished
    assert "claims without allocation: 0/1 nodes: reference-node-0: " in finished.message
    assert "4 devices of class gpu.nvidia.com: 4 left; 9 needed" in finished.message
