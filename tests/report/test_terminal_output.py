from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from conformance.report.terminal import PlainConsole, TerminalReporter
from conformance.results.events.comparison import Judgement, ScenarioCompared, Verdict
from conformance.results.events.run import RunStopping
from conformance.results.events.scenario import (
    Outcome,
    PlannedScenario,
    ScenarioFinished,
    ScenarioStarted,
    StepStarted,
)
from tests.report.builders import (
    HOSTILE,
    compared,
    ended,
    finished,
    planned,
    play,
    sample,
    started,
    step,
    stream,
)
from tests.report.golden import check

COMPARED = (compared("core/passing", "identical"), compared("core/failing", "inadmissible"))


class Encoded(io.StringIO):
    """A stream that says what it can encode, and cannot encode more."""

    def __init__(self, encoding: str) -> None:
        super().__init__()
        self._name = encoding

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._name

    def write(self, text: str) -> int:
        text.encode(self._name)
        return super().write(text)


def console(encoding: str = "utf-8", width: int = 80, *, tty: bool = False) -> Console:
    return Console(
        file=Encoded(encoding),
        width=width,
        force_terminal=tty,
        color_system="standard" if tty else None,
        highlight=False,
        markup=False,
        emoji=False,
        legacy_windows=False,
        _environ={"TERM": "xterm"},
    )


def text_of(used: Console) -> str:
    assert isinstance(used.file, Encoded)
    return used.file.getvalue()


def printed(scenarios: list[PlannedScenario], events: list[ScenarioFinished], **more: Any) -> str:
    """What is printed of a run."""
    used = console()
    play(TerminalReporter(used), stream(scenarios, events, **more))
    return text_of(used)


def report(
    used: Console, diagnostics: Callable[[str], Path | None] = lambda _: None, **changes: object
) -> str:
    scenarios, events, items = sample()
    reporter = TerminalReporter(used, diagnostics=diagnostics)
    play(reporter, stream(scenarios, events, items, **{"compared": COMPARED, **changes}))  # type: ignore[arg-type]
    return text_of(used)


def test_lines_failures_totals_and_what_it_comes_to() -> None:
    places = {"core/failing": Path("out/diagnostics/core/failing")}
    text = report(console(), diagnostics=places.get)
    check("terminal-80.txt", text)
    assert not [line for line in text.splitlines() if line != line.rstrip()]
    assert text.splitlines()[-1].startswith("not conformant: 1 scenario failed; 1 scenario with an")


def test_each_scenario_that_ran_is_listed_once_and_in_one_piece() -> None:
    name = "extended/opaque-configuration/claim-config-reaches-container-" + "x" * 60
    assert printed([planned(name)], [finished(name)]).count(name) == 1


def test_scenarios_that_were_not_run_are_counted_and_not_listed_thrice() -> None:
    names = [f"core/s{number}" for number in range(400)]
    events = [finished(names[0], Outcome.FAILED, "the one real failure")]
    events += [finished(name, Outcome.LOST, "the run was interrupted") for name in names[1:]]
    text = printed([planned(name) for name in names], events, end={"interrupted": True})
    assert len(text.splitlines()) < 25
    assert "and 394 more lost; the reports name them all" in text
    assert text.index("and 394 more lost") < text.rindex("the one real failure")


@pytest.mark.parametrize(
    ("outcomes", "said"),
    [
        ([Outcome.PASSED, Outcome.PASSED], "conformant (exit code 0)"),
        ([Outcome.PASSED, Outcome.SKIPPED], "partial: 1 core scenario skipped (exit code 4)"),
        (
            [Outcome.PASSED, Outcome.ERROR],
            "inconclusive: 1 scenario broke off with an error (exit code 3)",
        ),
        ([Outcome.FAILED, Outcome.FAILED], "not conformant: 2 scenarios failed (exit code 1)"),
    ],
)
def test_the_end_says_what_the_run_comes_to_and_why(outcomes: list[Outcome], said: str) -> None:
    scenarios = [planned(f"core/{number}") for number in range(len(outcomes))]
    events = [finished(*pair) for pair in zip(scenarios, outcomes, strict=True)]
    text = printed(scenarios, events, compared=(), start={"simulated": ()})
    assert text.splitlines()[-1] == said


def test_a_run_that_certifies_nothing_says_why() -> None:
    last = printed([planned()], [finished()], start={"target": "reference"}).splitlines()[-1]
    assert last.startswith("certifies nothing: the run was on the suite's own reference")
    assert "not on a cluster; no allocation was judged" in last


@pytest.mark.parametrize(
    ("judged", "said"),
    [
        (compared("core/one", "identical"), "core/one  identical"),
        (
            compared("core/one", "identical", differs=True),
            "core/one  allocations identical, differs",
        ),
        (compared("core/one", differs=True), "core/one  differs"),
        (
            compared("core/one", "admissible", problems=("why",)),
            "core/one  allocations admissible, not judged in full",
        ),
    ],
)
def test_a_verdict_says_that_it_is_not_all_where_the_comparison_found_more(
    judged: ScenarioCompared, said: str
) -> None:
    text = printed([planned()], [finished()], compared=(judged,))
    assert said in [line.partition(" s  ")[2] for line in text.splitlines()]


def test_a_terminal_without_unicode_gets_ascii() -> None:
    text = report(console("ascii"))
    check("terminal-ascii.txt", text)
    assert text.isascii()


def test_without_a_comparison_no_verdict_is_mentioned() -> None:
    assert "judged" not in report(console(), compared=None)


def test_without_a_terminal_no_control_character_is_written() -> None:
    assert not [char for char in report(console()) if ord(char) < 32 and char != "\n"]


@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "latin-1"])
@pytest.mark.parametrize("tty", [False, True])
def test_hostile_texts_are_shown_and_neither_obeyed_nor_lost(encoding: str, tty: bool) -> None:
    used = console(encoding, tty=tty)
    scenario = planned("core/[bold]x[/bold]", summary=HOSTILE)
    event = finished(
        scenario,
        Outcome.FAILED,
        HOSTILE,
        left=(HOSTILE,),
        steps=(step(scenario.id, title=HOSTILE),),
    )
    reporter = TerminalReporter(used, verbose=True)
    events = stream(
        [scenario],
        [event],
        start={"driver": HOSTILE, "simulated": (HOSTILE,)},
        end={"left": (HOSTILE,)},
    )
    play(reporter, events)
    text = text_of(used)
    assert "[red]markup[/red]" in text
    assert "core/[bold]x[/bold]" in text
    assert r"\x1b[2J\x00\x07\x85" in text
    assert r"\u202eevil" in text
    assert "\x1b[2J" not in text
    assert "\x00" not in text


def test_a_huge_message_is_cut_with_a_note() -> None:
    text = printed([planned()], [finished(planned(), Outcome.FAILED, "line\n" * 1_000_000)])
    assert len(text) < 5_000
    assert "more characters)" in text


def test_credentials_are_not_printed() -> None:
    event = finished(planned(), Outcome.ERROR, "401: Bearer abcdef0123456789")
    assert "abcdef" not in printed([planned()], [event])


def test_a_run_that_was_interrupted_says_so_and_counts_the_rest_as_lost() -> None:
    text = report(console(), end={"interrupted": True, "left": ("Namespace x",)})
    assert "1 lost" in text
    assert "the run was interrupted" not in text  # a failure stands, whatever else happened
    assert "left behind: Namespace x; run `dra-conformance cleanup`" in text


def test_nothing_planned_is_not_called_a_success() -> None:
    assert "nothing ran in 60.00 s" in printed([], [])


def test_on_a_terminal_one_line_shows_counts_and_what_runs() -> None:
    used = console(tty=True)
    names = [f"core/{number}" for number in range(5)]
    now = [100.0]
    reporter = TerminalReporter(used, live=True, clock=lambda: now[0])
    reporter.handle(started([planned(name) for name in names]))
    now[0] += 65
    reporter.handle(ScenarioStarted(planned("core/0"), "ns"))
    reporter.handle(StepStarted("core/0", 0, "apply\nPod"))
    assert reporter._progress().plain == "1:05  0/5  core/0: apply Pod"
    reporter.handle(finished("core/0", Outcome.FAILED, "no"))
    for name in names[1:]:
        reporter.handle(ScenarioStarted(planned(name), "ns"))
    assert reporter._progress().plain == "1:05  1/5 1 failed  1, 2, 3 +1"
    assert "    no\n" in text_of(used)  # why it failed is told at once
    reporter.close()
    assert "\x1b[?25h" in text_of(used)  # the cursor is there again


def test_the_live_line_never_wraps() -> None:
    used = console(width=30, tty=True)
    reporter = TerminalReporter(used, live=True)
    reporter.handle(started([planned("core/" + "x" * 60)]))
    reporter.handle(ScenarioStarted(planned("core/" + "x" * 60), "ns"))
    assert len(reporter._progress().plain) < 30
    reporter.close()


def test_what_the_comparison_found_is_reported_also_of_a_scenario_that_passed() -> None:
    judgement = Judgement(Verdict.INADMISSIBLE, "selector: [red]device[/red] a\x1b b")
    judged = [compared("core/one", judgements=(judgement,))]
    text = printed([planned()], [finished()], compared=judged)
    assert "compared core/one\n  inadmissible: selector: [red]device[/red] a\\x1b b\n" in text
    assert "allocations judged: 1 inadmissible" in text


def test_the_end_is_announced_with_what_it_waits_for() -> None:
    used = console()
    reporter = TerminalReporter(used)
    reporter.handle(started([planned()]))
    reporter.handle(ScenarioStarted(planned(), "ns"))
    reporter.handle(StepStarted("core/one", 0, "expect pod p\x1b[2J in phase Running"))
    reporter.handle(RunStopping("interrupted", ("core/one",)))
    said = text_of(used).splitlines()[-1]
    assert said == (
        "interrupted: no more scenarios are started; what was made is being removed, as soon as"
        " these have stopped: core/one (expect pod p\\x1b[2J in phase Running)"
    )
    reporter.handle(ended([]))
    before = text_of(used)
    reporter.handle(RunStopping("the JUnit file failed"))
    assert text_of(used) == before


@pytest.mark.parametrize("columns", ["0", "00", ""])
def test_a_terminal_without_columns_gets_the_usual_80(
    monkeypatch: pytest.MonkeyPatch, columns: str
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    assert PlainConsole().width == 80
    monkeypatch.setenv("COLUMNS", "60")
    assert PlainConsole().width == 60
