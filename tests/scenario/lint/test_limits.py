"""What would hang, flood a cluster or run wild is refused at once, with the limit."""

from __future__ import annotations

import resource
import time
from pathlib import Path

import pytest

from conformance.scenario.expectations.conditions import explain_unmet
from conformance.scenario.loader import load_file
from kube.base.errors import UsageError

HEAD = """
apiVersion: dra-conformance/v1
kind: Scenario
metadata: {name: hostile}
spec:
  summary: What would be too much is refused before anything runs.
  level: core
  feature: ResourceClaim
  tier: allocation
  references: ["https://example.com"]
  nodes: [a]
  steps:
"""
END = "  - expect: [{pod: pod-0, scheduled: true}]\n"
POD = "{forEach: {n: 0..%d}, pod: 'pod-${each.n}'}"
LONG = "x" * 500_000

HOSTILE = {
    "a loop over a million": (
        "  - apply: [{forEach: {n: 1..1000000}, pod: 'pod-${each.n}'}]\n",
        "has more than 300 values",
    ),
    "ten thousand objects": (
        f"  - forEach: {{m: 0..99}}\n    apply: [{POD % 99}]\n".replace("pod-$", "pod-${each.m}-$"),
        "at most 300 objects",
    ),
    "loops in loops": (
        "  - apply: [{forEach: {a: 0..299}, forEach: {b: 0..299}, pod: p}]\n",
        "given twice",
    ),
    "loops in lists in loops": (
        (
            "  - forEach: {a: 0..299}\n"
            "    expect: [{forEach: {b: 0..299}, pod: pod-0, scheduled: true}]\n"
        ),
        "is repeated to more than 100000 values",
    ),
    "a wait of a day": ("  - wait: 1440m\n", "at most an hour"),
    "many waits": (
        "  - {forEach: {n: 1..20}, wait: '5${each.n}s'}\n",
        "at most 900 seconds of wait, consistently and churn",
    ),
    "holding for ever": (
        "  - expect: [{none: {kind: Pod}, consistently: 60m}]\n",
        "at most 900 seconds of wait, consistently and churn",
    ),
    "very many steps": ("  - {forEach: {n: 0..200}, wait: 1ms}\n", "at most 100 steps"),
    "very many at the same time": (
        "  - {forEach: {n: 0..32}, parallel: true, apply: [{pod: 'pod-${each.n}'}]}\n",
        "at most 32 steps that are carried out at the same time",
    ),
    "very many expectations": (
        (
            "  - forEach: {m: 0..9}\n"
            "    expect: [{forEach: {n: 0..99}, pod: pod-0, scheduled: true}]\n"
        ),
        "at most 300 expectations",
    ),
    "a long text in texts": (
        f"  - apply:\n    - {{forEach: {{x: ['{LONG}']}}, pod: '{'${each.x}' * 1000}'}}\n",
        "is repeated to more than 4194304 characters",
    ),
    "a long text by alias": (
        f"  - apply: [{{pod: p, metadata: {{annotations: {{a: &a '{LONG}', "
        + ", ".join(f"b{n}: *a" for n in range(50))
        + "}}}]\n",
        "more than 4194304 characters",
    ),
    "a large object taken over often": (
        (
            "  - apply:\n"
            f"    - {{pod: big, tolerations: [{', '.join('{key: k}' for _ in range(9000))}]}}\n"
            "    - {forEach: {n: 0..250}, pod: 'pod-${each.n}', like: big}\n"
        ),
        "more than 100000 values in all",
    ),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_too_much_is_refused_at_once(what: str, tmp_path: Path) -> None:
    steps, said = HOSTILE[what]
    file = tmp_path / "hostile.yaml"
    file.write_text(HEAD + steps + END, encoding="utf-8")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.process_time()
    with pytest.raises(UsageError, match=said) as refused:
        load_file(file, tmp_path)
    assert time.process_time() - began < 10
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 400_000  # KiB
    assert str(refused.value).startswith(f"{file}:")
    assert len(str(refused.value)) < 20_000


def test_as_much_as_is_allowed_is_allowed(tmp_path: Path) -> None:
    file = tmp_path / "hostile.yaml"
    steps = f"  - apply: [{POD % 296}]\n" + "  - {forEach: {n: 1..14}, wait: 1m}\n"
    file.write_text(HEAD + steps + END, encoding="utf-8")
    loaded = load_file(file, tmp_path)
    assert loaded is not None
    assert len(loaded.scenario.spec.steps) == 16


def test_a_condition_that_would_not_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("conformance.scenario.expectations.conditions._MOST_SECONDS", 0.2)
    loops = "objects.all(a, " * 6 + "true" + ")" * 6
    began = time.monotonic()
    [told] = explain_unmet(
        [loops], {"objects": [{"metadata": {"name": str(n)}} for n in range(300)]}
    )
    assert "is an error" in told
    assert time.monotonic() - began < 10
