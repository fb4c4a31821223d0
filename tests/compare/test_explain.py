"""Why a claim is pending: situations on a reference, captured from its API server."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from conformance.compare.explain import (
    PendingExplanation,
    explain_file,
    explain_snapshot,
    read_snapshot,
)
from conformance.engine.setup import Setup
from conformance.engine.suite import run_suite
from conformance.scenario.loader import load_scenarios
from conformance.targets.cluster.capture import capture
from conformance.targets.opening.options import TargetOptions
from conformance.targets.opening.target import open_reference
from conformance.targets.reference import ReferenceTarget
from conformance.targets.reference.scope import ReferenceScope
from conformance.targets.reference.serving import real_time
from conformance.targets.reference.target import ReferenceOptions
from kube.api import Api
from kube.base.errors import UsageError
from kube.connection import Connection
from kubesim.front.server import Front
from kubesim.front.serving import seconds_since_epoch
from tests.compare import cluster
from tests.kubesim import kit

SELECTOR = {"cel": {"expression": "device.attributes['gpu.nvidia.com'].productName == 'X'"}}
GPUS = f"{kit.NODE}: 4 devices of class gpu.nvidia.com"


@pytest.fixture
def target() -> Iterator[ReferenceTarget]:
    with ReferenceTarget(ReferenceOptions(start=seconds_since_epoch())) as target:
        yield target


@pytest.fixture
def scope(target: ReferenceTarget) -> ReferenceScope:
    scope = target.scope("ns")
    scope.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ns"}})
    scope.create(kit.device_class())
    return scope


@pytest.fixture
def ask(target: ReferenceTarget, tmp_path: Path) -> Iterator[Callable[[str], PendingExplanation]]:
    """Explains a pod or claim of the reference, asked over HTTP as a cluster is."""
    front = Front(real_time(target), tmp_path, "test")
    api = Api(Connection.open(front.kubeconfig, "dra-conformance-test"))

    def explain(name: str) -> PendingExplanation:
        [told] = explain_snapshot(read_snapshot(capture(api, pytest.fail)), f"ns/{name}")
        return told

    yield explain
    api.connection.close()
    front.close()


def use(scope: ReferenceScope, name: str, number: int) -> None:
    """A pod that has devices, and runs."""
    scope.create(kit.claim(f"{name}-gpus", kit.request(count=number)))
    scope.create(kit.pod(name, kit.container("c", "a"), claims={"a": f"{name}-gpus"}))
    kit.runs(scope, name)


def want(scope: ReferenceScope, *requests: dict[str, Any], **spec: Any) -> None:
    """A pod that is not given its devices."""
    scope.create(kit.claim("wanted", *requests))
    scope.create(kit.pod("p", kit.container("c", "a"), claims={"a": "wanted"}, **spec))


def test_nothing_is_promised_where_nothing_helps(
    scope: ReferenceScope, ask: Callable[[str], PendingExplanation]
) -> None:
    want(scope, kit.request(selectors=[SELECTOR]), nodeSelector={"disk": "none"})
    told = ask("p")
    assert told.changes == ()
    assert "no single change that was tried" in told.text


def test_what_is_in_use_is_told_with_who_has_it(
    scope: ReferenceScope, ask: Callable[[str], PendingExplanation]
) -> None:
    use(scope, "holder", 4)
    want(scope)
    [held] = ask("wanted").held
    assert (held.claim, held.pods, len(held.devices)) == ("ns/holder-gpus", ("ns/holder",), 4)


def test_a_pods_claims_are_explained_together(
    scope: ReferenceScope, ask: Callable[[str], PendingExplanation]
) -> None:
    scope.create(kit.claim("three", kit.request(count=3)))
    scope.create(kit.claim("two", kit.request(count=2)))
    scope.create(kit.claim("bystander", kit.request(count=4)))
    scope.create(kit.pod("p", kit.container("c", "a", "b"), claims={"a": "three", "b": "two"}))
    told = ask("p")
    together = "each can be allocated alone, but not claim ns/three and claim ns/two together"
    assert told.reasons[0].reason.startswith(together)
    assert "bystander" not in told.text
    assert told.changes
    assert told.changes[0].change == "request gpu of claim ns/three asked for 2 instead of 3"


def late(scope: ReferenceScope) -> None:
    want(scope, schedulerName="absent")


def gated(scope: ReferenceScope) -> None:
    want(scope, schedulingGates=[{"name": "quota"}])


def unmade(scope: ReferenceScope) -> None:
    scope.create(kit.pod("p", kit.container("c", "a"), templates={"a": "absent"}))


def unused(scope: ReferenceScope) -> None:
    use(scope, "holder", 1)
    scope.create(kit.claim("wanted"))


@pytest.mark.parametrize(
    ("situation", "name", "text"),
    [
        (late, "p", "no rule of DRA keeps it pending"),
        (gated, "p", "scheduling gates hold the pod: quota"),
        (unmade, "p", "ResourceClaimTemplate absent"),
        (unused, "wanted", "no pod waits for it"),
        (unused, "holder", "is not pending: claim holder-gpus has gpu.nvidia.com/"),
        (unused, "holder-gpus", "is not pending: claim holder-gpus has gpu.nvidia.com/"),
    ],
)
def test_what_is_no_rule_of_dra_is_told(
    scope: ReferenceScope,
    ask: Callable[[str], PendingExplanation],
    situation: Callable[[ReferenceScope], None],
    name: str,
    text: str,
) -> None:
    situation(scope)
    assert text in " ".join(ask(name).text.split())


def test_a_driver_that_publishes_nothing_for_a_node_is_named() -> None:
    other = cluster.device_class()
    other["metadata"]["name"] = "nic"
    other["spec"]["selectors"][0]["cel"]["expression"] = "device.driver == 'nic.example.com'"
    wanted = cluster.claim()
    wanted["spec"]["devices"]["requests"][0]["exactly"]["deviceClassName"] = "nic"
    document = cluster.snapshot(device_classes=(other,), claims=(wanted,))
    [told] = explain_snapshot(read_snapshot(document))
    assert "driver nic.example.com publishes nothing for the node" in told.reasons[0].reason


def test_an_error_on_one_node_keeps_the_pod_from_all() -> None:
    bare = cluster.resource_slice("node-b")
    for device in bare["spec"]["devices"]:
        del device["capacity"]
    document = cluster.snapshot(
        slices=(cluster.resource_slice(), bare),
        nodes=(cluster.node(), cluster.node("node-b")),
        claims=(cluster.claim(memory="40Gi"),),
    )
    [told] = explain_snapshot(read_snapshot(document))
    assert told.note == "the error on node-b ends the scheduler's attempt for every node"
    assert told.fits == ()
    assert told.changes
    assert told.changes[0].change.endswith("did not have selector #0")


def test_a_number_that_nobody_has_does_not_take_for_ever() -> None:
    document = cluster.snapshot(claims=(cluster.claim(count=2**62),))
    [told] = explain_snapshot(read_snapshot(document))
    assert told.changes
    assert "asked for 2 instead of" in told.changes[0].change


def test_what_does_not_exist_is_an_error(ask: Callable[[str], PendingExplanation]) -> None:
    with pytest.raises(UsageError, match="ns/nothing: there is no ResourceClaim"):
        ask("nothing")


@pytest.mark.parametrize("packed", [False, True])
def test_a_saved_snapshot_is_explained_without_a_target(
    scope: ReferenceScope, tmp_path: Path, packed: bool
) -> None:
    scope.create(kit.claim("five", kit.request(count=5)))
    path, data = tmp_path / "snapshot.json", json.dumps(scope.snapshot()).encode()
    path.write_bytes(gzip.compress(data) if packed else data)
    [told] = explain_file(path)
    assert told.reasons[0].reason == "4 devices of class gpu.nvidia.com: 4 left; 5 needed"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "is not JSON"),
        ("", "is empty; take it from its source again"),
        ("[" * 100_000, "is nested deeper than 128"),
        ("{}", r"\$.apiVersion: is missing; expected"),
        ('{"apiVersion": "dra-conformance/v2", "kind": "Snapshot"}', r"\$.apiVersion: expected"),
        ('{"apiVersion": "dra-conformance/v1", "kind": "Snapshot"}', r"\$.kubernetes"),
        (
            json.dumps(cluster.snapshot(pods=({"spec": 3},))),
            "the snapshot or the decision is damaged",
        ),
        pytest.param(
            gzip.compress(b"{}" * 9999)[:-9], "cannot be unpacked: it is cut off", id="cut off"
        ),
        pytest.param(b"\x1f\x8bno", "cannot be unpacked", id="no gzip"),
    ],
)
def test_a_file_that_is_no_snapshot_is_named(
    content: str | bytes, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "file.json"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(UsageError, match=message) as caught:
        explain_file(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("path", ["/dev/zero", "/absent"])
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
