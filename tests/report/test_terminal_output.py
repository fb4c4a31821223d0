from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from rich.console import Console

from conformance.engine.events import Outcome, RunStopping, ScenarioStarted, StepStarted
from conformance.report.terminal import PlainConsole, TerminalReporter
from tests.report.builders import (
    HOSTILE,
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

VERDICTS = {"core/passing": "identical", "core/failing": "inadmissible"}


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


def report(
    used: Console,
    verdicts: Mapping[str, str] | None = VERDICTS,
    diagnostics: Callable[[str], Path | None] | None = None,
    **changes: object,
) -> str:
    scenarios, events, items = sample()
    reporter = TerminalReporter(used, verdicts=verdicts, diagnostics=diagnostics)
    play(reporter, stream(scenarios, events, items, **changes))  # type: ignore[arg-type]
    return text_of(used)


def test_plain_lines_the_table_failures_and_totals_at_80_columns() -> None:
    places = {"core/failing": Path("out/diagnostics/core/failing")}
    text = report(console(), diagnostics=places.get)
    check("terminal-80.txt", text)
    assert max(map(len, text.splitlines())) <= 80


def test_an_encoding_without_box_characters_gets_ascii() -> None:
    text = report(console("ascii"))
    check("terminal-ascii.txt", text)
    assert text.isascii()


def test_without_a_comparison_there_is_no_verdict_column() -> None:
    assert "verdict" not in report(console(), verdicts=None)


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
    reporter = TerminalReporter(used, verdicts={scenario.id: "[b]\x1b\u202e"}, verbose=True)
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
    used = console()
    scenario = planned()
    play(
        TerminalReporter(used),
        stream([scenario], [finished(scenario, Outcome.FAILED, "line\n" * 1_000_000)]),
    )
    text = text_of(used)
    assert len(text) < 5_000
    assert "more characters)" in text


def test_credentials_are_not_printed() -> None:
    used = console()
    scenario = planned()
    event = finished(scenario, Outcome.ERROR, "401: Bearer abcdef0123456789")
    play(TerminalReporter(used), stream([scenario], [event]))
    assert "abcdef" not in text_of(used)


def test_a_run_that_was_interrupted_says_so_and_counts_the_rest_as_lost() -> None:
    text = report(console(), end={"interrupted": True, "left": ("Namespace x",)})
    assert "1 lost" in text
    assert "interrupted: what had not run is counted as lost" in text
    assert "left behind: Namespace x; run `dra-conformance cleanup`" in text


def test_nothing_planned_is_not_called_a_success() -> None:
    used = console()
    play(TerminalReporter(used), stream([], []))
    assert "nothing ran in 60.00 s" in text_of(used)


def test_on_a_terminal_one_line_shows_counts_and_what_runs() -> None:
    used = console(tty=True)
    names = [f"core/{number}" for number in range(5)]
    reporter = TerminalReporter(used, live=True)
    reporter.handle(started([planned(name) for name in names]))
    reporter.handle(ScenarioStarted(planned("core/0"), "ns"))
    reporter.handle(StepStarted("core/0", 0, "apply\nPod"))
    assert reporter._progress().plain == "0/5  core/0: apply Pod"
    reporter.handle(finished("core/0", Outcome.FAILED, "no"))
    for name in names[1:]:
        reporter.handle(ScenarioStarted(planned(name), "ns"))
    assert reporter._progress().plain == "1/5 1 failed  core/1, core/2, core/3 +1"
    reporter.close()
    assert "\x1b[?25h" in text_of(used)  # the cursor is there again


def test_the_live_line_never_wraps() -> None:
    used = console(width=30, tty=True)
    reporter = TerminalReporter(used, live=True)
    reporter.handle(started([planned("core/" + "x" * 60)]))
    reporter.handle(ScenarioStarted(planned("core/" + "x" * 60), "ns"))
    assert len(reporter._progress().plain) < 30
    reporter.close()


def test_the_plain_line_shows_the_verdict_once_it_is_known() -> None:
    used = console()
    verdicts: dict[str, str] = {}
    reporter = TerminalReporter(used, verdicts=verdicts)
    reporter.handle(started([planned()]))
    verdicts["core/one"] = "admissible"
    reporter.handle(finished())
    assert "core/one  admissible" in text_of(used)


def test_what_the_comparison_found_is_told_also_of_a_scenario_that_passed() -> None:
    used = console()
    scenario = planned()
    notes = {"core/one": ("inadmissible: selector: [red]device[/red] a\x1b b",)}
    play(
        TerminalReporter(
            used, verdicts={"core/one": "inadmissible"}, notes=lambda name: notes.get(name, ())
        ),
        stream([scenario], [finished(scenario)]),
    )
    assert "compared core/one\n  inadmissible: selector: [red]device[/red] a\\x1b b\n" in text_of(
        used
    )


def test_a_long_id_is_folded_at_a_hyphen_and_stays_whole() -> None:
    name = "extended/opaque-configuration/claim-config-reaches-container-" + "x" * 60
    used = console()
    play(TerminalReporter(used, verdicts={}), stream([planned(name)], [finished(name)]))
    table = text_of(used).split("verdict")[1].splitlines()[2:]
    assert [line.split("  allocation")[0].rstrip() for line in table[:2]] == [
        "extended/opaque-configuration/claim-",
        "  config-reaches-container-",
    ]
    assert "".join(line[:36].strip() for line in table if line.strip()).startswith(name)
    assert all(len(line) <= 80 for line in table)


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


def test_a_closed_pipe_is_an_error_and_not_the_end_of_the_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read, write = os.pipe()
    os.close(read)
    stream = os.fdopen(write, "w")
    monkeypatch.setattr(sys, "stdout", stream)
    with pytest.raises(BrokenPipeError):
        TerminalReporter().handle(started([planned()]))
    os.dup2(os.open(os.devnull, os.O_WRONLY), write)
    stream.close()


@pytest.mark.parametrize("columns", ["0", "00", ""])
def test_a_terminal_without_columns_gets_the_usual_80(
    monkeypatch: pytest.MonkeyPatch, columns: str
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    assert PlainConsole().width == 80
    monkeypatch.setenv("COLUMNS", "60")
    assert PlainConsole().width == 60
