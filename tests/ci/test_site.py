"""The site has every page, each with what it is about, and its links lead somewhere."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from ci.site.build import lay_out
from ci.site.links import LINK, SiteError, rewrite_links, site_page
from ci.site.pages import MAKERS, make_pages
from ci.site.versions import write_versions
from tests.mutants import DEFECTS
from tests.scenario.shipped import shipped
from tests.statements import statements

ROOT = Path(__file__).resolve().parents[2]
REPOSITORY = "https://github.com/dra-conformance/dra-conformance"
SITE = "https://dra-conformance.github.io/dra-conformance"
PAGES = {"docs/README.md": "index.md", "docs/a/b.md": "a/b.md", "docs/c.md": "c.md"}


@pytest.fixture(scope="module")
def made() -> dict[str, str]:
    return make_pages()


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory, made: dict[str, str]) -> Path:
    folder = tmp_path_factory.mktemp("sources")
    lay_out(folder, "main", made)
    return folder


def test_every_page_that_is_made_is_in_the_navigation(sources: Path) -> None:
    _, _, navigation = (sources / "index.md").read_text(encoding="utf-8").partition("{toctree}")
    assert [name for name in MAKERS if f"<{name}>" not in navigation] == []


@pytest.mark.parametrize(
    ("page", "subjects"),
    [
        ("scenarios.md", lambda: (f"scenarios/{each.id}.yaml" for each in shipped())),
        ("kill-matrix.md", lambda: (f"| {name} |" for name in DEFECTS)),
        ("statements.md", lambda: (row.says for row in statements())),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_page_has_all_that_it_is_about(
    page: str, subjects: Callable[[], Iterable[str]], made: dict[str, str]
) -> None:
    assert [subject for subject in subjects() if subject not in made[page]] == []


@pytest.mark.parametrize(
    ("link", "expected"),
    [
        ("../README.md#evidence", "../index.md#evidence"),
        ("../../LICENSE", f"{REPOSITORY}/blob/v1/LICENSE"),
        ("../../scenarios/core", f"{REPOSITORY}/tree/v1/scenarios/core"),
        (f"{SITE}/main/c.html#x", "../c.md#x"),
        ("https://kubernetes.io/docs/", "https://kubernetes.io/docs/"),
        ("#here", "#here"),
    ],
)
def test_a_link_of_the_repository_becomes_one_of_the_site(link: str, expected: str) -> None:
    text = f"[a]({link})"
    assert rewrite_links(text, "docs/a/b.md", PAGES, "v1") == f"[a]({expected})"


def test_a_block_of_code_has_no_links() -> None:
    text = "```\n[a](nowhere.md)\n```\n[b](b.md)\n"
    assert rewrite_links(text, "docs/a/b.md", PAGES, "v1") == text


@pytest.mark.parametrize("link", ["nowhere.md", f"{SITE}/main/nowhere.html"])
def test_a_link_to_nothing_is_told_with_its_page(link: str) -> None:
    with pytest.raises(SiteError, match=r"docs/a/b\.md: .*nowhere\.\w+: .*; mend the link"):
        rewrite_links(f"[a]({link})", "docs/a/b.md", PAGES, "v1")


def test_a_page_that_no_list_has_is_told(made: dict[str, str], tmp_path: Path) -> None:
    with pytest.raises(SiteError, match=r"docs/README\.md: does not list new\.md"):
        lay_out(tmp_path, "main", made | {"new.md": "# New\n"})


def test_pages_that_the_site_has_not_itself_link_pages_of_it(made: dict[str, str]) -> None:
    there = {*made, "index.md", "submissions.md"}
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    linked = {page for link in LINK.finditer(text) if (page := site_page(link[1]))}
    assert linked
    assert linked - there == set()


def test_the_newest_version_is_what_the_site_opens_with(tmp_path: Path) -> None:
    for name in ("0.9.0", "0.10.0", "main"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "index.html").touch()
    write_versions(tmp_path)
    offered = json.loads((tmp_path / "versions.json").read_text(encoding="utf-8"))
    assert [one["version"] for one in offered] == ["main", "0.10.0", "0.9.0"]
    assert offered[1]["url"] == f"{SITE}/0.10.0/"
    assert "url=0.10.0/index.html" in (tmp_path / "index.html").read_text(encoding="utf-8")


def test_what_people_wrote_below_docs_stays_small() -> None:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "docs"], cwd=ROOT, capture_output=True, check=True
    )
    files = [ROOT / name for name in listed.stdout.decode().split("\0") if name]
    size = sum(file.stat().st_size for file in files if file.exists() and file.suffix != ".png")
    assert size < 350_000, "results belong beside what measures them, not below docs/"
