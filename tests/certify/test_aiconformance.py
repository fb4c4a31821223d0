"""The fragment for CNCF's AI conformance: it says no more than the run proves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from conformance.certify.aiconformance import REQUIREMENTS, fragment
from conformance.cli.certified import catalogue
from conformance.engine.events import Outcome, PlannedScenario
from conformance.errors import UsageError
from tests.certify.test_conformance_report import built, recorded
from tests.report.builders import finished, planned

IDS = sorted({name for item in REQUIREMENTS for name in item.scenarios})
ISOLATED = next(item.scenarios for item in REQUIREMENTS if item.section == "security")


def assessed(folder: Path, outcomes: dict[str, Outcome], **changes: Any) -> dict[str, Any]:
    """Requirement -> what the fragment says of it, of a run in which all else passed."""
    scenarios: list[PlannedScenario] = [planned(name) for name in IDS]
    events = [finished(one, outcomes.get(one.id, Outcome.PASSED), "why") for one in scenarios]
    result = recorded(folder, scenarios, events, **changes)
    text = fragment(built(result), result, scenarios)
    assert text.startswith("# A fragment for a self-assessment")
    document = yaml.safe_load(text)
    return {item["id"]: item for section in document["spec"].values() for item in section}


def test_every_scenario_that_it_names_is_shipped() -> None:
    assert set(IDS) <= {item.id for item in catalogue()}


def test_what_passed_is_implemented(tmp_path: Path) -> None:
    found = assessed(tmp_path, {})
    assert {item["status"] for item in found.values()} == {"Implemented"}
    assert set(found) == {"driver_runtime_management", "gpu_sharing", "secure_accelerator_access"}
    assert "5 of 5 scenarios passed" in found["secure_accelerator_access"]["notes"]
    assert found["secure_accelerator_access"]["evidence"][0] == "file://results/junit.xml"


@pytest.mark.parametrize(
    ("outcome", "status"),
    [(Outcome.FAILED, "Not Implemented"), (Outcome.SKIPPED, "Partially Implemented")],
)
def test_what_did_not_pass_is_named(outcome: Outcome, status: str, tmp_path: Path) -> None:
    found = assessed(tmp_path, {ISOLATED[0]: outcome})["secure_accelerator_access"]
    assert found["status"] == status
    assert found["notes"].endswith(f"4 of 5 scenarios passed; not {ISOLATED[0]}")


def test_nothing_is_implemented_where_nothing_ran(tmp_path: Path) -> None:
    found = assessed(tmp_path, dict.fromkeys(ISOLATED, Outcome.SKIPPED))
    assert found["secure_accelerator_access"]["status"] == ""


def test_a_simulated_run_fills_in_no_status(tmp_path: Path) -> None:
    start = {"suite_version": "0.1.0", "simulated": ("the devices of x",), "target": "cluster"}
    found = assessed(tmp_path, {}, start=start)
    assert {item["status"] for item in found.values()} == {""}
    assert all("This proves nothing: simulated" in item["notes"] for item in found.values())


def test_a_minor_without_a_checklist_is_refused(tmp_path: Path) -> None:
    one = planned("core/a")
    result = recorded(tmp_path, [one], [finished(one)])
    report = built(result).model_copy(update={"kubernetes_version": "v1.33.1"})
    with pytest.raises(UsageError, match=r"Kubernetes v1.33.1 has no checklist"):
        fragment(report, result, [one])
