"""Problems on a served reference: judged, a defect of its scheduler found, all removed."""

from __future__ import annotations

from collections.abc import Callable

from conformance.fuzz.cases import SAME
from conformance.fuzz.problem import Generator
from conformance.fuzz.run_problems import Runner
from conformance.targets.cluster.ownership import list_owned
from kube.api import Api

VERSION = "1.37.1"
PARTITIONS = 33  # The number of a problem with devices whose counters do not do for both.
TWO_PODS = 88  # Of one where they do for the first pod, and not for the second as well.
OF_EACH_KIND = (0, 17, 18, 19, 20, 24, 25, 31, 34, 36, 38)


def test_a_sound_scheduler_agrees_and_nothing_is_left(served: Callable[..., Api]) -> None:
    api, generator = served(), Generator(VERSION, {})
    with Runner(api, VERSION, {}, "run0").open_namespace() as runner:
        problems = [generator.draw("s", number) for number in OF_EACH_KIND]
        answers = runner.answer(problems, decide=300.0)
    assert {"deviceTaintRules", "extendedResource", "pods"} <= {
        item for problem in problems for item in problem.focus
    }
    assert [answer.verdict for answer in answers if answer.verdict not in SAME] == []
    assert {"identical", "waits"} <= {answer.verdict for answer in answers}
    assert not list_owned(api, "run0")


def test_a_defect_of_the_scheduler_is_seen(served: Callable[..., Api]) -> None:
    with Runner(served("ignores-counters"), VERSION, {}, "run0").open_namespace() as runner:
        [answer] = runner.answer([Generator(VERSION, {}).draw("s", PARTITIONS)], decide=300.0)
    assert answer.verdict == "impossible"
    assert answer.evidence["node"] == "node-0"


def test_a_pod_is_judged_by_what_those_before_it_have(served: Callable[..., Api]) -> None:
    with Runner(served("ignores-counters"), VERSION, {}, "run0").open_namespace() as runner:
        [answer] = runner.answer([Generator(VERSION, {}).draw("s", TWO_PODS)], decide=300.0)
    assert answer.verdict == "impossible"
    assert answer.earlier == (True,)
    assert answer.evidence["pod"] == "pod-1"
    taken = [claim["metadata"]["name"] for claim in answer.evidence["snapshot"]["allocated"]]
    assert taken == ["claim-0"]
