"""Holds names to what they are for: a part of lint.

``python -m ci.words`` counts, for each package, the assigned names that say grammar and not
meaning (``found``, ``told``, ``left``), and the public functions whose name is one word. It ends
with 1 where a package has more of them than `MOST` allows, and prints their places.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]

GENERIC: Final = frozenset(
    "found one told said given left there own rest known wanted kept seen asked shown made beside"
    " again before after others each place part parts taken done what these those its more".split()
)
"""Words that fit any value, and so say nothing of one."""

MOST: Final = {
    "conformance": (3.0, 35.0),
    "kube": (3.0, 35.0),
    "kubesim": (3.0, 35.0),
    "localkube": (3.0, 35.0),
    "nvml_driver": (3.0, 35.0),
    "reference_allocator": (3.0, 35.0),
}
"""Package -> the most per cent of assigned names that may be generic, and of public functions (no
properties) that may be one word."""

MOST_PLACES: Final = 40
"""Places that are printed of one kind."""


@dataclass
class Words:
    """The names of a package, as ``file:line: name``."""

    names: int = 0
    generic: list[str] = field(default_factory=list)
    functions: int = 0
    single: list[str] = field(default_factory=list)

    @property
    def generic_share(self) -> float:
        """Per cent of the assigned names."""
        return 100 * len(self.generic) / max(1, self.names)

    @property
    def single_share(self) -> float:
        """Per cent of the public functions."""
        return 100 * len(self.single) / max(1, self.functions)


def count_words(folder: Path) -> Words:
    """Count the names in all modules below a folder; generated ones (``_pb2``) do not count."""
    words = Words()
    for file in sorted(folder.rglob("*.py")):
        if "_pb2" in file.name:
            continue
        tree = ast.parse(file.read_text(encoding="utf-8"))
        label = file.relative_to(folder.parent).as_posix()
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                words.names += 1
                if node.id in GENERIC:
                    words.generic.append(f"{label}:{node.lineno}: {node.id}")
        for function in _public_functions(tree):
            words.functions += 1
            if "_" not in function.name:
                words.single.append(f"{label}:{function.lineno}: {function.name}")
    return words


def _public_functions(node: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Functions of modules and methods of classes, without those within another function."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            if not child.name.startswith("_") and not _is_value(child):
                yield child
        else:
            yield from _public_functions(child)


def _is_value(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether it is read as an attribute, whose name is that of a value."""
    decorators = [ast.unparse(item) for item in function.decorator_list]
    return any("property" in text or text.endswith(".setter") for text in decorators)


def main() -> int:
    """Print the shares of each package, and the places where there are too many; 1 if there are."""
    too_many = False
    for package, (most_generic, most_single) in MOST.items():
        words = count_words(ROOT / package)
        print(
            f"{package}: {words.generic_share:.1f} % of {words.names} assigned names are generic"
            f" (at most {most_generic:g}), {words.single_share:.0f} % of {words.functions} public"
            f" functions are one word (at most {most_single:g})"
        )
        for share, most, places in (
            (words.generic_share, most_generic, words.generic),
            (words.single_share, most_single, words.single),
        ):
            if share > most:
                too_many = True
                print("\n".join(f"  {text}" for text in places[:MOST_PLACES]))
                print("  say what the value is, or what the function does (docs/glossary.md)")
    return int(too_many)


if __name__ == "__main__":
    sys.exit(main())
