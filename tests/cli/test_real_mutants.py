"""Kubernetes' own scheduler with deliberate defects, on a real control plane: the suite notices.

Five of the mutants of tests/mutants/real, each in another part of the scheduler; all of them are
met by `python -m tests.mutants.real`. No kubelet runs: a wrong allocation shows without one.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from localkube.base import ClusterError
from tests.localkube import local_support as support
from tests.mutants.real.build import mutant_scheduler
from tests.mutants.real.running import Schedulers, schedulers
from tests.mutants.real.wrong import ALL

pytestmark = [pytest.mark.needs_go, pytest.mark.slow, pytest.mark.everything]

CHOSEN = (
    "only-first-selector",
    "double-allocation",
    "uses-old-generation",
    "ignores-counters",
    "no-finalizer",
)
FOUND = {"ignores-counters": 88, "ignores-taint-rules": 34, "one-device-for-extended-resource": 44}
"""Defect -> the number of a random problem that shows it: for two pods, a rule, a pod's amount."""
WRONGS = {wrong.name: wrong for wrong in ALL if wrong.name in CHOSEN}
SECONDS = 5.0
"""How long a scenario waits for what a wrong scheduler will not do."""


CLUSTER = f"mutants-{os.getpid()}"


@pytest.fixture(scope="module")
def running() -> Iterator[Schedulers]:
    support.built_binaries()
    with schedulers(mutant_scheduler(), CLUSTER, nodes=0) as found:
        yield found


@pytest.mark.parametrize("name", CHOSEN)
def test_a_wrong_scheduler_is_noticed(running: Schedulers, name: str, tmp_path: Path) -> None:
    wrong = WRONGS[name]
    running.become(name)
    seen = running.meet(wrong.scenarios[:1], tmp_path, SECONDS)
    assert seen.reached, "nothing made the scheduler do what is wrong"
    assert seen.failed == list(wrong.scenarios[:1]), seen.told
    # Not a slow machine: a rule that is broken.
    assert seen.verdicts or not wrong.judged, seen.told


def test_the_same_program_without_a_defect_passes(running: Schedulers, tmp_path: Path) -> None:
    running.become("")
    scenarios = [wrong.scenarios[0] for wrong in WRONGS.values()]
    seen = running.meet(scenarios, tmp_path)
    assert seen.outcomes == dict.fromkeys(scenarios, "passed"), seen.told
    assert seen.verdicts == {}
    assert not seen.reached


@pytest.mark.parametrize("name", FOUND)
def test_random_problems_find_a_defect_and_make_a_scenario_of_it(
    running: Schedulers, name: str, tmp_path: Path
) -> None:
    running.become(name)
    number = FOUND[name]
    asked = ("--seed", "s", "--first", str(number), "--count", "3", "-o", str(tmp_path / "found"))
    assert _on_cluster("fuzz", *asked) == 1
    [file] = (tmp_path / "found").glob("*.yaml")
    text = file.read_text()
    assert len(text.splitlines()) < 60
    assert f": s-{number}." in text.splitlines()[1]
    once = (str(file), "-o", str(tmp_path / "out"))
    assert _on_cluster("run", "--compare", *once) == 1
    running.become("")
    assert _on_cluster("run", "--compare", *once) == 0


def _on_cluster(command: str, *words: str) -> int:
    where = ("--target", "cluster", "--cluster", "local", "--name", CLUSTER)
    return subprocess.run(
        [sys.executable, "-m", "conformance", command, *where, *words], check=False
    ).returncode


def test_a_mutant_that_there_is_not_is_no_right_scheduler(running: Schedulers) -> None:
    with pytest.raises(ClusterError, match="DRA_MUTANT=no-such: there is no such mutant"):
        running.become("no-such")
