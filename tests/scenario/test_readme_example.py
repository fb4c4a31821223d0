"""The scenario that README.md shows is complete: who copies it has one that runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from conformance.data import scenarios_dir
from conformance.engine.events.scenario import Outcome
from conformance.engine.setup import Setup
from conformance.engine.suite import run_suite
from conformance.scenario.documents.yamlfile import read_documents
from conformance.scenario.driver.profile import load_profile
from conformance.scenario.lint.files import lint_documents
from conformance.scenario.loader import load_scenarios
from conformance.targets.opening.target import Opened
from tests.mutants import mutant

README = Path(__file__).resolve().parents[2] / "README.md"


@pytest.fixture
def example(tmp_path: Path) -> Path:
    """The only scenario in the page, in a file of the name that the page gives it."""
    blocks = re.findall(
        r"^```yaml\n(.*?)^```$", README.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    [text] = [block for block in blocks if "kind: Scenario" in block]
    file = tmp_path / "two-containers-share.yaml"
    file.write_text(text, encoding="utf-8")
    return file


def outcome(file: Path, *faults: str) -> Outcome:
    root = scenarios_dir()
    loaded = load_scenarios([file])
    profile = load_profile("nvml-dra-driver", root / "drivers")
    with mutant(*faults) as target:
        setup = Setup("readme", Opened.of(target, profile, "image"))
        [finished] = run_suite(loaded, setup, ()).finished
    return finished.outcome


def test_it_lints_cleanly(example: Path) -> None:
    assert lint_documents(read_documents(example)) == []


def test_it_passes_on_the_reference_and_fails_on_one_that_leaves_claims(example: Path) -> None:
    assert outcome(example) is Outcome.PASSED
    assert outcome(example, "claims-outlive-pods") is Outcome.FAILED
