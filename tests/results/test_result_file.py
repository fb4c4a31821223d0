from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.results.events.account import Account
from conformance.results.events.comparison import Judgement, ScenarioCompared, Verdict
from conformance.results.events.scenario import Outcome, ScenarioFinished
from conformance.results.read import ResultFileError, load_results
from conformance.results.write import ResultFile, from_line, result_schema, to_line
from kube.base.errors import UsageError
from tests.report.builders import (
    HOSTILE,
    compared,
    finished,
    planned,
    play,
    recorded,
    sample,
    started,
    step,
    stream,
)


def write(path: Path, **changes: Any) -> Path:
    with closing(ResultFile(path)) as reporter:
        play(reporter, stream(*sample(), **changes))
    return path


def lines(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines(keepends=True)


def test_what_is_written_is_read_back_as_the_same_events(tmp_path: Path) -> None:
    scenarios, events, diagnostics = sample()
    result = load_results(write(tmp_path / "deep" / "results.jsonl"))

    public = [replace(s, file=f"{s.id}.yaml") for s in scenarios]
    assert result.run.planned == tuple(public)
    by_id = {item.id: item for item in public}
    assert result.finished == tuple(
        replace(
            e,
            scenario=by_id[e.scenario.id],
            where=e.where.replace("/home/somebody/checkout/scenarios/", ""),
        )
        for e in events
    )
    assert result.diagnostics == diagnostics
    assert result.footer is not None
    assert result.footer.finished_at == "2026-11-21T10:01:00Z"
    assert result.outcomes == {
        Outcome.PASSED: ("core/passing",),
        Outcome.FAILED: ("core/failing",),
        Outcome.ERROR: ("core/broken",),
        Outcome.SKIPPED: ("extended/unsupported",),
        Outcome.LOST: ("core/lost",),
        Outcome.KNOWN: (),
        Outcome.FLAKY: (),
    }


def test_the_same_events_give_the_same_bytes(tmp_path: Path) -> None:
    assert write(tmp_path / "a").read_bytes() == write(tmp_path / "b").read_bytes()


def test_no_local_folder_is_in_the_file(tmp_path: Path) -> None:
    scenario = planned()
    event = finished(scenario, Outcome.FAILED, f"{scenario.file}:12: no pod")
    path = tmp_path / "r"
    play(ResultFile(path), stream([scenario], [event]))
    assert b"/home/somebody" not in path.read_bytes()
    assert load_results(path).finished[0].where == "core/one.yaml:12"


def test_a_line_is_on_disk_before_the_next_event(tmp_path: Path) -> None:
    scenarios, events, _ = sample()
    path = tmp_path / "r"
    reporter = ResultFile(path)
    reporter.handle(started(scenarios))
    assert len(lines(path)) == 1
    reporter.handle(events[0])
    assert len(lines(path)) == 2
    reporter.close()


def test_a_truncated_file_can_be_read_for_what_it_is(tmp_path: Path) -> None:
    path = write(tmp_path / "r", footer=False)
    path.write_bytes(path.read_bytes()[:-20])
    result = load_results(path, truncated_ok=True)
    assert result.footer is None
    assert result.outcomes[Outcome.LOST] == ("core/lost", "extended/unsupported")


@given(data=st.data())
def test_no_cut_gives_a_good_file(data: st.DataObject, tmp_path_factory: Any) -> None:
    path = tmp_path_factory.getbasetemp() / "cut.jsonl"
    whole = write(path).read_bytes()
    path.write_bytes(whole[: data.draw(st.integers(0, len(whole) - 2))])
    with pytest.raises(ResultFileError, match=r"has no footer|was cut off|is empty"):
        load_results(path)


@given(data=st.data())
def test_no_changed_byte_goes_unnoticed(data: st.DataObject, tmp_path_factory: Any) -> None:
    path = tmp_path_factory.getbasetemp() / "changed.jsonl"
    whole = bytearray(write(path).read_bytes())
    footer = whole.rindex(b'{"record": "footer"')
    place = data.draw(st.integers(0, footer - 1))
    new = data.draw(st.integers(0, 255).filter(lambda value: value != whole[place]))
    whole[place] = new
    path.write_bytes(whole)
    with pytest.raises(UsageError):  # a ResultFileError, but for the version of the format
        load_results(path)


def test_a_missing_file_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        load_results(tmp_path / "none")


def inserted(line: bytes) -> Callable[[list[bytes]], list[bytes]]:
    return lambda given: [given[0], line, *given[1:]]


def replaced(old: bytes, new: bytes) -> Callable[[list[bytes]], list[bytes]]:
    return lambda given: [b"".join(given).replace(old, new, 1)]


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        pytest.param(lambda _: [b"\n"], "is empty", id="empty"),
        pytest.param(lambda given: given[:-1], r"no footer.*1 of 5 planned", id="no footer"),
        pytest.param(lambda given: given * 2, "follows the footer", id="two runs"),
        pytest.param(lambda given: [given[0], *given], r":2: a second header", id="two headers"),
        pytest.param(
            lambda given: [*given[:3], *given[2:]], r"r:4: .*core/passing has a", id="two results"
        ),
        pytest.param(
            lambda given: [*given[:2], *given[1:]],
            r"r:3: .*core/passing has a",
            id="compared twice",
        ),
        pytest.param(
            replaced(b'"outcome": "failed"', b'"outcome": "passed"'),
            "changed after the run",
            id="edited outcome",
        ),
        pytest.param(replaced(b'"failed": 1', b'"failed": 0'), "counts", id="edited counts"),
        pytest.param(replaced(b'">=1.34"', b'"x"'), r"r:1: \$\.planned.*: .*version", id="range"),
        pytest.param(lambda given: given[1:], "first line is not a header", id="no header"),
        pytest.param(inserted(b"not json\n"), r"r:2: is not JSON", id="no JSON"),
        pytest.param(inserted(b"[]\n"), r"r:2: is not a JSON object", id="no object"),
        pytest.param(
            inserted(b'{"record": "scenario"}\n'), r"r:2: \$\.scenario: must be", id="field lacks"
        ),
        pytest.param(
            inserted(b'{"record": "weather"}\n'), r"r:2: \$\.record: is 'weather', not", id="kind"
        ),
        pytest.param(inserted(b'{"record": "header"}\n'), r"r:2: \$\.kind: must be", id="header"),
        pytest.param(
            inserted(b'{"record": ["header"]}\n'), r"r:2: \$\.record: is \['header'\]", id="list"
        ),
        pytest.param(inserted(b'{"record": NaN}\n'), r"r:2: is not JSON", id="no value of JSON"),
        pytest.param(
            inserted(b"[" * 100_000 + b"\n"),
            r"r:2: is not read, it is nested deeper",
            id="too deep",
        ),
    ],
)
def test_a_damaged_file_is_reported_with_its_place(
    tmp_path: Path, edit: Callable[[list[bytes]], list[bytes]], message: str
) -> None:
    path = write(tmp_path / "r", compared=[compared("core/passing", "identical")])
    path.write_bytes(b"".join(edit(lines(path))))
    with pytest.raises(ResultFileError, match=message):
        load_results(path)


def test_another_run_or_version_is_reported(tmp_path: Path) -> None:
    path = write(tmp_path / "r", end={"run": "r2"})
    with pytest.raises(ResultFileError, match="another run"):
        load_results(path)
    path.write_bytes(path.read_bytes().replace(b"dra-conformance/v1", b"dra-conformance/v9"))
    with pytest.raises(UsageError, match=r"r:1: \$\.apiVersion"):
        load_results(path)


def test_a_result_that_was_not_planned_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ResultFileError, match="core/b was not planned"):
        recorded(tmp_path, [planned("core/a")], [finished("core/b")])


def test_a_failed_cleanup_never_counts_as_passed(tmp_path: Path) -> None:
    event = finished(cleanup=Outcome.FAILED, left=("Pod pod0",))
    result = recorded(tmp_path, [event.scenario], [event])
    assert result.outcomes[Outcome.FAILED] == ("core/one",)


def test_hostile_and_huge_texts_survive_the_round_trip(tmp_path: Path) -> None:
    event = finished(
        planned(summary=HOSTILE),
        Outcome.FAILED,
        HOSTILE + "x" * 3_000_000,
        steps=(step("core/one", title=HOSTILE, observed=({"a": [1, None, HOSTILE]},)),),
    )
    result = recorded(tmp_path, [event.scenario], [event], {"core/one": {HOSTILE: HOSTILE}})
    readable = HOSTILE.replace("\ud800", "?")
    assert result.finished[0].message == readable + "x" * 3_000_000
    assert result.finished[0].steps[0].observed == ({"a": [1, None, readable]},)
    assert result.diagnostics == {"core/one": {readable: readable}}


def test_credentials_are_not_written(tmp_path: Path) -> None:
    path = tmp_path / "r"
    event = finished(
        outcome=Outcome.FAILED,
        message="Authorization: Bearer abcdefgh12345678",
        decisions=({"claims": [{"parameters": {"password": "hunter2"}}]},),
    )
    play(
        ResultFile(path),
        stream([event.scenario], [event], {"core/one": {"config": "token: s3cr3t-value"}}),
    )
    content = path.read_bytes()
    for secret in (b"abcdefgh12345678", b"hunter2", b"s3cr3t-value"):
        assert secret not in content


def test_what_the_comparison_says_is_read_back_as_the_same_events(tmp_path: Path) -> None:
    path = tmp_path / "r"
    judgement = Judgement(Verdict.MISSED, "why", ("rule: x",), ({"devices": {}},), "p", "n")
    events = (
        compared("core/passing", judgements=(judgement,), differs=True),
        compared("core/failing", problems=("decision 0: $.node: is required",)),
    )
    play(ResultFile(path), stream(*sample(), compared=events))
    result = load_results(path)
    assert result.run.compared
    assert sorted(result.compared, key=lambda item: item.scenario, reverse=True) == list(events)
    assert result.verdicts[Verdict.MISSED] == 1
    assert result.where("compared", "core/passing") == f"{path}:2"


def test_line_has_an_account_only_where_there_is_one() -> None:
    """Digests of parts of older files are worked out of such lines."""
    plain, account = finished(planned()), Account(events=("Pod p: ...",), calls={"c": ("prepare",)})
    assert "account" not in to_line(plain)
    assert "explained" not in to_line(ScenarioCompared("core/a"))
    line = json.loads(json.dumps(to_line(replace(plain, account=account))))
    assert from_line(line, {plain.scenario.id: plain.scenario}) == replace(plain, account=account)


def test_what_was_tested_stands_in_the_header(tmp_path: Path) -> None:
    start = {
        "feature_gates": {"DRADeviceTaints": False},
        "driver_profile": {"metadata": {"name": "gpu"}},
        "driver_profile_digest": "sha256:1",
        "image": "busybox:1",
        "options": {
            "simulate": "/home/somebody/b200.yaml",
            "driverCommand": "/opt/somebody/driver --token abc123 --cdi=/var/run/cdi",
            "paths": [Path("/home/somebody/own")],
        },
    }
    result = recorded(tmp_path, *sample(), start=start)
    run = result.run
    assert run.feature_gates == {"DRADeviceTaints": False}
    assert run.driver_profile == {"metadata": {"name": "gpu"}}
    assert run.driver_profile_digest == "sha256:1"
    assert run.image == "busybox:1"
    assert run.options == {
        "driverCommand": "<path>/driver --token <redacted> --cdi=<path>/cdi",
        "paths": ["<path>/own"],
        "simulate": "<path>/b200.yaml",
    }


@pytest.mark.parametrize("make", ["fifo", "zero", "large"])
def test_what_is_no_file_of_reasonable_size_is_refused_at_once(
    tmp_path: Path, make: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "r"
    if make == "fifo":
        os.mkfifo(path)
    elif make == "zero":
        path.symlink_to("/dev/zero")
    else:
        monkeypatch.setattr("conformance.results.read.MAX_BYTES", 1 << 20)
        path.write_bytes(bytes((1 << 20) + 1))
    with pytest.raises(UsageError, match=r"not a regular file|larger than"):
        load_results(path)


def test_a_place_that_cannot_be_written_is_a_usage_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot be written"):
        ResultFile(tmp_path / "file" / "r").handle(started([planned()]))


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is full")
def test_a_disk_that_is_full_is_reported_once_and_closing_is_no_second_error() -> None:
    with (
        closing(ResultFile(Path("/dev/full"))) as reporter,
        pytest.raises(OSError, match="No space left"),
    ):
        reporter.handle(started([planned()]))
    reporter.handle(finished())


def test_every_written_line_fits_the_published_model(tmp_path: Path) -> None:
    path = tmp_path / "r"
    judged = [compared("core/passing", "missed", "identical", differs=True)]
    play(ResultFile(path), stream(*sample(), compared=judged))
    check = jsonschema.Draft202012Validator(result_schema())
    for line in lines(path):
        document = json.loads(line)
        assert [error.message for error in check.iter_errors(document)] == []
        assert not check.is_valid({**document, "unknown": 1})
        assert not check.is_valid({**document, "record": "weather"})


def test_results_arrive_in_the_order_in_which_scenarios_ended(tmp_path: Path) -> None:
    events: list[ScenarioFinished] = [finished("core/b"), finished("core/a")]
    result = recorded(tmp_path, [planned("core/a"), planned("core/b")], events)
    assert [event.scenario.id for event in result.finished] == ["core/b", "core/a"]
