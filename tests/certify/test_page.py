"""The page of submissions: what it says, what it takes from strangers, how wide it is."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
import typer

from conformance.certify.model import ConformanceReport, Devices, Inventory, Support
from conformance.certify.page import Entry, find_changes, find_clashes, render_pages, write_pages
from conformance.certify.shown import UNKNOWN
from conformance.certify.submission import folder_of
from conformance.certify.values import Hardware, Result, Skipped
from conformance.cli.commands.page import page_command
from conformance.scenario.documents.validate import load_document
from tests.certify.submitted import Submitted
from tests.report.builders import HOSTILE

KEPT = Path(__file__).parents[2] / "reports" / "1.37" / "dra-conformance-nvml-dra-driver"
REPORT = load_document(ConformanceReport, KEPT / "report.yaml", "report")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


def entry(
    minor: str = "1.37",
    project: str = "nvml-dra-driver",
    organization: str = "dra-conformance",
    **changed: object,
) -> Entry:
    about = REPORT.implementation.model_copy(
        update={"project": project, "organization": organization}
    )
    update = {"kubernetes_version": f"{minor}.1", "implementation": about, **changed}
    report = REPORT.model_copy(update=update)
    return Entry(Path(organization) / folder_of(report), report)


def failing(name: str) -> object:
    return tuple(
        item.model_copy(update={"support": Support.FAILED, "failed": item.passed, "passed": ()})
        if item.name == name
        else item
        for item in REPORT.features
    )


def test_each_minor_has_its_drivers_and_the_newest_is_first() -> None:
    page = render_pages([entry("1.9"), entry("1.37"), entry("1.10", "other")])["index.html"]
    assert re.findall(r'<h2 id="kubernetes-([\d.]+)"', page) == ["1.37", "1.10", "1.9"]
    assert page.count("Hardware: simulated") == 3


def test_what_became_of_a_feature_is_said() -> None:
    before, after = entry("1.36"), entry("1.37", features=failing("DeviceTaints"))
    [change] = find_changes(before, after)
    assert (change.feature, change.after) == ("DeviceTaints", Support.FAILED)
    assert list(find_changes(before, entry("1.37"))) == []
    page = render_pages([after, before])["index.html"]
    assert "nvml-dra-driver: 1.36 to 1.37" in page
    assert "DeviceTaints: supported" in page


def test_a_badge_says_what_a_profile_came_to() -> None:
    core = ("dra-core-cluster", "dra-core-driver")
    good = tuple(item.model_copy(update={"result": Result.SUCCESS}) for item in REPORT.profiles)
    some = good[1].model_copy(update={"without": (Skipped(scenario="core/x", reason="one card"),)})
    files = render_pages(
        [
            entry(profiles=good),
            entry("1.36", profiles=good, hardware=Hardware.SHOWN),
            entry("1.35", profiles=(good[0], some), hardware=Hardware.NOT_SHOWN),
        ]
    )

    def badge(minor: str, profile: str) -> tuple[str, bool]:
        text = files[f"badges/{minor}/dra-conformance-nvml-dra-driver/{profile}.svg"]
        return ET.fromstring(text).attrib["aria-label"].partition(": ")[2], "#1a7f37" in text

    assert badge("1.37", core[0]) == ("dra-core-cluster: success", True)
    assert badge("1.37", core[1]) == ("dra-core-driver: success, hardware simulated", False)
    assert badge("1.36", core[1]) == ("dra-core-driver: success", True)
    said = "dra-core-driver: success without 1 rule, hardware not shown"
    assert badge("1.35", core[1]) == (said, False)
    assert "Without one card (1 scenario)" in files["index.html"]


def test_text_of_a_submitter_is_no_markup() -> None:
    about = REPORT.implementation.model_copy(
        update={"project": HOSTILE, "organization": HOSTILE, "url": "https://x/\"onclick='a'"}
    )
    report = REPORT.model_copy(update={"implementation": about, "uncertified": (HOSTILE,)})
    page = render_pages([Entry(KEPT, report, HOSTILE)])["index.html"]
    assert "<script" not in page
    assert '"onclick' not in page
    assert page.count("<article") == 1


def test_devices_whose_product_nobody_knows_are_counted() -> None:
    seen = Inventory(nodes=2, nodes_with_devices=2, devices=(Devices(product=UNKNOWN, count=8),))
    page = render_pages([Entry(KEPT, REPORT.model_copy(update={"inventory": seen}), "some")])[
        "index.html"
    ]
    assert "<small>8 devices on 2 of 2 nodes</small>" in page


def test_a_submission_that_is_judged_by_its_own_scenarios_says_so() -> None:
    laxer = Entry(
        KEPT, REPORT, departures=(f"the profile dra-extended is not the one of {HOSTILE}",)
    )
    page = render_pages([laxer])["index.html"]
    assert "Other suite: the profile dra-extended is not the one of" in page
    assert "<script" not in page
    assert "Other suite" not in render_pages([entry()])["index.html"]


def test_a_badge_has_no_colour_of_success_where_others_set_the_scenarios() -> None:
    good = tuple(item.model_copy(update={"result": Result.SUCCESS}) for item in REPORT.profiles)
    laxer = Entry(KEPT, entry(profiles=good).report, departures=("other scenarios",))
    badge = render_pages([laxer])[laxer.badge("dra-core-cluster")]
    assert "dra-core-cluster: success (other suite)" in ET.fromstring(badge).attrib["aria-label"]
    assert "#1a7f37" not in badge


NAMES = [
    pytest.param("A-B", "C", "A", "B-C", id="cut in two ways"),
    pytest.param("Acme", "driver", "ACME", "Driver", id="case"),
    pytest.param("Acme", "driver", "Acme!", "driver.", id="other characters"),
    pytest.param("\u682a\u5f0f", "driver", "\u793e", "driver", id="no letter that a name has"),
]


@pytest.mark.parametrize(("organization", "project", "other", "others_project"), NAMES)
def test_two_implementations_of_one_name_clash(
    organization: str, project: str, other: str, others_project: str
) -> None:
    one, two = entry("1.37", project, organization), entry("1.37", others_project, other)
    assert find_clashes([one, entry("1.37", "other"), two]) == {
        one.folder: [two.folder],
        two.folder: [one.folder],
    }
    with pytest.raises(ValueError, match="submissions of one name"):
        render_pages([one, two])
    later = entry("1.38", others_project, other, features=failing("DeviceTaints"))
    assert find_clashes([one, later]) == {}
    page = render_pages([one, later])["index.html"]
    assert "1.37 to 1.38" not in page, "it is not known to be the same driver"


def test_no_badge_of_one_name_is_that_of_another() -> None:
    """A submission chooses its name, and with profiles of its own theirs."""
    profile = REPORT.profiles[0]
    first = entry(project="a", profiles=(profile.model_copy(update={"name": "b-c"}),))
    second = entry(project="a-b", profiles=(profile.model_copy(update={"name": "c"}),))
    assert len(render_pages([first, second])) == 3
    names = [
        path for some in NAMES for path in render_pages([entry("1.37", "X", str(some.values[0]))])
    ]
    assert [name for name in names if name != name.lower()] == []


def test_of_two_submissions_of_one_name_neither_is_shown(
    submitted: Submitted, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    submitted.write()
    kept = submitted.folder.relative_to(submitted.root)
    good, other, broken = (submitted.root / name / kept for name in ("a", "b", "c"))
    for folder in (good, other, broken):
        shutil.copytree(submitted.folder, folder)
    shutil.rmtree(submitted.folder.parent)
    (broken / "report.yaml").unlink()
    site = tmp_path / "site"
    with pytest.raises(typer.Exit) as caught:
        page_command(submitted.root, site)
    assert caught.value.exit_code == 1
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 3
    assert f"left out: {broken}: " in said[0]
    assert said[1].startswith(f"left out: {good}: {other} would have the same badges")
    assert said[2].startswith(f"left out: {other}: {good} would have the same badges")
    assert [path.name for path in site.rglob("*") if path.is_file()] == ["index.html"]
    shutil.rmtree(other)
    with pytest.raises(typer.Exit) as caught:
        page_command(submitted.root, site)
    assert caught.value.exit_code == 1, "for the broken one, which takes nothing from the good one"
    [badge] = site.rglob("*.svg")
    assert badge.relative_to(site) == Path("badges") / kept / "core.svg"


def test_the_same_submissions_give_the_same_page() -> None:
    entries = [entry("1.36"), entry("1.37"), entry("1.37", "other")]
    assert render_pages(entries) == render_pages(entries[::-1])


@pytest.mark.skipif(
    CHROMIUM is None and os.environ.get("CI") != "true", reason="this machine has no chromium"
)
@pytest.mark.slow
@pytest.mark.parametrize("width", [400, 1280])
def test_nothing_is_wider_than_the_window(tmp_path: Path, width: int) -> None:
    """A script in a copy of the page measures it; the page itself has none, and forbids them."""
    assert CHROMIUM is not None, "CI installs it"
    long = entry("1.37", "a-driver-of-which-the-name-is-really-rather-long")
    write_pages(tmp_path, render_pages([entry("1.36"), entry("1.37"), long]))
    page = tmp_path / "index.html"
    text, dropped = re.subn(
        r"<meta http-equiv=\"Content-Security-Policy\".*?>", "", page.read_text()
    )
    assert dropped == 1
    script = f"""<style>html {{ width: {width}px; }}</style><script>onload = () => {{
      const wide = [...document.querySelectorAll("body *")].filter(
        (one) => one.getBoundingClientRect().right > {width} + 1 && !one.closest(".scroll table"));
      document.title = `broken ${{[...document.images].filter((i) => !i.naturalWidth).length}},`
        + ` wide ${{wide.length}}`;
    }};</script></body>"""
    page.write_text(text.replace("</body>", script))
    command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu"]
    command += [f"--user-data-dir={tmp_path / 'profile'}", f"--window-size={width},1000"]
    shown = subprocess.run(
        [*command, "--dump-dom", page.as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert re.findall("<title>(.*?)</title>", shown.stdout)[0] == "broken 0, wide 0"
