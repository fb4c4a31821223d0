"""Mistakes in what is watched are found before anything runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.errors import UsageError
from conformance.scenario.loader import load_scenarios

RIGHT = """\
apiVersion: dra-conformance/v1
kind: Scenario
metadata: {name: given}
spec:
  summary: What is watched is told.
  level: core
  feature: ResourceClaim
  tier: allocation
  references: [https://kep.k8s.io/4381]
  steps:
  - watch: {claims: {kind: ResourceClaim, labels: {a: b}}}
  - apply: [{claim: one}]
  - watch: {more: {kind: ResourceClaim}}
  - expect:
    - {watched: claims, events: [{ADDED: one}]}
"""


def test_it_is_right(tmp_path: Path) -> None:
    load(tmp_path, RIGHT)


@pytest.mark.parametrize(
    ("right", "wrong", "says"),
    [
        ("watched: claims", "watched: claim", "no earlier step watches as 'claim'; .*claims"),
        ("ADDED: one", "ADDED: six", "no step makes ResourceClaim 'six'"),
        ("ADDED: one", "ADD: one", "ADD"),
        ("{more:", "{claims:", "an earlier step watches as 'claims' already"),
        ("{kind: ResourceClaim}", "{kind: ResourceClam}", "ResourceClam"),
        ("{kind: ResourceClaim}", "{kind: ResourceClaim, name: one}", "name"),
        ("- watch: {more", "- as: user\n    watch: {more", "as goes with"),
        ("- expect:", "- watch: {late: {kind: Pod}}\n    expect:", "exactly one of"),
    ],
)
def test_a_mistake_is_found(right: str, wrong: str, says: str, tmp_path: Path) -> None:
    assert RIGHT.count(right) == 1
    with pytest.raises(UsageError, match=says):
        load(tmp_path, RIGHT.replace(right, wrong))


def load(folder: Path, text: str) -> None:
    file = folder / "given.yaml"
    file.write_text(text, encoding="utf-8")
    load_scenarios([file])
