"""The houses of docs/architecture.md: how deep their modules lie, and which words they share."""

from __future__ import annotations

import ast
import re
from importlib import import_module

import pytest

from ci.testing.affected import PACKAGES, graph
from ci.testing.part import ROOT

DEEPEST = {"conformance": 4, "kube": 3, "kubesim": 3, "localkube": 3}
"""Package -> the most names of a module's path, its own among them."""


@pytest.mark.parametrize(("house", "names"), DEEPEST.items())
def test_no_module_lies_deeper_than_its_house_allows(house: str, names: int) -> None:
    inside = [module for module in graph().modules if module.partition(".")[0] == house]
    assert len(inside) > 10
    assert [module for module in inside if module.count(".") >= names] == []


def test_the_seam_gives_nothing_that_is_defined_elsewhere() -> None:
    tree = ast.parse((ROOT / "conformance/seam/values.py").read_text(encoding="utf-8"))
    assigned = [
        target.id
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    ]
    assert "__all__" not in assigned
    defined = set(assigned) | {
        node.name for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef)
    }
    taken = re.compile(r"from conformance\.seam\.values import (?:\(([^)]*)\)|([^\n(]*))")
    names = {
        name.strip().partition(" as ")[0]
        for folder in (*PACKAGES, "tests", "benchmarks", "ci")
        for file in (ROOT / folder).rglob("*.py")
        for several in taken.findall(file.read_text(encoding="utf-8"))
        for name in "".join(several).split(",")
        if name.strip()
    }
    assert names - defined == set()


def test_what_shell_scripts_import_of_the_houses_is_there() -> None:
    imported = re.compile(rf"from ((?:{'|'.join(PACKAGES)})[\w.]*) import ([\w, ]+)")
    scripts = [ROOT / "Makefile", *(path for path in (ROOT / "ci").rglob("*") if not path.suffix)]
    found = [
        (path.name, module, name.strip())
        for path in scripts
        if path.is_file()
        for module, names in imported.findall(path.read_text(encoding="utf-8", errors="ignore"))
        for name in names.split(",")
    ]
    assert len(found) > 5
    missing = [one for one in found if not hasattr(import_module(one[1]), one[2])]
    assert missing == []


@pytest.mark.parametrize("house", ["kube", "kubesim", "localkube"])
def test_every_new_house_says_in_a_screen_what_lives_there(house: str) -> None:
    text = (ROOT / house / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 60
    assert "Not here:" in text
