"""The grammar file of cel-python and the patches on it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from reference_allocator.cel.parser.grammar import _grammar_file, patched_grammar


@pytest.fixture(scope="module")
def original() -> str:
    return _grammar_file().read_text(encoding="utf-8")


def test_patches_apply_to_the_installed_grammar(original: str) -> None:
    patched = patched_grammar(original)
    assert "ESC_IDENT" in patched
    assert '["?"]' in patched


@pytest.mark.parametrize("line", ["member_dot ", "INT_LIT ", "list_lit ", "BOOL_LIT "])
def test_a_grammar_without_a_patched_line_is_refused(original: str, line: str) -> None:
    changed = "\n".join(text for text in original.split("\n") if not text.startswith(line))
    with pytest.raises(RuntimeError, match=r"cel\.lark: expected one line"):
        patched_grammar(changed)


def test_a_patch_that_would_apply_twice_is_refused(original: str) -> None:
    with pytest.raises(RuntimeError, match=r"cel\.lark"):
        patched_grammar(original + original)


def test_using_the_package_changes_nothing_for_the_process() -> None:
    program = """
import sys
limit = sys.getrecursionlimit()
from reference_allocator.cel import CelDevice, compile_selector
assert compile_selector("device.driver == 'd'").matches(CelDevice.from_api("d", {}))
assert sys.getrecursionlimit() == limit
assert "celpy" not in sys.modules
"""
    run(program)


def test_importing_the_package_waits_with_the_parser_generator() -> None:
    run("""
import sys
from reference_allocator.cel import CelDevice, compile_selector
assert "lark" not in sys.modules
assert compile_selector("device.driver == 'd'").matches(CelDevice.from_api("d", {}))
assert "lark" in sys.modules
""")


def run(program: str) -> None:
    """Run a program in a process of its own."""
    root = Path(__file__).parents[4]
    result = subprocess.run(
        [sys.executable, "-c", program],
        cwd=root,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (result.returncode, result.stderr) == (0, "")
