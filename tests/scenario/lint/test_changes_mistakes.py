"""Mistakes in what is changed, captured, compared and watched are found before anything runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.scenario.loader import load_scenarios
from kube.base.errors import UsageError

HEAD = """\
apiVersion: dra-conformance/v1
kind: Scenario
metadata: {name: given}
spec:
  summary: What was captured is compared with what is there now.
  level: core
  feature: ResourceClaim
  tier: allocation
  references: [https://kep.k8s.io/4381]
  steps:
"""
CHANGES = """\
  - apply: [{claim: one}, {claim: two}]
  - capture: {before: {kind: ResourceClaim, name: one}}
  - patch: {kind: ResourceClaim, name: one, patch: [{op: remove, path: /metadata/labels/a}]}
  - update: {unchangedSince: before, object: {claim: one, metadata: {labels: {a: b}}}}
  - delete: [{kind: ResourceClaim, collection: true}]
  - expect:
    - {object: {kind: ResourceClaim, name: one}, cel: object.spec == before.spec}
    - together: {one: {kind: ResourceClaim, name: one}, two: {kind: ResourceClaim, name: two}}
      cel: one.spec == two.spec
    - rejected:
        patch: {kind: ResourceClaim, name: one, unchangedSince: before,
                patch: {spec: {devices: {}}}}
        code: 422
"""
WATCH = """\
  - watch: {claims: {kind: ResourceClaim, labels: {a: b}}}
  - apply: [{claim: one}]
  - watch: {more: {kind: ResourceClaim}}
  - expect:
    - {watched: claims, events: [{ADDED: one}]}
"""
CAPTURED = """\
  - apply: [{claim: one, metadata: {labels: {a: b}}}]
  - capture: {before: {kind: ResourceClaim, labels: {a: b}}}
  - apply:
    - pod: pod0
      resourceClaims: [{name: gpu, resourceClaimName: "${captured.before.metadata.name}"}]
  - expect: [{claim: "${captured.before.metadata.name}", reservedFor: [pod0]}]
  - delete: [{kind: ResourceClaim, name: "${captured.before.metadata.labels['a']}"}]
"""
MISTAKES = {
    CAPTURED: [
        (
            'before.metadata.name}", r',
            'after.metadata.name}", r',
            "captures 'after'; known: before",
        ),
        ('ed.before.metadata.name}"}]\n', 'ed.before}"}]\n', "say which value, like "),
        ('before.metadata.name}", r', 'before.metadata.nam}", r', "did you mean name?"),
        (
            "{claim: one, m",
            "{claim: '${captured.before.kind}', m",
            "no earlier step captures 'before'",
        ),
        (
            '{claim: "${captured.before.metadata.name}", reservedFor: [pod0]}',
            "{object: {kind: ResourceClaim}, cel: \"object.kind == '${captured.before.kind}'\"}",
            "CEL reads it by its name; write before.kind",
        ),
    ],
    CHANGES: [
        ("before.spec}", "after.spec}", "undeclared reference to 'after'"),
        ("cel: one.spec == two.spec", "cel: one.spec == tow.spec", "undeclared reference to 'tow'"),
        ("op: remove", "op: move", "'add', 'copy', 'remove', 'replace'"),
        (
            "{kind: ResourceClaim, name: one, unchangedSince",
            "{kind: ResourceClaim, name: none, unchangedSince",
            "no step makes ResourceClaim 'none'",
        ),
        ("patch: {spec: {devices: {}}}", "patch: {spec: {device: {}}}", "unknown field 'device'"),
        (
            "object: {claim: one, meta",
            "object: {claim: six, meta",
            "no step makes ResourceClaim 'six'",
        ),
        (
            "collection: true",
            "collection: true, name: one",
            "takes objects by kind and labels alone",
        ),
        ("{unchangedSince: before", "{unchangedSince: after", "captures 'after'; known: before"),
        ("one, unchangedSince: before", "one, unchangedSince: after", "captures 'after'"),
        (
            "name: one, patch: [",
            "name: one, unchangedSince: before, patch: [",
            "unchangedSince goes with a merge patch",
        ),
        (
            "metadata: {labels: {a: b}}",
            "metadata: {resourceVersion: '1'}",
            "give unchangedSince or metadata.resourceVersion",
        ),
        ("update: {unchangedSince: before, ", "serverSideApply: {", "fieldManager"),
        (
            "update: {unchangedSince: before, object: {claim: one, meta",
            "serverSideApply: {fieldManager: m, subresource: status, object: {claim: six, meta",
            "no step makes ResourceClaim 'six'",
        ),
        ("- update:", "- as: usr\n    update:", "'driver', 'other-driver' or 'user'"),
        ("- update:", "- as: user\n    update:", "spec.accounts has no 'user'; "),
        ("- capture: {before", "- as: user\n    capture: {before", "as goes with"),
        ("- capture: {before", "- parallel: true\n    capture: {before", "parallel goes with"),
        ("- update:", "- parallel: true\n    update:", "needs a step with parallel: true directly"),
        (
            "- update:",
            """\
- {parallel: true, apply: [{claim: six}]}
  - {parallel: true, delete: [{kind: ResourceClaim, name: six}]}
  - update:""",
            "is only made by step 3, at the same time as this one",
        ),
        ("- capture: {before", "- dryRun: true\n    capture: {before", "dryRun goes with"),
        (
            "        code: 422\n",
            "        code: 422\n        evict: {pod: p}\n",
            "one of object, patch",
        ),
    ],
    WATCH: [
        ("watched: claims", "watched: claim", "no earlier step watches as 'claim'; .*claims"),
        ("ADDED: one", "ADDED: six", "no step makes ResourceClaim 'six'"),
        ("ADDED: one", "ADD: one", "ADD"),
        ("{more:", "{claims:", "an earlier step watches as 'claims' already"),
        ("{kind: ResourceClaim}", "{kind: ResourceClam}", "ResourceClam"),
        ("{kind: ResourceClaim}", "{kind: ResourceClaim, name: one}", "name"),
        ("- watch: {more", "- as: user\n    watch: {more", "as goes with"),
        ("- expect:", "- watch: {late: {kind: Pod}}\n    expect:", "exactly one of"),
    ],
}


@pytest.mark.parametrize("steps", MISTAKES)
def test_it_is_right(steps: str, tmp_path: Path) -> None:
    load(tmp_path, steps)


@pytest.mark.parametrize(
    ("steps", "right", "wrong", "says"),
    [(steps, *row) for steps, rows in MISTAKES.items() for row in rows],
)
def test_a_mistake_is_found(steps: str, right: str, wrong: str, says: str, tmp_path: Path) -> None:
    assert steps.count(right) == 1
    with pytest.raises(UsageError, match=says):
        load(tmp_path, steps.replace(right, wrong))


def load(folder: Path, steps: str) -> None:
    file = folder / "given.yaml"
    file.write_text(HEAD + steps, encoding="utf-8")
    load_scenarios([file])
