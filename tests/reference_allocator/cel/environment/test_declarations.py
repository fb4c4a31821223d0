"""The table of declarations: complete, implemented, and the one of the real environment."""

from __future__ import annotations

import json
import shutil
import subprocess
from importlib.resources import files
from itertools import pairwise
from pathlib import Path

import pytest

from reference_allocator.cel import CelFeatures, compile_derived, types
from reference_allocator.cel.environment.declarations import Environment, device_environment
from reference_allocator.cel.environment.tables import (
    CHANGED,
    Table,
    Variant,
    load_table,
)
from reference_allocator.cel.library.dispatch import _BY_NAME, IMPLEMENTATIONS
from reference_allocator.cel.parser.macros import _RECEIVER
from reference_allocator.cel.types import CelType
from reference_allocator.gates import LATEST, MINORS

ROOT = Path(__file__).parents[4]
DATA = files("reference_allocator.cel.environment").joinpath("data")

# Operators that the evaluators treat themselves, because they look at their arguments first.
SPECIAL = {"_&&_", "_||_", "_?_:_", "_==_", "_!=_", "_[_]", "_[?_]", "_?._", "@not_strictly_false"}


def environment(minor: str = LATEST) -> Environment:
    return device_environment(CelFeatures(kubernetes=minor))


@pytest.mark.parametrize("minor", MINORS)
def test_every_declared_overload_is_implemented(minor: str) -> None:
    missing = [
        overload.id
        for name, overloads in environment(minor).table.functions.items()
        for overload in overloads
        if {name, overload.id}.isdisjoint(SPECIAL | _BY_NAME.keys() | IMPLEMENTATIONS.keys())
    ]
    # Authorization has no variable in a selector, so its types have no values.
    kinds = ("authorizer_", "decision_", "groupcheck_", "pathcheck_", "resourcecheck_")
    assert [name for name in missing if not name.startswith(kinds)] == []


def test_nothing_is_implemented_that_no_minor_declares() -> None:
    declared = {
        name
        for minor in MINORS
        for function, overloads in environment(minor).table.functions.items()
        for name in (function, *(overload.id for overload in overloads))
    }
    assert set(IMPLEMENTATIONS) - declared == set()


@pytest.mark.parametrize("minor", MINORS)
def test_every_declared_macro_is_expanded(minor: str) -> None:
    assert load_table(minor).macros == set(_RECEIVER) | {("has", 1)}


def overloads(table: Table) -> dict[str, tuple[str, CelType]]:
    return {
        overload.id.partition("@1.")[0]: (name, overload.result)
        for name, overloads_of_name in table.functions.items()
        for overload in overloads_of_name
    }


def test_the_minors_differ_in_three_functions() -> None:
    changes = {}
    for older, newer in pairwise(MINORS):
        overloads_before, overloads_after = (
            overloads(load_table(older)),
            overloads(load_table(newer)),
        )
        assert {
            name: overloads_before[name]
            for name in overloads_before.keys() & overloads_after.keys()
        } == {
            name: overloads_after[name] for name in overloads_before.keys() & overloads_after.keys()
        }
        changes[newer] = (
            sorted(overloads_before.keys() - overloads_after.keys()),
            sorted(overloads_after.keys() - overloads_before.keys()),
        )
    assert changes == {
        "1.35": ([], []),
        "1.36": ([], ["dra_includes_dyn_dyn"]),
        # duration(int) never had an implementation; includes() became one of the lists library.
        "1.37": (["dra_includes_dyn_dyn", "int64_to_duration"], ["list_includes_dyn_dyn"]),
        "1.38": ([], ["cidr_is_mask"]),
    }
    assert all(load_table(minor).type_names == load_table(LATEST).type_names for minor in MINORS)


def test_what_a_minor_evaluates_or_charges_differently_has_a_name_of_its_own_before() -> None:
    for changed_in, changed in CHANGED.items():
        before = MINORS[MINORS.index(changed_in) - 1]
        names = {
            minor: {
                overload.id for items in load_table(minor).functions.values() for overload in items
            }
            for minor in (before, changed_in)
        }
        assert {f"{name}@{before}" for name in changed} <= names[before]
        assert changed <= names[changed_in]


def test_new_expressions_of_1_34_lack_the_list_functions_that_1_33_does_not_have() -> None:
    absent = load_table("1.34").variants[(False, True, True)].absent
    assert {"list_distinct", "list_flatten", "list_reverse", "list_slice", "lists_range"} < absent
    assert all("sort" in name for name in absent if name.startswith(("list_int", "list_string")))
    assert len(absent) == 22
    assert not load_table("1.35").variants[(False, True, True)].absent


def variants(minor: str, *, stored: bool) -> dict[tuple[bool, bool], Variant]:
    return {
        key[1:]: variant for key, variant in load_table(minor).variants.items() if key[0] is stored
    }


@pytest.mark.parametrize("minor", MINORS)
def test_stored_expressions_may_use_every_function_and_field(minor: str) -> None:
    for variant in variants(minor, stored=True).values():
        assert not variant.absent
        assert "allowMultipleAllocations" in variant.device_fields


@pytest.mark.parametrize(
    ("minor", "stored", "with_gate", "without"),
    [
        ("1.34", True, types.ANY, types.ANY),
        ("1.35", True, types.ANY, types.ANY),
        ("1.36", True, types.DYN, types.ANY),
        ("1.37", True, types.DYN, types.DYN),
        ("1.34", False, types.ANY, types.ANY),
        ("1.35", False, types.ANY, types.ANY),
        ("1.36", False, types.DYN, types.ANY),
        ("1.37", False, types.DYN, types.ANY),
    ],
)
def test_the_type_of_an_attribute_depends_on_minor_and_gate(
    minor: str, stored: bool, with_gate: CelType, without: CelType
) -> None:
    variants_of_minor = variants(minor, stored=stored)
    assert {variants_of_minor[(capacity, True)].attribute for capacity in (True, False)} == {
        with_gate
    }
    assert {variants_of_minor[(capacity, False)].attribute for capacity in (True, False)} == {
        without
    }


def test_a_minor_without_a_table_is_refused() -> None:
    with pytest.raises(
        ValueError, match=r"no CEL declarations for Kubernetes '1\.33'; known: 1\.34"
    ):
        device_environment(CelFeatures(kubernetes="1.33"))


def test_derived_attributes_begin_with_1_37() -> None:
    with pytest.raises(ValueError, match=r"Kubernetes 1\.36 has no derived attributes"):
        compile_derived("1", features=CelFeatures(kubernetes="1.36"))


def test_gates_decide_what_new_expressions_may_use() -> None:
    def device(*, capacity: bool, lists: bool) -> Environment:
        return device_environment(CelFeatures(capacity, lists, stored=False))

    name = "kubernetes.DRADevice"
    without = device(capacity=False, lists=False)
    assert "includes" not in without.table.functions
    assert "allowMultipleAllocations" not in without.table.messages[name].fields
    assert without.table.messages[name].fields["attributes"].params[1].params[1] == types.ANY
    everything = device(capacity=True, lists=True)
    assert "includes" in everything.table.functions
    assert "allowMultipleAllocations" in everything.table.messages[name].fields
    assert everything.table.messages[name].fields["attributes"].params[1].params[1] == types.DYN
    assert "includes" in environment().table.functions


@pytest.mark.slow
@pytest.mark.needs_go
@pytest.mark.skipif(shutil.which("go") is None, reason="needs the go command")
@pytest.mark.parametrize(
    "minor",
    [
        minor if minor == LATEST else pytest.param(minor, marks=pytest.mark.everything)
        for minor in MINORS
    ],
)
def test_the_table_is_that_of_the_real_environment(minor: str) -> None:
    subprocess.run([ROOT / "ci/upstream/build", minor, "celdump"], check=True, timeout=1800)
    result = subprocess.run(
        [ROOT / "build/oracle" / f"celdump-{minor}"], capture_output=True, text=True, check=True
    )
    table = DATA.joinpath(f"kubernetes-{minor}.json").read_text(encoding="utf-8")
    assert json.loads(result.stdout) == json.loads(table)
