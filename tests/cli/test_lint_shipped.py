"""`lint --shipped` holds files to the rules for what lies below scenarios/ of the repository."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from conformance.scenario.lint import shipped
from tests.cli.conftest import Call

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture
def in_checkout(command: Call, monkeypatch: pytest.MonkeyPatch) -> Call:
    """Call it in this repository."""
    monkeypatch.chdir(REPOSITORY)
    return command


def test_the_example_of_the_readme_is_told_all_that_a_shipped_one_needs(
    in_checkout: Call, tmp_path: Path
) -> None:
    page = Path("README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"(?ms)^```yaml\n(.*?)^```$", page)
    [text] = [block for block in blocks if "kind: Scenario" in block]
    file = tmp_path / "scenarios/core/two-containers-share.yaml"
    file.parent.mkdir(parents=True)
    file.write_text(text)
    assert in_checkout("lint", file).code == 0
    done = in_checkout("lint", "--shipped", file)
    assert done.code == 2
    *problems, summary = done.out.splitlines()
    assert summary == "1 file checked, 3 errors, 0 warnings"
    assert [line.removeprefix(f"{file}:").split(": ")[0] for line in problems] == ["1", "10", "14"]
    assert "a comment that says why the behaviour matters" in problems[0]
    assert "add the address of the page" in problems[1]
    assert "write `driverCan: [claimOfSeveralContainers]` below requires" in problems[2]


def test_what_is_shipped_has_no_warnings(in_checkout: Call, tmp_path: Path) -> None:
    file = tmp_path / "fpga.yaml"
    file.write_text(
        "apiVersion: dra-conformance/v1\nkind: DriverProfile\nmetadata: {name: fpga}\n"
        "spec:\n  driver: fpga.example.com\n  source: a/b at v1\n"
        "  classes: {fpga: {name: a, spec: {}}}\n"
    )
    assert in_checkout("lint", file).code == 0
    done = in_checkout("lint", "--shipped", file)
    assert (done.code, "0 warnings" in done.out) == (2, True), done.out


def test_outside_of_a_checkout_it_says_so(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    said = f"error: --shipped checks files below scenarios/ of the checkout {REPOSITORY}, and {{}}"
    done = call("lint", "--shipped")
    assert done.code == 2
    assert done.err.startswith(said.format(Path.cwd()))
    assert done.err.count("\n") == 1
    monkeypatch.setattr(shipped, "scenarios_dir", lambda: Path("/usr/lib/scenarios"))
    done = call("lint", "--shipped")
    assert done.code == 2
    assert "this dra-conformance was not installed from one; clone the repository" in done.err


def test_without_a_path_it_is_asked_for(call: Call) -> None:
    done = call("lint")
    assert (done.code, "give files, folders, or - for stdin" in done.err) == (2, True), done
