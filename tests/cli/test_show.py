"""``show`` prints what kubectl would apply, in full, and nothing that is not there."""

from __future__ import annotations

import pytest
import yaml

from conformance.scenario.driver.variables import VARIABLE
from tests.cli.conftest import Call
from tests.scenario.sampling import sample
from tests.scenario.shipped import shipped


@pytest.mark.parametrize("tier", ["allocation", "node"])
def test_the_objects_are_those_of_the_steps_in_full(tier: str, command: Call) -> None:
    loaded = next(item for item in shipped() if item.scenario.spec.tier == tier)
    code, out, _ = command("show", loaded.id)
    objects = [item for item in yaml.safe_load_all(out) if item is not None]
    assert code == 0
    assert [item["kind"] for item in objects] == [
        manifest["kind"] for step in loaded.scenario.spec.steps for manifest in step.apply or ()
    ]
    assert not VARIABLE.search(out)
    pods = [item["spec"] for item in objects if item["kind"] == "Pod"]
    assert pods
    assert all(pod["containers"][0]["command"][0] == "sh" for pod in pods)
    assert "# Step 2: expect" in out
    assert f"# {loaded.scenario.spec.summary}" in out


@pytest.mark.parametrize("among", [30, pytest.param(10_000, marks=pytest.mark.everything)])
def test_every_shipped_scenario_can_be_shown(among: int, command: Call) -> None:
    for loaded in sample(shipped(), among, "shown"):
        code, out, err = command("show", str(loaded.document.file))
        assert (code, err) == (0, ""), loaded.id
        headings = [line for line in out.splitlines() if line.startswith("# Step ")]
        assert len(headings) == len(loaded.scenario.spec.steps), loaded.id


def test_one_for_another_kind_of_driver_is_shown_with_the_profile_of_one(command: Call) -> None:
    code, out, err = command("show", "partitions-reach-containers")
    assert (code, err) == (0, "")
    assert "matchAttribute: gpu.nvidia.com/parentUUID" in out
    code, _, err = command("show", "partitions-reach-containers", "--driver", "gpu.nvidia.com")
    assert code == 2
    assert "unknown variable ${attribute.parent}" in err


def test_what_is_a_part_of_several_ids_is_refused(command: Call) -> None:
    code, out, err = command("show", "late-")
    assert (code, out) == (2, "")
    assert "'late-' matches" in err
    assert "core/late-claim-starts-waiting-pod" in err
