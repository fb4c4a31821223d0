"""``podResources``: what the kubelet lists must be what is allocated."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from conformance.scenario.documents.yamlfile import read_documents
from conformance.scenario.expectations.base import Cluster
from conformance.scenario.expectations.nodes import PodResourcesExpectation
from conformance.scenario.lint.files import lint_documents
from kube.observations import ListedClaim, ListedDevice

RESULT = {"driver": "d", "pool": "n0", "device": "gpu-0", "request": "gpu"}
CLAIM = {
    "metadata": {"name": "one", "namespace": "ns"},
    "status": {"allocation": {"devices": {"results": [RESULT]}}},
}
GOOD = ListedDevice("d", "n0", "gpu-0", ("v/c=x",))


def claim(*devices: ListedDevice, name: str = "one", namespace: str = "ns") -> ListedClaim:
    return ListedClaim(namespace, name, devices)


@pytest.mark.parametrize(
    ("listed", "found"),
    [
        ([claim(GOOD)], "as allocated"),
        (None, "does not list p/c"),
        ([], "lists no claim; allocated is"),
        ([claim()], "allocated is"),
        ([claim(GOOD, GOOD)], "allocated is"),
        ([claim(GOOD, name="two")], "allocated is"),
        ([claim(GOOD, namespace="other")], "allocated is"),
        ([claim(GOOD), claim(GOOD, name="two")], "allocated is"),
        ([claim(ListedDevice("d", "n0", "gpu-1", ("v/c=x",)))], "gpu-1"),
        ([claim(ListedDevice("d", "n1", "gpu-0", ("v/c=x",)))], "n1"),
        ([claim(ListedDevice("e", "n0", "gpu-0", ("v/c=x",)))], "allocated is"),
        ([claim(ListedDevice("d", "n0", "gpu-0", ()))], "one without CDI devices"),
    ],
)
def test_it_is_compared_with_the_allocation(listed: list[ListedClaim] | None, found: str) -> None:
    seen = evaluate(listed, claims=["gpu"], cdi=True)
    assert seen.holds == (found == "as allocated")
    assert found in seen.finding


@pytest.mark.parametrize(
    ("listed", "shares", "holds"),
    [
        ("s-0", False, True),
        ("s-1", False, False),
        ("", False, True),
        ("s-0", True, True),
        ("", True, False),
    ],
)
def test_a_driver_may_leave_the_ids_of_shares_out(listed: str, shares: bool, holds: bool) -> None:
    status = {"allocation": {"devices": {"results": [{**RESULT, "shareID": "s-0"}]}}}
    device = ListedDevice("d", "n0", "gpu-0", (), listed)
    allocated = {**CLAIM, "status": status}
    seen = evaluate([claim(device)], allocated=allocated, claims=["gpu"], shares=shares)
    assert seen.holds == holds


def test_a_container_may_have_to_have_none() -> None:
    assert evaluate([], claims=[]).holds
    assert not evaluate([claim(GOOD)], claims=[]).holds


def test_cdi_devices_are_asked_for_only_where_said() -> None:
    assert evaluate([claim(ListedDevice("d", "n0", "gpu-0", ()))], claims=["gpu"]).holds


@pytest.mark.parametrize(("also", "holds"), [(None, True), ([], False), ([claim(GOOD)], False)])
def test_a_container_may_have_to_be_left_out(also: list[ListedClaim] | None, holds: bool) -> None:
    seen = evaluate([claim(GOOD)], also=also, claims=["gpu"], unlisted=["p/init"])
    assert seen.holds == holds
    assert holds or "it lists p/init" in seen.finding


@pytest.mark.parametrize(("made", "holds"), [("one", True), ("two", False), (None, False)])
def test_the_claim_of_extended_resources_is_that_of_the_pods_status(
    made: str | None, holds: bool
) -> None:
    status = {"extendedResourceClaimStatus": {"resourceClaimName": made}} if made else {}
    listed = [claim(GOOD)]
    assert evaluate(listed, pod={"status": status}, claims=[], extended=True).holds == holds


def evaluate(
    listed: list[ListedClaim] | None,
    also: list[ListedClaim] | None = None,
    pod: Any = None,
    allocated: Any = CLAIM,
    **wanted: Any,
) -> Any:
    objects = {("Pod", "p"): pod, ("ResourceClaim", "one"): CLAIM}
    cluster: Any = SimpleNamespace(
        observe=SimpleNamespace(
            pod_resources=lambda _pod, container: listed if container == "c" else also
        ),
        claim_of=lambda _pod, _claim: allocated,
        get=lambda kind, name: objects.get((kind, name)),
    )
    document = {"podResources": {"of": ["p/c"], **wanted}}
    return PodResourcesExpectation.model_validate(document).evaluate(cast("Cluster", cluster))


SCENARIO = """\
apiVersion: dra-conformance/v1
kind: Scenario
metadata: {{name: given}}
spec:
  summary: The kubelet lists claims.
  level: core
  feature: PodResources
  tier: node
  requires: {{devices: 1, abilities: [{ability}]}}
  references: [https://kep.k8s.io/3695]
  steps:
  - apply: [{{claim: one}}, {{pod: pod0, resourceClaims: [{{name: gpu, resourceClaimName: one}}]}}]
  - expect:
    - podResources: {{{asks}}}
"""


@pytest.mark.parametrize(
    ("asks", "told"),
    [
        ("of: [pod0/ctr0], claims: [gpu]", ""),
        ("of: [podd/ctr0], claims: [gpu]", "did you mean pod0?"),
        ("of: [pod0/ctr1], claims: [gpu]", "did you mean ctr0?"),
        ("of: [pod0/ctr0], claims: [gpus]", "did you mean gpu?"),
        ("of: [pod0/ctr0], claims: [gpu], unlisted: [pod0/ctr1]", "did you mean ctr0?"),
        ("of: [pod0/ctr0], claims: [gpu], cdi: true", "add requires: {traits: [cdiPerClaim]}"),
        ("of: [pod0/ctr0]", "claims"),
        ("of: [], claims: []", "of: "),
    ],
)
def test_a_mistake_in_it_is_found_before_anything_runs(
    asks: str, told: str, tmp_path: Path
) -> None:
    found = said(tmp_path, "pod-resources", asks)
    assert told in found if told else not found


def test_the_ability_must_be_asked_for(tmp_path: Path) -> None:
    told = said(tmp_path, "cdi", "of: [pod0/ctr0], claims: [gpu]")
    assert "add requires: {abilities: ['pod-resources']}" in told


def said(folder: Path, ability: str, asks: str) -> str:
    file = folder / "given.yaml"
    file.write_text(SCENARIO.format(ability=ability, asks=asks))
    return "\n".join(map(str, lint_documents(read_documents(file))))
