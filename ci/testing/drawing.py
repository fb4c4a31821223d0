"""The drawing in docs/architecture.md: packages by layer, and which imports which."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from typing import Final

from ci.testing.affected import graph
from ci.testing.part import ROOT
from ci.testing.record import write

PAGE: Final = ROOT / "docs/architecture.md"
BEGIN: Final = "<!-- drawing: written by `ci/test --page` -->\n"
END: Final = "<!-- end of drawing -->\n"
LAYERS: Final = "imports go one way"


def layers() -> list[list[str]]:
    """Names of packages, the highest layer first, as import-linter holds them."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    (contract,) = (one for one in contracts if one["name"] == LAYERS)
    return [[name.strip() for name in layer.split("|")] for layer in contract["layers"]]


def drawing() -> str:
    """The drawing, as Mermaid text in a code block.

    Modules that are no packages are left out: they are small, and everybody imports them.
    """
    rows = [[name for name in row if (ROOT / _path(name)).is_dir()] for row in layers()]
    names = [name for row in rows for name in row]
    lines = ["flowchart TD"]
    for number, row in enumerate(row for row in rows if row):
        lines.append(f"    subgraph layer{number}[ ]")
        lines += [f'        {_short(name)}["{_label(name)}"]' for name in row]
        lines.append("    end")
    lines += [f"    {_short(above)} --> {_short(below)}" for above, below in _arrows(names)]
    return "\n".join(["```mermaid", *lines, "```", ""])


def _path(name: str) -> str:
    return name.replace(".", "/")


def _short(name: str) -> str:
    return name.removeprefix("conformance.")


def _label(name: str) -> str:
    """The package with the packages in it."""
    folder = ROOT / _path(name)
    inner = sorted(one.parent.name for one in folder.glob("*/__init__.py"))
    title = f"<b>{_short(name)}</b>"
    return "<br/>".join([title, *(", ".join(inner[at : at + 5]) for at in range(0, len(inner), 5))])


def _arrows(names: Iterable[str]) -> list[tuple[str, str]]:
    """Imports between packages, without those that follow from others."""
    names = list(names)
    direct: dict[str, set[str]] = {
        name: {
            other
            for other in names
            if other != name
            and graph().direct_import_exists(importer=name, imported=other, as_packages=True)
        }
        for name in names
    }
    return sorted(
        (name, other)
        for name, found in direct.items()
        for other in found
        if not any(other in _reached(direct, between) for between in found - {other})
    )


def _reached(direct: Mapping[str, set[str]], start: str) -> set[str]:
    found: set[str] = set()
    left = [start]
    while left:
        new = direct[left.pop()] - found
        found |= new
        left += new
    return found


def page() -> str:
    """The page with its drawing as it should be now."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}{drawing()}{END}{after}"


def keep() -> None:
    """Put the drawing into the page."""
    write(PAGE, page())
