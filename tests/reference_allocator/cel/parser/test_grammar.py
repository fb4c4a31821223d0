"""The grammar file of cel-python and the patches on it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from reference_allocator.cel.parser.grammar import _grammar_file, patched_grammar

ORIGINAL = _grammar_file().read_text(encoding="utf-8")


def test_patches_apply_to_the_installed_grammar() -> None:
    patched = patched_grammar(ORIGINAL)
    assert "ESC_IDENT" in patched
    assert '["?"]' in patched


@pytest.mark.parametrize("line", ["member_dot ", "INT_LIT ", "list_lit ", "BOOL_LIT "])
def test_a_grammar_without_a_patched_line_is_refused(line: str) -> None:
    changed = "\n".join(text for text in ORIGINAL.split("\n") if not text.startswith(line))
    with pytest.raises(RuntimeError, match=r"cel\.lark: expected one line"):
        patched_grammar(changed)


def test_a_patch_that_would_apply_twice_is_refused() -> None:
    with pytest.raises(RuntimeError, match=r"cel\.lark"):
        patched_grammar(ORIGINAL + ORIGINAL)


def test_using_the_package_changes_nothing_for_the_process() -> None:
    program = """
import sys
limit = sys.getrecursionlimit()
from reference_allocator.cel import CelDevice, compile_selector
assert compile_selector("device.driver == 'd'").matches(CelDevice.from_api("d", {}))
assert sys.getrecursionlimit() == limit
assert "celpy" not in sys.modules
"""
    root = Path(__file__).parents[4]
    subprocess.run([sys.executable, "-c", program], cwd=root, check=True, timeout=60)
