"""However a scenario leaves what it has disturbed, the next one finds it as it was."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.engine.setup import Setup
from conformance.engine.suite import run_suite
from conformance.results.events.scenario import Outcome
from conformance.scenario.driver.profile import load_profile
from conformance.scenario.loader import load_scenarios
from conformance.targets.opening.target import Opened
from conformance.targets.reference.target import ReferenceTarget
from tests.engine.miniature import write
from tests.scenario.shipped import ROOT

STEPS = """\
- apply:
  - claim: one
  - {pod: pod0, resourceClaims: [{name: gpu, resourceClaimName: one}]}
- expect: [{pod: pod0, phase: Running}]
"""
REQUIRES = {"devices": 1, "abilities": ["fault:driver"], "traits": ["rollingUpdate"]}


@pytest.mark.parametrize(
    "actions",
    [
        ["stop"],
        ["startNext"],
        ["startUnregistered"],
        ["startNext", "kill"],
        ["startNext", "stop", "killNext"],
        ["replace", "stop"],
        ["replace", "startNext"],
        ["startUnregistered", "replace"],
    ],
    ids="-".join,
)
def test_the_driver_runs_alone_at_the_end(actions: list[str], tmp_path: Path) -> None:
    faults = (f"- fault: {{component: driver, action: {action}}}\n" for action in actions)
    file = write(tmp_path, STEPS + "".join(faults), requires=REQUIRES)
    profile = load_profile("nvml-dra-driver", ROOT / "drivers")
    with ReferenceTarget() as target:
        setup = Setup("disturbed", Opened.of(target, profile, "image"))
        [finished] = run_suite(load_scenarios([file]), setup, ()).finished
        broken = actions == ["startUnregistered", "replace"]
        assert finished.outcome is (Outcome.ERROR if broken else Outcome.PASSED), finished.message
        components, [kubelet] = target.world.components, target.world.kubelets
        assert not components.down
        assert not components.next_drivers
        assert kubelet.driver is not None
        assert kubelet.driver.stopped_at is None
