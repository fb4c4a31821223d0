"""A cluster with other software in it is correct: what that does to a scenario is no failure."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from conformance.engine.setup import Setup
from conformance.engine.suite import run_suite
from conformance.results.events.scenario import Outcome, ScenarioFinished
from conformance.scenario.loader import LoadedScenario
from conformance.targets.opening.options import TargetOptions
from conformance.targets.opening.target import open_reference
from tests.scenario.others import OTHERS
from tests.scenario.sampling import SAMPLE, sample
from tests.scenario.shipped import on_reference

LOST, NOT_READY = "core/lost-node-keeps-device", "core/node-not-ready-gets-no-pod"
DRAINED, JOB = "core/drained-node-gives-device-back", "core/job-separate-and-shared-claims"


def ended(others: str, scenarios: Sequence[LoadedScenario]) -> dict[str, ScenarioFinished]:
    with open_reference(TargetOptions(nodes=2)) as opened:
        OTHERS[others](opened.target.world)  # type: ignore[attr-defined]
        finished = run_suite(scenarios, Setup("t", opened), ()).finished
    return {item.scenario.id: item for item in finished}


@pytest.mark.parametrize("among", [25, pytest.param(10_000, marks=pytest.mark.everything)])
@pytest.mark.parametrize("others", OTHERS)
def test_nothing_fails_beside_other_software(others: str, among: int) -> None:
    found = ended(others, sample(on_reference(), among, others))
    failed = {k: v.message for k, v in found.items() if v.outcome is Outcome.FAILED or v.left}
    assert failed == {}, SAMPLE


@pytest.mark.parametrize(
    ("others", "scenario", "said"),
    [
        ("a service mesh", JOB, ""),
        ("a policy", LOST, "not judged: refused by nodes.policy.example.com, a policy of this"),
        ("a policy", "core/two-requests-two-devices", ""),
        ("a readiness taint", LOST, ""),
        ("a readiness taint", DRAINED, "given the taint node.cilium.io/agent-not-ready, which ke"),
        ("a cloud", LOST, ""),
        ("a cloud", NOT_READY, ""),
        ("a cloud that reads any id", LOST, "is gone, and the suite did not delete it: a cloud"),
        ("a cloud that reads any id", NOT_READY, "is gone, and the suite did not delete it: a"),
    ],
)
def test_what_others_did_is_said(others: str, scenario: str, said: str) -> None:
    [item] = [one for one in on_reference() if one.id == scenario]
    found = ended(others, [item])[scenario]
    assert said in found.message
    assert found.outcome is (Outcome.ERROR if said else Outcome.PASSED), found.message
