"""Build the site into a folder of its version, beside those of other versions.

The sources are laid out first: pages of docs/ and the pages that are made, with links of the site,
and the lists of pages by which Sphinx makes the navigation; these come from docs/README.md alone.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import Final

from ci.site.links import SiteError, rewrite_links
from ci.site.pages import make_pages
from ci.site.versions import BRANCH, write_versions
from ci.testing.part import BIN, OUT, ROOT
from conformance.certify.page import INDEX

CONFIGURATION: Final = Path(__file__).parent
FOLDER: Final = OUT / "site"
SOURCES: Final = OUT / "site-sources"
ALSO: Final = ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
"""Pages outside of docs/ that the site has."""

_PAGE_LINK: Final = re.compile(r"\[([^\]]+)\]\(([^)#\s]+\.md)\)")

SUBMISSIONS: Final = "submissions"
_SUBMISSIONS_PAGE: Final = f"""
## Drivers and features

<a href="{SUBMISSIONS}/{INDEX}">The table of all submissions</a>, by Kubernetes minor.
"""


def version() -> str:
    """The version whose site is built: that of the tag that is checked out, or the branch."""
    done = subprocess.run(
        ["git", "describe", "--exact-match", "--tags", "--match", "v*", "HEAD"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.strip().removeprefix("v") or BRANCH


def lay_out(sources: Path, revision: str, made: Mapping[str, str]) -> None:
    """Write the sources of the site into an empty folder.

    Args:
        revision: the branch or tag at which the forge shows files that the site has not.
        made: path below docs/ -> Markdown of the pages that git does not track.

    Raises:
        SiteError: a link leads nowhere, or a page is in no list.
    """
    texts = {f"docs/{name}": text for name, text in made.items()}
    kept = sorted((ROOT / "docs").rglob("*.md"))
    for file in (*kept, *(ROOT / name for name in ALSO)):
        texts[str(file.relative_to(ROOT))] = file.read_text(encoding="utf-8")
    reports = (ROOT / "reports/README.md").read_text(encoding="utf-8")
    texts["reports/README.md"] = reports + _SUBMISSIONS_PAGE
    pages = {name: _place(name) for name in texts}
    pictures = {f"docs/{file.name}": file.name for file in (ROOT / "docs").glob("*.png")}
    for name, text in texts.items():
        file = sources / pages[name]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(rewrite_links(text, name, pages | pictures, revision), encoding="utf-8")
    for name, place in pictures.items():
        shutil.copyfile(ROOT / name, sources / place)
    _add_lists(sources, {*pages.values()})


def _place(name: str) -> str:
    """Where a page of the repository is below the sources."""
    if name == "reports/README.md":
        return f"{SUBMISSIONS}.md"
    return re.sub(r"(^|/)README\.md$", r"\1index.md", name.removeprefix("docs/"))


def _add_lists(sources: Path, pages: set[str]) -> None:
    """Give Sphinx the order of the pages: by sections of the first page, and by folders."""
    index = sources / "index.md"
    text = index.read_text(encoding="utf-8")
    listed = sections(text)
    lists = (
        _list((f"{title} <{name}>" for name, title in names.items()), caption)
        for caption, names in listed.items()
    )
    index.write_text("\n".join((text, *lists)), encoding="utf-8")
    elsewhere = pages - {name for names in listed.values() for name in names} - {"index.md"}
    below: dict[str, list[str]] = {}
    for name in sorted(elsewhere):
        folder = str(PurePosixPath(name).parent)
        places = (f"{folder}/index.md", f"{folder}.md")
        parent = next((one for one in places if one in pages and one != name), "")
        if folder == "." or not parent:
            raise SiteError(f"docs/README.md: does not list {name}; add it where it belongs")
        below.setdefault(parent, []).append(os.path.relpath(name, PurePosixPath(parent).parent))
    for parent, names in below.items():
        with (sources / parent).open("a", encoding="utf-8") as file:
            file.write(_list(names))


def sections(index: str) -> dict[str, dict[str, str]]:
    """Title of a section of the first page -> page that it links -> text of the link, in order."""
    found: dict[str, dict[str, str]] = {}
    for title, body in re.findall(r"^## (.+?)$(.*?)(?=^## |\Z)", index, re.MULTILINE | re.DOTALL):
        found[title] = {page: text for text, page in _PAGE_LINK.findall(body)}
    return found


def _list(names: Iterable[str], caption: str = "") -> str:
    captions = [f":caption: {caption}"] if caption else []
    return "\n".join(["", "```{toctree}", ":hidden:", *captions, "", *names, "```", ""])


def build(folder: Path = FOLDER, sources: Path = SOURCES) -> Path:
    """Build the site of what is checked out.

    Args:
        folder: has a folder for each version; those of others stay.

    Returns:
        The folder of this version.

    Raises:
        SiteError: a page is wrong; Sphinx has said which.
    """
    name = version()
    shutil.rmtree(sources, ignore_errors=True)
    lay_out(sources, BRANCH if name == BRANCH else f"v{name}", make_pages())
    made = folder / name
    shutil.rmtree(made, ignore_errors=True)
    done = subprocess.run(
        [
            *(sys.executable, "-m", "sphinx", "--builder", "html", "--quiet", "--fail-on-warning"),
            *("--keep-going", "--jobs", "auto", "--conf-dir", str(CONFIGURATION)),
            *("--doctree-dir", str(sources.with_name(f"{sources.name}-read"))),
            *(str(sources), str(made)),
        ],
        env=dict(os.environ) | {"SITE_VERSION": name},
        check=False,
    )
    if done.returncode:
        raise SiteError(f"Sphinx ended with {done.returncode}; the lines above say which pages")
    _add_submissions(made / SUBMISSIONS)
    write_versions(folder)
    return made


def _add_submissions(folder: Path) -> None:
    command = (str(BIN / "dra-conformance"), "page", str(ROOT / "reports"), "-o", str(folder))
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        raise SiteError(f"reports/: {done.stdout}{done.stderr}".strip())
