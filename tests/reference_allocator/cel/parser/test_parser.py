"""The parser of CEL: its grammar, and its tables in the user's cache."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from reference_allocator.cel.ast import Node
from reference_allocator.cel.parser.builder import BUILDER, build_parser
from tests.programs import ended

EXPRESSION = 'device.attributes["gpu.example.com"].version.isGreaterThan(semver("1.0.0"))'


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    build_parser.cache_clear()
    yield tmp_path / "dra-conformance" / "cel"
    build_parser.cache_clear()


def tree(node: object) -> object:
    """Types and contents of a syntax tree, to compare."""
    if isinstance(node, (list, tuple)):
        return [tree(item) for item in node]
    if not isinstance(node, Node):
        return node
    slots = [name for kind in type(node).__mro__ for name in getattr(kind, "__slots__", ())]
    return type(node), {name: tree(getattr(node, name, None)) for name in slots}


def parsed() -> object:
    """What a new process reads an expression as."""
    build_parser.cache_clear()
    return tree(build_parser(BUILDER).parse(EXPRESSION))


def kept_in(cache: Path) -> Path:
    [cache_file] = (file for file in cache.iterdir() if file.suffix != ".lock")
    return cache_file


def test_a_kept_parser_reads_what_a_new_one_reads(cache: Path) -> None:
    new = parsed()
    cache_file = kept_in(cache)
    written = cache_file.stat().st_mtime_ns
    assert parsed() == new
    assert cache_file.stat().st_mtime_ns == written


@pytest.mark.parametrize("content", [b"", b"half a", b"0" * 64 + b"\nnot a pickle"])
def test_a_damaged_file_is_passed_over_and_replaced(cache: Path, content: bytes) -> None:
    new = parsed()
    cache_file = kept_in(cache)
    cache_file.write_bytes(content)
    assert parsed() == new
    assert len(cache_file.read_bytes()) > 1000
    written = cache_file.stat().st_mtime_ns
    assert parsed() == new
    assert cache_file.stat().st_mtime_ns == written


def test_a_cache_that_cannot_be_written_is_done_without(
    cache: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    cache.parent.write_text("not a folder", encoding="utf-8")
    assert parsed() == parsed()
    assert capfd.readouterr().err == ""


def test_using_the_package_changes_nothing_for_the_process() -> None:
    program = """
import sys
limit = sys.getrecursionlimit()
from reference_allocator.cel import CelDevice, compile_selector
assert "lark" not in sys.modules
assert compile_selector("device.driver == 'd'").matches(CelDevice.from_api("d", {}))
assert "lark" in sys.modules
assert sys.getrecursionlimit() == limit
assert "celpy" not in sys.modules
"""
    root = Path(__file__).parents[4]
    result = ended([sys.executable, "-c", program], cwd=root, timeout=60)
    assert (result.returncode, result.stderr) == (0, "")
