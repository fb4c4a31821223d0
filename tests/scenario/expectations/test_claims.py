"""``claim``: what is said of an allocation holds for that alone, and failures say what was seen."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import yaml

from conformance.scenario.base import ObjectSelector
from conformance.scenario.documents.yamlfile import read_documents
from conformance.scenario.expectations.base import Cluster
from conformance.scenario.expectations.claims import ClaimExpectation
from conformance.scenario.lint.files import lint_documents
from kube.values import Obj


def result(device: str, request: str = "gpu", pool: str = "n0") -> Obj:
    return {"driver": "d", "pool": pool, "device": device, "request": request}


def claim(*results: Obj, users: tuple[Obj, ...] = ()) -> Obj:
    status = {"allocation": {"devices": {"results": [*results]}}, "reservedFor": [*users]}
    return {"metadata": {"name": "one"}, "status": status}


def user(name: str, uid: str, resource: str = "pods") -> Obj:
    return {"resource": resource, "name": name, "uid": uid}


NEW: Obj = {"metadata": {"name": "one"}}
ONE = claim(result("a"), users=(user("p", "u"),))
TWO = claim(result("a"), result("a", pool="n/1"), result("b", "nic/any"))
GONE = claim(result("a"), users=(user("gone", "w"),))


@pytest.mark.parametrize(
    ("seen", "words", "told"),
    [
        (NEW, "allocated: false, reservedFor: []", ""),
        (NEW, "allocated: true", "expected allocated, it is not allocated"),
        (NEW, "devices: [a]", "expected a, it is not allocated"),
        (ONE, "allocated: true, reservedFor: [p]", ""),
        (ONE, "allocated: false", "expected not allocated, it is allocated d/n0/a for gpu"),
        (ONE, "devices: [a]", ""),
        (ONE, "devices: [d/n0/a]", ""),
        (ONE, "devices: [n1/a]", "expected n1/a, it is allocated d/n0/a for gpu"),
        (ONE, "devices: [0/a]", "expected 0/a"),
        (ONE, "devices: [a, b]", "expected a, b"),
        (ONE, "devices: {nic: [a]}", "expected a for nic"),
        (TWO, "devices: [b, a, a]", ""),
        (TWO, "devices: [b, a, n0/a]", ""),
        (TWO, "devices: [b, a]", "expected b, a, it is allocated d/n0/a for gpu, d/n/1/a for gpu"),
        (TWO, "devices: [b, b, a]", "expected b, b, a"),
        (TWO, "devices: {gpu: [a, n/1/a], nic/any: [b]}", ""),
        (TWO, "devices: {gpu: [a, b], nic/any: [a]}", "expected a for gpu, b for gpu, a for nic"),
        (ONE, "reservedFor: []", "expected reserved for nobody, it is for p"),
        (ONE, "reservedFor: [p, q]", "expected reserved for p, q, it is for p"),
        (GONE, "reservedFor: [gone]", ""),
        (claim(users=(user("p", "v"),)), "reservedFor: [p]", "with the uid v; the pod has u"),
        (claim(users=(user("p", "u", "jobs"),)), "reservedFor: [p]", "it is for jobs/p"),
    ],
)
def test_it_holds_for_what_it_says_alone(seen: Obj, words: str, told: str) -> None:
    def find(selector: ObjectSelector) -> list[Obj]:
        if selector.kind == "ResourceClaim":
            return [seen]
        return [{"metadata": {"uid": "u"}}] if selector.name == "p" else []

    cluster: Any = SimpleNamespace(find=find, make_canonical=str)
    expectation = ClaimExpectation.model_validate(yaml.safe_load(f"{{claim: one, {words}}}"))
    found = expectation.evaluate(cast("Cluster", cluster))
    assert found.holds == (not told)
    assert (told or "as described") in found.finding


SCENARIO = """\
apiVersion: dra-conformance/v1
kind: Scenario
metadata: {{name: given}}
spec:
  summary: A claim has the devices that it asks for.
  level: core
  feature: ResourceClaim
  tier: allocation
  nodes: [a]
  references: [https://kep.k8s.io/4381]
  steps:
  - apply:
    - class: ${{class.gpu}}
    - {{slice: "${{name.slice}}", nodeName: "${{node.a}}", devices: [dev-0]}}
    - claim: one
      requests: [gpu, {{name: nic, firstAvailable: [{{name: fast}}, {{name: slow}}]}}]
    - {{template: own}}
    - pod: pod0
      resourceClaims:
      - {{name: gpu, resourceClaimName: one}}
      - {{name: own, resourceClaimTemplateName: own}}
  - patch:
      kind: ResourceSlice
      name: ${{name.slice}}
      patch: {{spec: {{devices: [{{name: dev-1}}]}}}}
  - expect:
    - {expects}
"""


@pytest.mark.parametrize(
    ("expects", "told"),
    [
        ("{claim: one, devices: [dev-0, any-pool/dev-1], reservedFor: [pod0]}", ""),
        ("{claim: one, devices: {gpu: [dev-0], nic/slow: [dev-1]}}", ""),
        ("{claim: {ownedBy: pod0, podClaim: own}, devices: {gpu: [dev-0]}}", ""),
        ("{claim: ones, allocated: false}", "did you mean one?"),
        ("{claim: one}", "expect allocated, devices or reservedFor of the claim"),
        ("{claim: one, allocated: true, devices: [dev-0]}", "leave allocated out"),
        ("{claim: one, allocated: false, reservedFor: [pod0]}", "only an allocated claim"),
        ("{claim: one, devices: []}", "devices: must not be empty"),
        ("{claim: one, devices: [dev-2]}", "no ResourceSlice has a device 'dev-2'; did you mean"),
        ("{claim: one, devices: {nic: [dev-0]}}", "there is no request 'nic'"),
        ("{claim: one, devices: {nic/slo: [dev-0]}}", "did you mean nic/slow?"),
        ("{claim: one, reservedFor: [pod1]}", "no step makes Pod 'pod1'; did you mean pod0?"),
        ("{claim: {ownedBy: pod1}, allocated: true}", "no step makes 'pod1'; did you mean pod0?"),
        ("{claim: {podClaim: gpus}, allocated: true}", "did you mean gpu?"),
        ("{claim: 1, allocated: true}", "expect[0].claim: must be a mapping"),
        ("{claim: {ownedby: a}, allocated: true}", "unknown field 'ownedby'"),
        ("{claim: one, devices: {gpu: dev-0}}", "expect[0].devices.gpu: "),
        ("{claim: {}, allocated: true}", "give the claim's name, or ownedBy or podClaim"),
    ],
)
def test_a_mistake_in_it_is_found_before_anything_runs(
    expects: str, told: str, tmp_path: Path
) -> None:
    file = tmp_path / "given.yaml"
    file.write_text(SCENARIO.format(expects=expects), encoding="utf-8")
    found = lint_documents(read_documents(file))
    assert bool(found) == bool(told)
    assert told in "\n".join(map(str, found))
