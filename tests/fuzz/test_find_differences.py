"""A planted defect is found and made small by asking the cluster: here, one without counters."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from conformance.compare.judging import judge
from conformance.compare.witness import REFERENCE
from conformance.fuzz.cases import UNJUDGED, Answer
from conformance.fuzz.find_differences import Hunt
from conformance.fuzz.problem import Generator, Problem, snapshot_of
from conformance.fuzz.run_problems import Runner
from conformance.fuzz.scenario import scenario_of
from conformance.scenario.selection import Selection, select
from kube.base.errors import UsageError

VERSION = "1.37.1"


class CountsNothing:
    """A cluster whose scheduler has no counters, in place of a `Runner`."""

    def answer(self, problems: Sequence[Problem], *_: float) -> list[Answer]:
        found = []
        for problem in problems:
            try:
                found.append(self._one(problem))
            except UsageError as error:
                found.append(Answer(problem, UNJUDGED, str(error)))
        return found

    def stop(self) -> None:
        pass

    def _one(self, problem: Problem) -> Answer:
        document = problem.document
        claims, snapshot = document["claims"], snapshot_of(document)
        seen = copy.deepcopy(snapshot)
        for item in seen["slices"]:
            item["spec"].pop("sharedCounters", None)
            for device in item["spec"].get("devices", ()):
                device.pop("consumesCounters", None)
        for node in [item["metadata"]["name"] for item in document["nodes"]]:
            found = REFERENCE.allocate(seen, claims, node)
            if found.allocations is not None:
                allocated = {"claims": claims, "allocations": list(found.allocations)}
                evidence: dict[str, Any] = {"pod": "pod", "node": node, "snapshot": snapshot}
                evidence |= allocated
                judged = judge(evidence)
                return Answer(problem, str(judged.verdict), judged.reason, evidence)
        return Answer(problem, "waits")


def test_a_defect_is_found_and_made_small(tmp_path: Path) -> None:
    hunt = Hunt(cast("Runner", CountsNothing()), Generator(VERSION, {}), "s", workers=1)
    answer = next(hunt.find_differences(30, 100, 60.0, lambda: None))
    document = answer.problem.document
    counting = [
        device
        for item in document["slices"]
        for device in item["spec"].get("devices", ())
        if device.get("consumesCounters")
    ]
    assert len(counting) <= 2
    objects = sum(len(document[name]) for name in ("slices", "nodes", "claims", "deviceClasses"))
    assert objects <= 5
    file = tmp_path / f"fuzz-{answer.problem.id}.yaml"
    file.write_text(scenario_of(answer, VERSION))
    assert len(file.read_text().splitlines()) < 60
    assert len(select([file], Selection())) == 1


class SaysNothing:
    """A cluster whose scheduler never says anything of one problem, and of another only once."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def answer(self, problems: Sequence[Problem], *_: float) -> list[Answer]:
        return [self._one(problem) for problem in problems]

    def stop(self) -> None:
        pass

    def _one(self, problem: Problem) -> Answer:
        self.asked.append(problem.id)
        again = self.asked.count(problem.id) > 1
        silent = problem.id == "s-0" or (problem.id == "s-1" and not again)
        return Answer(problem, UNJUDGED, "silence") if silent else Answer(problem, "waits")


def test_what_is_not_judged_is_asked_again_and_named() -> None:
    hunt = Hunt(cast("Runner", SaysNothing()), Generator(VERSION, {}), "s", workers=1)
    assert list(hunt.find_differences(0, 3, 60.0, lambda: None)) == []
    assert hunt.counts == {UNJUDGED: 1, "waits": 2}
    assert hunt.unjudged == ["s-0: silence"]
