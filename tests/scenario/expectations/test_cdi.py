"""``cdi``: what a claim's spec says, that ids are in specs, and what containers have of it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pydantic import ValidationError

from conformance.scenario.documents.yamlfile import read_documents
from conformance.scenario.driver.profile import load_profile
from conformance.scenario.expectations.base import Cluster
from conformance.scenario.expectations.nodes import CdiExpectation
from conformance.scenario.lint.files import lint_documents
from kube.observations import ContainerView, ListedClaim, ListedDevice
from tests.scenario.shipped import ROOT

PROFILE = load_profile("nvml-dra-driver", ROOT / "drivers")
SPEC = {
    "cdiVersion": "0.6.0",
    "kind": "v/claim",
    "containerEdits": {"env": ["COMMON=c"], "deviceNodes": [{"path": "/dev/ctl", "type": "c"}]},
    "devices": [
        {
            "name": "a",
            "containerEdits": {
                "env": ["OWN=a=b"],
                "deviceNodes": [{"path": "/dev/nvidia0"}, {"path": "/dev/disk", "type": "b"}],
            },
        },
        {"name": "other", "containerEdits": {"env": ["OTHER=o"]}},
    ],
}
ENV = {"COMMON": "c", "OWN": "a=b"}
NODES = ("/dev/ctl", "/dev/nvidia0")


@pytest.mark.parametrize(
    ("ids", "environment", "nodes", "found"),
    [
        (["v/claim=a"], ENV, NODES, ""),
        (["v/claim=a", "v/claim=b"], ENV, NODES, "has the CDI id v/claim=b, which no spec defines"),
        ([], ENV, NODES, "has no CDI ids for claim gpu"),
        (["v/claim=a"], {"OWN": "a=b"}, NODES, "has no COMMON"),
        (["v/claim=a"], {**ENV, "OWN": "z"}, NODES, "has OWN=z, not a=b"),
        (["v/claim=a"], ENV, ("/dev/nvidia0",), "has no device file /dev/ctl"),
        (["v/claim=a"], ENV, ("/dev/ctl",), "has no device file /dev/nvidia0"),
        (["v/claim=other"], ENV, NODES, "has no OTHER"),
    ],
)
def test_containers_have_what_their_ids_stand_for(
    ids: list[str], environment: dict[str, str], nodes: tuple[str, ...], found: str
) -> None:
    seen = evaluate(ids, ContainerView(environment, nodes), containers=["c"])
    assert seen.holds == (not found)
    assert found in seen.finding


def test_what_is_not_shown_yet_is_waited_for() -> None:
    assert "has shown nothing" in evaluate(["v/claim=a"], None, containers=["c"]).finding


@pytest.mark.parametrize(
    ("cel", "holds"),
    [
        ("specs.all(s, s.kind == 'v/claim')", True),
        ("specs.exists(s, s.devices.exists(d, 'OWN=a=b' in d.containerEdits.env))", True),
        ("specs.all(s, semver(s.cdiVersion).isLessThan(semver('0.6.0')))", False),
        ("size(specs) == 2", False),
    ],
)
def test_cel_reads_the_specs(cel: str, holds: bool) -> None:
    assert evaluate([], None, cel=cel).holds is holds


@pytest.mark.parametrize("present", [True, False])
def test_it_is_there_or_gone(present: bool) -> None:
    assert evaluate([], None, present=present).holds is present
    assert evaluate([], None, present=present, specs=[]).holds is not present


def test_of_what_is_gone_nothing_can_be_said() -> None:
    with pytest.raises(ValidationError, match="specs that are present"):
        evaluate([], None, present=False, cel="true")


@pytest.mark.parametrize(
    ("right", "wrong", "says"),
    [
        ("containers: [ctr0]", "containers: [ctr1]", "there is no container 'ctr1'"),
        ("cel: size(specs)", "cel: size(spec)", "undeclared reference to 'spec'"),
        ("[cdi, pod-resources]", "[cdi]", "add requires: {abilities: ['pod-resources']}"),
    ],
)
def test_a_mistake_is_found(tmp_path: Path, right: str, wrong: str, says: str) -> None:
    file = tmp_path / "given.yaml"
    assert SCENARIO.count(right) == 1
    file.write_text(SCENARIO, encoding="utf-8")
    assert lint_documents(read_documents(file)) == []
    file.write_text(SCENARIO.replace(right, wrong), encoding="utf-8")
    assert says in "\n".join(map(str, lint_documents(read_documents(file))))


SCENARIO = """\
apiVersion: dra-conformance/v1
kind: Scenario
metadata: {name: given}
spec:
  summary: A spec says what containers get.
  level: extended
  feature: DevicePreparation
  tier: node
  requires: {devices: 1, abilities: [cdi, pod-resources], traits: [cdiPerClaim]}
  references: [https://kep.k8s.io/4381]
  steps:
  - apply: [{claim: one}, {pod: pod0, resourceClaims: [{name: gpu, resourceClaimName: one}]}]
  - expect:
    - cdi: {pod: pod0, claim: gpu, present: true, containers: [ctr0]}
      cel: size(specs) == 1
"""


def evaluate(
    ids: list[str],
    view: ContainerView | None,
    cel: str = "",
    specs: list[dict[str, Any]] | None = None,
    **wanted: Any,
) -> Any:
    files = [("claim.json", spec) for spec in ([SPEC] if specs is None else specs)]
    listed = [ListedClaim("ns", "one", (ListedDevice("d", "n0", "gpu-0", tuple(ids)),))]
    cluster = SimpleNamespace(
        profile=PROFILE,
        claim_uid=lambda *_: "uid",
        claim_of=lambda *_: {"metadata": {"name": "one"}},
        observe=SimpleNamespace(
            cdi_claims=lambda: {"uid": ["claim.json"]},
            cdi_specs=lambda: files,
            pod_resources=lambda *_: listed,
            container=lambda *_: view,
        ),
    )
    document = {"cdi": {"pod": "p", "claim": "gpu", "present": True, **wanted}}
    expectation = CdiExpectation.model_validate({**document, **({"cel": cel} if cel else {})})
    return expectation.evaluate(cast("Cluster", cluster))
