"""What lint says of the full form, it says where the author wrote the short one."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.scenario.documents.yamlfile import parse_documents
from conformance.scenario.lint.files import lint_documents

SCENARIO = """\
apiVersion: dra-conformance/v1
kind: Scenario
metadata: {{name: given}}
spec:
  summary: A pod is scheduled to the node with the device.
  level: core
  feature: ResourceClaim
  tier: {tier}
  requires: {{devices: 1}}
  references: [https://example.com]
  steps:
  - apply:
    - {{claim: one}}
    - {second}
  - expect:
    - {{forEach: {{n: [p]}}, pod: "${{each.n}}", scheduled: true}}
"""
APPLY = "given.yaml:14: $.spec.steps[0].apply[1]"
MISTAKES = {
    "{pod: p, contaners: [ctr0]}": f"{APPLY}.contaners: unknown field 'contaners'",
    "{pod: p, containers: [{name: a, imag: b}]}": f"{APPLY}.containers[0].imag: unknown field",
    "{pod: p, resourceClaims: [{name: gpu, resourceClaimName: on}]}": (
        f"{APPLY}.resourceClaims[0].resourceClaimName:"
    ),
    "{pod: p, resourceClaims: 1.5}": f"{APPLY}.resourceClaims: must be a list, is 1.5",
    "{pod: p, resourceClaims: [{name: [], resourceClaimName: one}]}": (
        f"{APPLY}.resourceClaims[0].name: must be text, is []"
    ),
    "{pod: p, metadata: 3}": f"{APPLY}",
    "{kind: [Pod], metadata: {name: p}}": f"{APPLY}.apiVersion: is required but missing",
    "{apiVersion: v1, kind: [Pod], metadata: {name: p}}": f"{APPLY}.kind: is required but missing",
    "{claim: two, requests: [{name: gpu, exactly: {selectors: ['device.driver =']}}]}": (
        f"{APPLY}.requests[0].exactly.selectors[0]"
    ),
    "{pod: p, image: '${imag}'}": f"{APPLY}.image: unknown variable ${{imag}}; did you mean",
}


@pytest.mark.parametrize("tier", ["allocation", "node"])
@pytest.mark.parametrize("second", MISTAKES)
def test_a_mistake_is_told_where_it_was_written(second: str, tier: str) -> None:
    text = SCENARIO.format(tier=tier, second=second)
    told = [line.text for line in lint_documents([*parse_documents(text, Path("given.yaml"))])]
    assert any(line.startswith(MISTAKES[second]) for line in told), told


@pytest.mark.parametrize("tier", ["allocation", "node"])
def test_of_what_is_right_nothing_is_told(tier: str) -> None:
    second = "{pod: p, resourceClaims: [{name: gpu, resourceClaimName: one}]}"
    text = SCENARIO.format(tier=tier, second=second)
    told = [line.text for line in lint_documents([*parse_documents(text, Path("given.yaml"))])]
    assert [line for line in told if "DeviceClass" not in line] == []
