"""The table of declarations: complete, implemented, and the one of the real environment."""

from __future__ import annotations

import json
import shutil
import subprocess
from importlib.resources import files
from pathlib import Path

import pytest

from reference_allocator.cel import types
from reference_allocator.cel.declarations import CelFeatures, Environment, device_environment
from reference_allocator.cel.macros import _RECEIVER
from reference_allocator.cel.runtime.dispatch import _BY_NAME, IMPLEMENTATIONS

ROOT = Path(__file__).parents[3]
TABLE = files("reference_allocator.cel").joinpath("data", "kubernetes-1.37.json")

# Operators that the evaluators treat themselves, because they look at their arguments first.
SPECIAL = {
    "_&&_",
    "_||_",
    "_?_:_",
    "_==_",
    "_!=_",
    "_[_]",
    "_[?_]",
    "_?._",
    "@not_strictly_false",
}


def environment() -> Environment:
    return device_environment(CelFeatures())


def test_every_declared_overload_is_implemented() -> None:
    missing = [
        overload.id
        for name, overloads in environment().functions.items()
        for overload in overloads
        if name not in SPECIAL and name not in _BY_NAME and overload.id not in IMPLEMENTATIONS
    ]
    # Authorization has no variable in a selector, so its types have no values.
    kinds = ("authorizer_", "decision_", "groupcheck_", "pathcheck_", "resourcecheck_")
    assert [name for name in missing if not name.startswith(kinds)] == []


def test_nothing_is_implemented_that_kubernetes_does_not_declare() -> None:
    declared = {
        overload.id for overloads in environment().functions.values() for overload in overloads
    }
    assert set(IMPLEMENTATIONS) - declared == set()


def test_every_declared_macro_is_expanded() -> None:
    declared = {(item["name"], item["args"]) for item in json.loads(TABLE.read_text())["macros"]}
    assert declared == set(_RECEIVER) | {("has", 1)}


def test_gates_decide_what_new_expressions_may_use() -> None:
    def device(*, capacity: bool, lists: bool) -> Environment:
        return device_environment(CelFeatures(capacity, lists, stored=False))

    name = "kubernetes.DRADevice"
    without = device(capacity=False, lists=False)
    assert "includes" not in without.functions
    assert "allowMultipleAllocations" not in without.fields[name]
    assert without.fields[name]["attributes"].params[1].params[1] == types.ANY
    everything = device(capacity=True, lists=True)
    assert "includes" in everything.functions
    assert "allowMultipleAllocations" in everything.fields[name]
    assert everything.fields[name]["attributes"].params[1].params[1] == types.DYN
    assert "includes" in environment().functions


@pytest.mark.slow
@pytest.mark.needs_go
@pytest.mark.skipif(shutil.which("go") is None, reason="needs the go command")
def test_the_table_is_that_of_the_real_environment() -> None:
    result = subprocess.run(
        ["go", "run", "./celdump"],
        cwd=ROOT / "ci" / "upstream",
        capture_output=True,
        text=True,
        check=True,
        timeout=1800,
    )
    assert json.loads(result.stdout) == json.loads(TABLE.read_text())
