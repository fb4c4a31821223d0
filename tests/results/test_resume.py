"""A run that was killed goes on: what had ended is kept byte by byte, the rest runs, once."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from conformance.certify.contradictions import find_contradictions
from conformance.cli.app import app
from conformance.cli.commands.run import check_nothing_left
from conformance.compare.conclude import conclude_run
from conformance.engine.setup import planned
from conformance.results.events.result import retold
from conformance.results.events.run import RunFinished
from conformance.results.events.scenario import Outcome
from conformance.results.merge import merge, resumed
from conformance.results.read import RecordedRun, load_results
from conformance.results.write import FILE_NAME, RESUMING, ResultFile
from conformance.scenario.selection import select
from conformance.targets.opening.options import TargetOptions
from conformance.targets.opening.target import open_reference
from kube.base.errors import ExitCode, UsageError
from kube.nodes import RUN_LABEL
from tests import programs
from tests.certify.evidence import Forgery

SELECTED = ["run", "--target", "reference", "-k", "core/exact", "-k", "core/two"]


def run(*arguments: str) -> Any:
    return CliRunner().invoke(app, [*SELECTED, *arguments])


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    """The lines of a run that was not interrupted."""
    folder = tmp_path_factory.mktemp("whole")
    assert run("-o", str(folder), "--run-id", "first").exit_code == 0
    return (folder / FILE_NAME).read_bytes().splitlines(keepends=True)


def killed(whole: list[bytes], folder: Path, kept: int = 2, name: str = FILE_NAME) -> Path:
    """The folder of a run of which so many scenarios had ended when the next line was written."""
    folder.mkdir(exist_ok=True)
    (folder / name).write_bytes(b"".join(whole[: kept + 1]) + whole[kept + 1][:40])
    return folder


def sound(folder: Path) -> RecordedRun:
    result = load_results(folder / FILE_NAME)
    assert find_contradictions(result, [planned(item) for item in select()]) == ()
    assert not (folder / RESUMING).exists()
    return result


def test_what_had_ended_is_kept_and_the_rest_runs(whole: list[bytes], tmp_path: Path) -> None:
    folder = killed(whole, tmp_path / "run")
    again = run("--resume", str(folder), "--run-id", "second")
    assert again.exit_code == 0, again.output
    assert "resumed once, after first; 2 scenarios ended before" in again.output
    result = sound(folder)
    assert conclude_run(result).code is ExitCode.CONFORMANT
    assert (folder / FILE_NAME).read_bytes().splitlines(keepends=True)[1:3] == whole[1:3]
    [part] = result.run.resumed
    assert (part.run, len(part.scenarios)) == ("first", 2)
    assert len(result.finished) == len(result.run.planned) == len(whole) - 2
    assert result.run.started_at == json.loads(whole[0])["startedAt"]
    for name in ("report.html", "summary.md", "summary.json"):
        assert "first" in (folder / name).read_text()
    assert (folder / "junit.xml").read_text().count("<testcase") == len(result.finished)


def test_one_that_is_killed_again_can_be_resumed_again(whole: list[bytes], tmp_path: Path) -> None:
    folder = killed(whole, tmp_path / "run", kept=1)
    old = (folder / FILE_NAME).read_bytes()
    assert run("--resume", str(folder), "--run-id", "second").exit_code == 0
    lines = (folder / FILE_NAME).read_bytes().splitlines(keepends=True)
    killed(lines, folder, kept=3, name=RESUMING)  # as it stood before its end
    (folder / FILE_NAME).write_bytes(old)
    (folder / f"{RESUMING}.tmp").write_bytes(lines[0])
    assert run("--resume", str(folder), "--run-id", "third").exit_code == 0
    result = sound(folder)
    assert [(part.run, len(part.scenarios)) for part in result.run.resumed] == [
        ("first", 1),
        ("second", 2),
    ]
    assert "2 times, after first, second" in (folder / "report.html").read_text()


@pytest.mark.parametrize(
    ("recorded", "kept"), [(["b", "a"], ["a"]), (["b"], []), (7, None), (None, None)]
)
def test_what_ran_on_a_second_cluster_and_is_kept_stays_named(
    recorded: object, kept: list[str] | None, whole: list[bytes], tmp_path: Path
) -> None:
    names = {number: json.loads(whole[number])["scenario"] for number in (1, 4)}
    text = json.dumps(recorded).replace('"a"', f'"{names[1]}"').replace('"b"', f'"{names[4]}"')
    header = json.loads(whole[0])
    if recorded is not None:
        header["options"]["secondCluster"] = json.loads(text)
    earlier = load_results(
        killed([f"{json.dumps(header)}\n".encode(), *whole[1:]], tmp_path / "run") / FILE_NAME,
        truncated_ok=True,
    )
    begun = resumed(earlier, replace(earlier.run, run="second"))
    expected = None if kept is None else [names[1] for _ in kept]
    assert begun.run.options.get("secondCluster") == (recorded if kept is None else expected)


def test_the_old_file_stays_until_the_new_one_is_whole(whole: list[bytes], tmp_path: Path) -> None:
    folder = killed(whole, tmp_path / "run")
    old = (folder / FILE_NAME).read_bytes()
    assert run("--resume", str(killed(whole, tmp_path / "other"))).exit_code == 0
    events = list(retold(load_results(tmp_path / "other" / FILE_NAME)))
    file = ResultFile(folder / FILE_NAME)
    for number, event in enumerate(events):
        assert (folder / FILE_NAME).read_bytes() == old
        # Until all that is kept stands in it, nobody takes the new file for what to go on with.
        assert (folder / RESUMING).exists() is (number > 2)
        file.handle(event)
    assert load_results(folder / FILE_NAME).footer is not None
    assert sorted(path.name for path in folder.iterdir()) == [FILE_NAME]


def test_a_run_that_was_killed_after_its_last_result_gets_its_end(
    whole: list[bytes], tmp_path: Path
) -> None:
    folder = killed(whole, tmp_path / "run", kept=len(whole) - 2)
    assert run("--resume", str(folder)).exit_code == 0
    assert len(sound(folder).run.resumed[0].scenarios) == len(whole) - 2


def test_what_was_lost_runs_and_a_dry_run_says_so(tmp_path: Path) -> None:
    """As after Ctrl-C or -x: there is a footer, and scenarios that are lost."""
    failing = tmp_path / "scenarios"
    failing.mkdir()
    text = (Path("scenarios") / "core" / "exact-count-four-devices.yaml").read_text()
    (failing / "a-b.yaml").write_text(text.replace("name: exact-count-four-devices", "name: a-b"))
    (failing / "c-d.yaml").write_text(text.replace("name: exact-count-four-devices", "name: c-d"))
    command = ["run", str(failing), "--target", "reference"]
    folder = tmp_path / "run"
    assert CliRunner().invoke(app, [*command, "-o", str(folder)]).exit_code == 0
    ended = load_results(folder / FILE_NAME)
    lost = ended.finished[1]
    file = ResultFile(folder / FILE_NAME)
    for event in retold(ended):
        if event == lost:
            event = replace(lost, outcome=Outcome.LOST, message="the run was interrupted")
        file.handle(replace(event, interrupted=True) if isinstance(event, RunFinished) else event)
    dry = CliRunner().invoke(app, [*command, "--resume", str(folder), "--dry-run"])
    assert "would run 1 scenario and skip 0" in dry.output, dry.output
    assert CliRunner().invoke(app, [*command, "--resume", str(folder)]).exit_code == 0
    result = sound(folder)
    assert len(result.outcomes[Outcome.PASSED]) == 2
    assert lost.scenario.id not in result.run.resumed[0].scenarios


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["-k", "core/all"], r"\$\.options\.only.* leave --resume out"),
        (["--kubernetes", "1.35"], r"results.ndjson:1: \$\.kubernetesVersion was .* and now is"),
        (["--feature-gate", "DRADeviceTaintRules=false"], r"\$\.(featureGates|options)"),
        (["--time-factor", "2"], r"\$\.timeFactor was 1.* and now is 2"),
        (["--shard", "1/2"], r"\$\.scenarios"),
        (["--run-id", "first"], "is an earlier run's"),
        (["-o", "elsewhere"], "name two folders"),
    ],
)
def test_another_plan_is_refused(
    arguments: list[str], says: str, whole: list[bytes], tmp_path: Path
) -> None:
    folder = killed(whole, tmp_path / "run")
    old = (folder / FILE_NAME).read_bytes()
    refused = run("--resume", str(folder), *arguments)
    assert isinstance(refused.exception, UsageError)
    assert refused.exception.exit_code == ExitCode.USAGE
    with pytest.raises(UsageError, match=says):
        raise refused.exception
    assert [(path.name, path.read_bytes()) for path in folder.iterdir()] == [(FILE_NAME, old)]


def test_what_is_finished_damaged_or_not_there_is_refused(
    whole: list[bytes], tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / FILE_NAME).write_bytes(b"".join(whole))
    assert "nothing to resume: the run first ended" in str(run("--resume", str(folder)).exception)
    (folder / FILE_NAME).write_bytes(b"".join(whole).replace(b'"passed"', b'"failed"', 1))
    assert "was changed after the run" in str(run("--resume", str(folder)).exception)
    (folder / FILE_NAME).write_bytes(b"".join([whole[0], whole[1][:40] + b"\n", whole[2]]))
    assert f"{FILE_NAME}:2: is not JSON" in str(run("--resume", str(folder)).exception)
    assert "no run has written" in str(run("--resume", str(tmp_path / "none")).exception)
    assert not (tmp_path / "none").exists()


def test_shards_that_were_resumed_can_be_merged(tmp_path: Path) -> None:
    folders = [tmp_path / "1", tmp_path / "2"]
    for number, folder in enumerate(folders, start=1):
        assert run("-o", str(folder), "--shard", f"{number}/2", "--run-id", f"s{number}").stdout
    lines = (folders[0] / FILE_NAME).read_bytes().splitlines(keepends=True)
    killed(lines, folders[0], kept=1)
    assert run("--resume", str(folders[0]), "--shard", "1/2").exit_code == 0
    file = ResultFile(tmp_path / FILE_NAME)
    for event in retold(merge([load_results(folder / FILE_NAME) for folder in folders])):
        file.handle(event)
    result = sound(tmp_path)
    assert not result.run.resumed
    assert result.run.merged is not None
    assert result.run.merged.parts[0].resumed[0].run == "s1"


@pytest.mark.parametrize(
    ("forge", "says"),
    [
        (lambda head: head["resumed"][0].update(run="third"), "of run third it would be"),
        (lambda head: head.update(resumed=[]), "of run second it would be"),
        (lambda head: head["resumed"][0]["scenarios"].pop(), "of run second it would be"),
    ],
)
def test_a_forged_resumption_is_found(
    forge: Any, says: str, whole: list[bytes], tmp_path: Path
) -> None:
    folder = killed(whole, tmp_path / "run")
    assert run("--resume", str(folder), "--run-id", "second").exit_code == 0
    forged = Forgery(folder / FILE_NAME, folder, [])
    forge(forged.header)
    forged.write()
    found = [str(item) for item in find_contradictions(load_results(forged.results), ())]
    assert any(says in text for text in found), found


def test_kill_minus_nine_in_the_middle(tmp_path: Path) -> None:
    """A real process, killed when some scenarios have ended; then all have exactly one result."""
    command = [sys.executable, "-m", "conformance", "run", "--target", "reference", "-k", "core/c"]
    folder = tmp_path / "run"
    file = folder / FILE_NAME
    with subprocess.Popen([*command, "-o", str(folder)], stdout=subprocess.DEVNULL) as process:
        until = time.monotonic() + 60
        while not (file.exists() and file.read_bytes().count(b"\n") > 5):
            assert process.poll() is None
            assert time.monotonic() < until
            time.sleep(0.002)
        process.kill()
    before = load_results(file, truncated_ok=True)
    assert before.footer is None
    assert 5 <= len(before.finished) < len(before.run.planned)
    done = programs.ended([*command, "--resume", str(folder)])
    assert done.returncode == 0, done.stdout + done.stderr
    result = sound(folder)
    assert len(result.finished) == len(result.run.planned)
    kept = tuple(
        event for event in result.finished if event.scenario.id in result.run.resumed[0].scenarios
    )
    assert kept == before.finished


def test_nothing_of_the_interrupted_run_may_be_there() -> None:
    with open_reference(TargetOptions()) as opened:
        check_nothing_left(opened, "first")
        labels = {RUN_LABEL: "first"}
        scope = opened.target.scope("default")
        scope.create(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "old", "labels": labels}}
        )
        with pytest.raises(UsageError, match="still has 1 object of the interrupted run first"):
            check_nothing_left(opened, "first")
        check_nothing_left(opened, "second")
        scope.close()
