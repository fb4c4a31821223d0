"""The scenarios that pages show are complete: who copies one has one that runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from conformance.data import scenarios_dir
from conformance.engine.setup import Setup
from conformance.engine.suite import run_suite
from conformance.results.events.scenario import Outcome
from conformance.scenario.documents.yamlfile import read_documents
from conformance.scenario.driver.profile import load_profile
from conformance.scenario.lint.files import lint_documents
from conformance.scenario.loader import load_scenarios
from conformance.targets.opening.target import Opened
from tests.mutants import mutant

ROOT = Path(__file__).resolve().parents[2]
SHOWN = {
    "README.md": ("two-containers-share.yaml", "claims-outlive-pods"),
    "docs/writing-scenarios.md": ("waiting-pod-gets-freed-device.yaml", "misses-release"),
}
"""Page -> the file's name, and a defect that its scenario notices."""


@pytest.fixture(params=SHOWN)
def shown(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, str]:
    """The only scenario in a page, in a file of the name that the page gives it."""
    page = (ROOT / request.param).read_text(encoding="utf-8")
    blocks = re.findall(r"^```yaml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    [text] = [block for block in blocks if "kind: Scenario" in block]
    name, defect = SHOWN[request.param]
    file = tmp_path / name
    file.write_text(text, encoding="utf-8")
    return file, defect


def outcome(file: Path, *faults: str) -> Outcome:
    root = scenarios_dir()
    loaded = load_scenarios([file])
    profile = load_profile("nvml-dra-driver", root / "drivers")
    with mutant(*faults) as target:
        setup = Setup("readme", Opened.of(target, profile, "image"))
        [finished] = run_suite(loaded, setup, ()).finished
    return finished.outcome


def test_it_lints_cleanly(shown: tuple[Path, str]) -> None:
    assert lint_documents(read_documents(shown[0])) == []


def test_it_passes_on_the_reference_and_fails_on_one_with_a_defect(shown: tuple[Path, str]) -> None:
    file, defect = shown
    assert outcome(file) is Outcome.PASSED
    assert outcome(file, defect) is Outcome.FAILED
