"""The end of a terminal report: the table, the failures, the totals; readable at 80 columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich import box
from rich.table import Table
from rich.text import Text

from conformance.compare.judging import Verdict
from conformance.engine.events import Outcome, RunFinished, RunStarted, ScenarioFinished
from conformance.redaction import redact
from conformance.text import shorten, visible

MAX_LINES = 40
MAX_CHARACTERS = 4_000
"""Of one message on the terminal; the result file has it whole."""

STYLES: Mapping[Outcome, str] = {
    Outcome.PASSED: "green",
    Outcome.FAILED: "bold red",
    Outcome.ERROR: "bold magenta",
    Outcome.SKIPPED: "yellow",
    Outcome.LOST: "bold magenta",
}
# Told in one line each: there may be many, and nothing is to be found out about them.
_BRIEF = (Outcome.LOST, Outcome.SKIPPED)
_ASCII_BOX = box.Box("    \n    \n -- \n    \n    \n    \n    \n    \n", ascii=True)


@dataclass(frozen=True, slots=True)
class Style:
    """How to draw: with box characters, or with ASCII where the encoding has no others."""

    box: box.Box
    dot: str
    encoding: str

    @classmethod
    def of(cls, encoding: str | None) -> Style:
        """The style for a terminal's encoding."""
        name = (encoding or "ascii").lower().replace("_", "-")
        if name.startswith("utf"):
            return cls(box.SIMPLE_HEAD, "\u00b7", name)
        return cls(_ASCII_BOX, "-", name)

    def fit(self, text: str) -> str:
        """The text with ``?`` for what the encoding lacks, without control characters."""
        return visible(text).encode(self.encoding, "replace").decode(self.encoding)


def summary_table(
    started: RunStarted,
    finished: Sequence[ScenarioFinished],
    outcomes: Mapping[Outcome, Sequence[str]],
    verdicts: Mapping[str, str] | None,
    style: Style,
    width: int = 80,
) -> Table:
    """One row for each planned scenario, sorted by id; a verdict column where one was compared."""
    table = Table(box=style.box, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
    table.add_column("scenario", overflow="fold")
    # These keep their width; a long id is folded instead. No ellipsis: ASCII has none.
    table.add_column("tier", no_wrap=True, overflow="crop", min_width=10)
    table.add_column("outcome", no_wrap=True, overflow="crop", min_width=7)
    table.add_column("seconds", justify="right", no_wrap=True, overflow="crop", min_width=7)
    if verdicts is not None:
        table.add_column("verdict", no_wrap=True, overflow="crop", min_width=12, max_width=12)
    room = width - (42 if verdicts is not None else 28) - 2
    seconds = {event.scenario.id: event.seconds for event in finished}
    outcome_of = {key: outcome for outcome, keys in outcomes.items() for key in keys}
    for scenario in sorted(started.planned, key=lambda item: item.id):
        outcome = outcome_of[scenario.id]
        taken = _seconds(seconds[scenario.id]) if scenario.id in seconds else "-"
        row = [
            Text("\n  ".join(_folded(style.fit(scenario.id), max(room, 12)))),
            Text(style.fit(scenario.tier)),
            Text(str(outcome), style=STYLES[outcome]),
            Text(taken),
        ]
        if verdicts is not None:
            verdict = verdicts.get(scenario.id, "-")
            row.append(
                Text(style.fit(verdict), style="bold red" if Verdict.is_bad(verdict) else "")
            )
        table.add_row(*row)
    return table


def _seconds(value: float) -> str:
    """Three digits behind the point where they say something."""
    return f"{value:.3f}" if value < 1 else f"{value:.2f}"


def _folded(text: str, room: int) -> Iterator[str]:
    """The parts of an id that fit into ``room``, broken after ``-`` or ``/`` where that can be."""
    while len(text) > room:
        place = max(text.rfind(mark, 0, room) for mark in "-/") + 1
        place = place if place > room // 2 else room
        yield text[:place]
        text = text[place:]
    yield text


def failure_lines(
    started: RunStarted,
    finished: Sequence[ScenarioFinished],
    outcomes: Mapping[Outcome, Sequence[str]],
    diagnostics: Callable[[str], Path | None],
) -> Iterator[Text]:
    """For each scenario that did not pass: what, where, why, and where the diagnostics are."""
    events = {event.scenario.id: event for event in finished}
    files = {item.id: f"{item.file}:{item.line}" for item in started.planned}
    for outcome in (Outcome.FAILED, Outcome.ERROR, Outcome.LOST, Outcome.SKIPPED):
        if outcome in _BRIEF and outcomes[outcome]:
            yield Text()
        for name in outcomes[outcome]:
            event = events.get(name)
            message = event.message if event else ""
            if outcome is Outcome.LOST and not message:
                message = "planned, and never reported"
            if outcome in _BRIEF:
                yield _headline(outcome, name, _one_line(message))
                continue
            yield Text()
            yield _headline(outcome, name, "")
            where = event.where if event and event.where else files.get(name, "")
            if where:
                yield Text(f"  at {visible(where)}")
            text = shorten(visible(redact(message)), MAX_LINES, MAX_CHARACTERS)
            for line in text.split("\n") if text else []:
                yield Text(f"  {line}")
            if event and event.left:
                yield Text("  left behind: " + visible(", ".join(event.left)))
            place = diagnostics(name)
            if place is not None:
                yield Text(f"  diagnostics: {visible(str(place))}")


def comparison_lines(started: RunStarted, notes: Callable[[str], Sequence[str]]) -> Iterator[Text]:
    """What the comparison found in each scenario, also in those that passed."""
    for scenario in sorted(started.planned, key=lambda item: item.id):
        found = notes(scenario.id)
        if found:
            yield Text()
            yield Text.assemble("compared ", (visible(scenario.id), "bold"))
        for note in found:
            yield Text("  " + _one_line(note))


def totals_line(outcomes: Mapping[Outcome, Sequence[str]], ended: RunFinished) -> Text:
    """``12 passed, 1 failed in 3.20 s``; outcomes that did not occur are left out."""
    line = Text()
    for outcome in Outcome:
        number = len(outcomes[outcome])
        if number:
            line.append(", " if line.plain else "")
            line.append(f"{number} {outcome}", style=STYLES[outcome])
    return line.append(f"{' ' if line.plain else 'nothing ran '}in {ended.seconds:.2f} s")


def _headline(outcome: Outcome, name: str, rest: str) -> Text:
    line = Text(f"{outcome} ", style=STYLES[outcome])
    line.append(visible(name), style="bold")
    return line.append(f": {rest}" if rest else "", style="")


def _one_line(message: str) -> str:
    return shorten(visible(redact(message)).replace("\n", " "), 1, 1_000)
