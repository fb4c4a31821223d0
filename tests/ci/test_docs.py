"""Pages name files that exist, and decisions say when they were made."""

from __future__ import annotations

import re
from pathlib import Path

from ci.testing import drawing

ROOT = Path(__file__).resolve().parents[2]
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "reports").rglob("*.md")]

LINK = re.compile(r"\]\((?!https?:|mailto:)([^)#\s]*)(?:#([^)\s]*))?\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
QUOTED_PATH = re.compile(r"`([a-z_][a-z\d_/.-]*(?:/|\.py|\.yaml|\.json))`")
PACKAGES = (
    "",
    "conformance",
    "kube",
    "kubesim",
    "localkube",
    "nvml_driver",
    "reference_allocator",
    "reference_allocator/cel",
)


def anchors(page: Path) -> set[str]:
    """Of a page's headings, as GitHub makes them."""
    titles = HEADING.findall(page.read_text(encoding="utf-8"))
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def leads_nowhere(page: Path, target: str, anchor: str) -> bool:
    file = page.parent / target if target else page
    return not file.exists() or (bool(anchor) and anchor not in anchors(file))


def test_every_relative_link_of_a_page_leads_to_a_file_and_a_heading() -> None:
    broken = [
        f"{page.relative_to(ROOT)}: {target}#{anchor}"
        for page in PAGES
        for target, anchor in LINK.findall(page.read_text(encoding="utf-8"))
        if leads_nowhere(page, target, anchor)
    ]
    assert broken == []


def test_every_module_that_a_page_names_by_its_path_is_there() -> None:
    missing = [
        f"{page.relative_to(ROOT)}: {path}"
        for page in PAGES
        for path in QUOTED_PATH.findall(page.read_text(encoding="utf-8"))
        if path.endswith(".py") and "/" in path
        if not any((ROOT / package / path).exists() for package in PACKAGES)
    ]
    assert missing == []


def test_every_path_in_the_architecture_page_is_there() -> None:
    text = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    missing = {
        path
        for path in QUOTED_PATH.findall(text)
        if not any((ROOT / package / path).exists() for package in PACKAGES)
    }
    assert missing == set()


def test_the_drawing_of_the_packages_is_current() -> None:
    assert drawing.PAGE.read_text(encoding="utf-8") == drawing.page(), "run: ci/test --page"


def test_every_decision_has_a_date_and_a_status_and_is_listed() -> None:
    folder = ROOT / "docs/decisions"
    listed = (folder / "README.md").read_text(encoding="utf-8")
    head = re.compile(r"# \d{4}: .+\n\nDate: \d{4}-\d\d-\d\d[^.\n]*\. Status: \w")
    for page in folder.glob("0*.md"):
        assert head.match(page.read_text(encoding="utf-8")), page.name
        assert f"]({page.name})" in listed
