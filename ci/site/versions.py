"""The list of versions of the site, by the folders that are there.

    python3 ci/site/versions.py FOLDER

It needs nothing but Python, so that CI can write the list where versions are put together.
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
from functools import cache
from pathlib import Path
from typing import Final

BRANCH: Final = "main"
_REDIRECT: Final = """\
<!doctype html>
<title>dra-conformance</title>
<meta http-equiv="refresh" content="0; url={version}/index.html">
<a href="{version}/index.html">Documentation</a>
"""


@cache
def addresses() -> dict[str, str]:
    """The project's addresses by their names in pyproject.toml."""
    with (Path(__file__).resolve().parents[2] / "pyproject.toml").open("rb") as file:
        urls: dict[str, str] = tomllib.load(file)["project"]["urls"]
    return urls


def write_versions(folder: Path) -> None:
    """Write the list that pages offer, and a first page that leads to the newest of them."""
    versions = sorted(
        (one.name for one in folder.iterdir() if (one / "index.html").is_file()), key=_newest_first
    )
    base = addresses()["Documentation"]
    offered = [{"name": one, "version": one, "url": f"{base}{one}/"} for one in versions]
    (folder / "versions.json").write_text(json.dumps(offered, indent=1) + "\n", encoding="utf-8")
    released = [one for one in versions if one != BRANCH]
    first = _REDIRECT.format(version=next(iter(released), BRANCH))
    (folder / "index.html").write_text(first, encoding="utf-8")
    (folder / ".nojekyll").touch()  # or the forge would leave out folders that begin with _


def _newest_first(name: str) -> tuple[bool, tuple[int, ...]]:
    """The branch, then versions, the newest first."""
    return name != BRANCH, tuple(-int(number) for number in re.findall(r"\d+", name))


if __name__ == "__main__":
    write_versions(Path(sys.argv[1]))
