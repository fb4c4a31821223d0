"""Links of the repository's pages, as the site needs them.

A page is written for the forge, where a link is relative to the repository. On the site, a page of
the site is linked as a page, and any other file where the forge shows it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Final

from ci.site.versions import BRANCH, addresses
from ci.testing.part import ROOT

LINK: Final = re.compile(r"\]\(([^)#\s]*)(#[^)\s]*)?\)")
"""An inline link or picture of Markdown: its target, and the heading in it."""

_FENCE: Final = re.compile(r"^( *(?:```|~~~).*?^ *(?:```|~~~) *$)", re.MULTILINE | re.DOTALL)


class SiteError(Exception):
    """The site cannot be built; the message says which page to mend."""


def site_page(target: str) -> str | None:
    """The Markdown file of an address of the site, or None for any other address."""
    base = f"{addresses()['Documentation']}{BRANCH}/"
    path = target.removeprefix(base)
    return None if path == target else str(PurePosixPath(path).with_suffix(".md"))


def rewrite_links(text: str, page: str, pages: Mapping[str, str], revision: str) -> str:
    """A page's Markdown with links that lead somewhere on the site.

    Args:
        text: the page as it is in the repository.
        page: its path there.
        pages: path in the repository -> path below the site's sources, of all that it has.
        revision: the branch or tag at which the forge shows files that the site has not.

    Raises:
        SiteError: a relative link leads to nothing.
    """

    def rewrite(link: re.Match[str]) -> str:
        target, heading = link[1], link[2] or ""
        return f"]({_target(target, page, pages, revision)}{heading})"

    # Every second piece is a block of code, in which nothing is a link.
    pieces = _FENCE.split(text)
    return "".join(
        piece if number % 2 else LINK.sub(rewrite, piece) for number, piece in enumerate(pieces)
    )


def _target(target: str, page: str, pages: Mapping[str, str], revision: str) -> str:
    here = str(PurePosixPath(pages[page]).parent)
    if own := site_page(target):
        if own not in pages.values():
            raise SiteError(f"{page}: {target}: the site has no such page; mend the link")
        return os.path.relpath(own, here)
    if not target or re.match(r"[a-z]+:", target):
        return target
    file = os.path.normpath(Path(page).parent / target)
    if file in pages:
        return os.path.relpath(pages[file], here)
    if not (ROOT / file).exists():
        raise SiteError(f"{page}: {target}: there is no such file; mend the link")
    kind = "tree" if (ROOT / file).is_dir() else "blob"
    return f"{addresses()['Repository']}/{kind}/{revision}/{file}"
