"""Problems on a served reference: judged, removed, and a defect of its scheduler found."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from conformance.fuzz.hunting import Hunt
from conformance.fuzz.problem import Generator
from conformance.fuzz.running import SAME, Runner
from conformance.fuzz.scenario import scenario_of
from conformance.kubeapi.api import Api
from conformance.scenario.selection import Selection, select
from conformance.targets.cluster.objects.ownership import owned

VERSION = "1.37.1"
PARTITIONS = 26  # The number of a problem with devices whose counters do not do for both.


def test_a_sound_scheduler_agrees_and_nothing_is_left(served: Callable[..., Api]) -> None:
    api, generator = served(), Generator(VERSION, {})
    with Runner(api, VERSION, {}, "run0").opened() as runner:
        answers = runner.answer([generator.draw("s", number) for number in range(12)])
    assert [answer.verdict for answer in answers if answer.verdict not in SAME] == []
    assert {"identical", "waits"} <= {answer.verdict for answer in answers}
    assert not owned(api, "run0")


def test_a_defect_is_found_and_written_as_a_scenario(
    served: Callable[..., Api], tmp_path: Path
) -> None:
    runner = Runner(served("ignores-counters"), VERSION, {}, "run0")
    hunt = Hunt(runner, Generator(VERSION, {}), "s", workers=1)
    with runner.opened():
        [answer] = hunt.differences(PARTITIONS, 1, 60.0, lambda: None)
    assert (answer.verdict, hunt.counts.total()) == ("impossible", 1)
    document = answer.problem.document
    devices = [item for one in document["slices"] for item in one["spec"].get("devices", ())]
    assert len(devices) == 2
    assert len(document["claims"][0]["spec"]["devices"]["requests"]) == 2
    file = tmp_path / f"fuzz-{answer.problem.id}.yaml"
    file.write_text(scenario_of(answer, VERSION))
    assert len(file.read_text().splitlines()) < 60
    [loaded] = select([file], Selection())
    assert loaded.scenario.spec.nodes == ("a",)
