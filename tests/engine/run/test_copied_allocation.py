"""``copyAllocation``: one device for two claims is a scenario's doing, and nobody's finding."""

from __future__ import annotations

from conformance.compare.demands import derive_demand
from conformance.engine.setup import Setup
from conformance.engine.suite import run_suite
from conformance.results.events.scenario import Outcome
from conformance.scenario.driver.profile import load_profile
from conformance.targets.opening.options import TargetOptions
from conformance.targets.opening.target import Opened
from conformance.targets.reference import ReferenceTarget
from tests.scenario.shipped import ROOT, shipped

NAME = "device-in-use-is-refused"


def test_it_is_neither_a_decision_nor_an_overlap() -> None:
    [chosen] = [item for item in shipped() if item.id.endswith(NAME)]
    profile = load_profile("nvml-dra-driver", ROOT / "drivers")
    with ReferenceTarget() as target:
        setup = Setup("copy", Opened.of(target, profile, "image", TargetOptions(record=True)))
        [finished] = run_suite([chosen], setup, ()).finished
    assert finished.outcome is Outcome.PASSED
    assert finished.overlaps == ()
    decided = {claim["metadata"]["name"] for one in finished.decisions for claim in one["claims"]}
    assert decided == {"first", "own"}
    wanted = {item.claim for item in derive_demand(chosen.scenario).claims}
    assert wanted == {"first", "own"}
