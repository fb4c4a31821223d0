"""Churn that would be endless, wild, or somebody else's trouble is refused before anything runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.scenario.loader import load_scenarios
from kube.base.errors import UsageError
from tests.scenario.shipped import ROOT

NAME = "churn-keeps-invariants"


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (
            "time: 3s",
            "time: 31s",
            "at most 30s, is 31s; to churn for longer, run with --churn-time",
        ),
        ("time: 3s", "time: 0s", "above 0s"),
        ("rate: 30", "rate: 51", "50"),
        ("rate: 30", "rate: 0", "greater than 0"),
        ("copies: 2", "copies: 17", "16"),
        ("seed: 17", "seed: 0", "1"),
        ("mix: {slices: 2}", "mix: {slice: 2}", "did you mean slices?"),
        ("mix: {slices: 2}", "mix: {pods: 0}", "pods must be made, and must end"),
        ('"${name.other}"]', '"${name.othr}"]', "no step makes Namespace '${name.othr}'"),
        ('"${name.other}"]', '"default"]', "no step makes Namespace 'default'"),
        (
            "devices: [dev-0",
            "driver: gpu.nvidia.com, devices: [dev-0",
            "'gpu.nvidia.com' may be another driver's",
        ),
        ("- claim: shared", "- {claim: shared, metadata: {namespace: x}}", "leave it out"),
        ("- claim: shared", "- {claim: [shared]}", "must be the name of the claim"),
        ("resourceClaimName: shared", "resourceClaimName: shred", "did you mean shared?"),
        ("- template: one", "- class: one", "objects may be Pod, ResourceClaim,"),
        ("tier: allocation\n  nodes: [a, b]", "tier: node", "write mix: {finish: 0}"),
    ],
)
def test_a_mistake_in_churn_is_found(old: str, new: str, says: str, tmp_path: Path) -> None:
    text = (ROOT / "core" / f"{NAME}.yaml").read_text(encoding="utf-8")
    assert old in text
    file = tmp_path / f"{NAME}.yaml"
    file.write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(UsageError) as error:
        load_scenarios([file])
    assert says in str(error.value)
    assert f"{NAME}.yaml:" in str(error.value)
