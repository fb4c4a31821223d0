"""What came of a problem of any kind can be written as a scenario that a right scheduler passes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from conformance.engine.setup import Setup
from conformance.engine.suite import run_suite
from conformance.fuzz.cases import SAME
from conformance.fuzz.problem import Generator
from conformance.fuzz.run_problems import Runner
from conformance.fuzz.scenario import scenario_of
from conformance.results.events.scenario import Outcome
from conformance.scenario.selection import Selection, select
from conformance.targets.opening.options import TargetOptions
from conformance.targets.opening.target import open_reference
from kube.api import Api

VERSION = "1.37.1"
KINDS = {
    20: "three pods",
    24: "DeviceTaintRules",
    25: "two pods that share counters",
    36: "extended resources beside what is in use",
    44: "more than one device of an extended resource",
}


def test_a_scenario_of_each_kind_passes_on_a_right_scheduler(
    served: Callable[..., Api], tmp_path: Path
) -> None:
    generator = Generator(VERSION, {})
    problems = [generator.draw("s", number) for number in KINDS]
    assert {len(problem.document["pods"]) for problem in problems} == {1, 2, 3}
    with Runner(served(), VERSION, {}, "run0").open_namespace() as runner:
        answers = runner.answer(problems, decide=300.0)
    verdicts = {answer.verdict for answer in answers}
    assert "identical" in verdicts <= set(SAME)
    files = [tmp_path / f"fuzz-{answer.problem.id}.yaml" for answer in answers]
    for file, answer in zip(files, answers, strict=True):
        file.write_text(scenario_of(answer, VERSION))
    with open_reference(TargetOptions(kubernetes_version=VERSION)) as opened:
        finished = run_suite(select(files, Selection()), Setup("kinds", opened), ()).finished
    assert [(item.scenario.id, item.outcome, item.message) for item in finished] == [
        (file.stem, Outcome.PASSED, "") for file in files
    ]
