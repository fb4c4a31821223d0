"""What a person sees: progress while it runs, then the table, the failures and the totals.

On a terminal one live line shows the counts and the scenarios that run; elsewhere (a pipe, CI) each
scenario that ends gets a plain line. Nothing depends on colour or on characters beyond ASCII, and
no text that came from a target is taken for markup or reaches the terminal with its control
characters.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from rich.console import Console
from rich.live import Live
from rich.text import Text

from conformance.engine.events import (
    Event,
    Outcome,
    RunFinished,
    RunStarted,
    RunStopping,
    ScenarioFinished,
    ScenarioStarted,
    StepStarted,
)
from conformance.redaction import redact
from conformance.report.summary import (
    STYLES,
    Style,
    comparison_lines,
    failure_lines,
    summary_table,
    totals_line,
)
from conformance.resultfile.read import by_outcome
from conformance.text import visible

MAX_NAMES = 3
"""Scenarios named in the live line; the others are counted."""


class PlainConsole(Console):
    """Standard output without markup, in the two ways in which rich's own console does not do.

    A closed pipe is an error as any other (rich ends the process), and a terminal that claims to
    have no columns (COLUMNS=0) gets the default of 80 (rich prints nothing).
    """

    def __init__(self) -> None:
        surroundings = {
            name: value
            for name, value in os.environ.items()
            if name not in {"COLUMNS", "LINES"} or value.strip("0")
        }
        super().__init__(highlight=False, markup=False, emoji=False, _environ=surroundings)

    def on_broken_pipe(self) -> None:
        """Called while the BrokenPipeError is being handled."""
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))


class TerminalReporter:
    """A reporter for people.

    Args:
        console: where to print; None makes one on stdout. rich's own rules hold for it: no colour
            with NO_COLOR, no terminal behind a pipe.
        live: one line that changes in place; None decides (a terminal that can move its cursor).
            Give False where CI is set.
        verdicts: scenario id -> worst verdict of the comparison, filled while the run goes on;
            None leaves the column out.
        notes: scenario id -> what the comparison found, one line each (``Comparer.notes``).
        diagnostics: where a scenario's diagnostics were put, None where there are none.
        verbose: also print how each step went.
    """

    def __init__(
        self,
        console: Console | None = None,
        *,
        live: bool | None = None,
        verdicts: Mapping[str, str] | None = None,
        notes: Callable[[str], Sequence[str]] | None = None,
        diagnostics: Callable[[str], Path | None] | None = None,
        verbose: bool = False,
    ) -> None:
        self.console = console or PlainConsole()
        terminal = self.console.is_terminal and not self.console.is_dumb_terminal
        self._use_live = terminal if live is None else live
        self._style = Style.of(self.console.encoding)
        self._verdicts = verdicts
        self._notes = notes or (lambda _: ())
        self._diagnostics = diagnostics or (lambda _: None)
        self._verbose = verbose
        self._started: RunStarted | None = None
        self._running: dict[str, str] = {}
        self._finished: list[ScenarioFinished] = []
        self._live: Live | None = None
        self._ended = False

    def __str__(self) -> str:
        return "the terminal output"

    def handle(self, event: Event) -> None:
        """Show what the event says."""
        match event:
            case RunStarted():
                self._start(event)
            case ScenarioStarted():
                self._running[event.scenario.id] = ""
            case StepStarted() if event.scenario in self._running:
                self._running[event.scenario] = event.title
            case ScenarioFinished():
                self._running.pop(event.scenario.id, None)
                self._finished.append(event)
                self._scenario(event)
            case RunStopping():
                self._stopping(event)
            case RunFinished():
                self._finish(event)
            case _:
                return
        if self._live is not None:
            self._live.update(self._progress())

    def close(self) -> None:
        """Give the terminal back, also when the run broke off."""
        live, self._live = self._live, None
        if live is not None:
            with suppress(OSError):  # it is closed already
                live.stop()

    def _start(self, event: RunStarted) -> None:
        self._started = event
        dot = self._style.dot
        number = len(event.planned)
        parts = [
            f"dra-conformance {event.suite_version}",
            f"target {event.target}",
            f"Kubernetes {event.kubernetes_version}",
            f"driver {event.driver}" if event.driver else "no driver",
            f"{number} scenario{'' if number == 1 else 's'}",
        ]
        fit = self._style.fit
        self.console.print(Text(fit(f" {dot} ".join(parts))))
        if event.simulated:
            self.console.print(Text(fit("simulated: " + "; ".join(event.simulated)), style="dim"))
        if self._use_live:
            self._live = Live(
                self._progress(), console=self.console, refresh_per_second=4, transient=True
            )
            self._live.start()

    def _progress(self) -> Text:
        """The live line: counts, then the scenarios that run, cut to the terminal's width."""
        planned = len(self._started.planned) if self._started else 0
        line = Text(f"{len(self._finished)}/{planned}", style="bold", no_wrap=True)
        for outcome in (Outcome.FAILED, Outcome.ERROR, Outcome.SKIPPED):
            number = sum(1 for event in self._finished if event.outcome is outcome)
            if number:
                line.append(f" {number} {outcome}", style=STYLES[outcome])
        names = list(self._running)
        if len(names) == 1:
            step = self._running[names[0]]
            line.append(self._one_line(f"  {names[0]}: {step}" if step else f"  {names[0]}"))
        elif names:
            more = f" +{len(names) - MAX_NAMES}" if len(names) > MAX_NAMES else ""
            line.append(self._one_line("  " + ", ".join(names[:MAX_NAMES]) + more))
        line.truncate(max(1, self.console.width - 1), overflow="crop")
        return line

    def _one_line(self, text: str) -> str:
        return self._style.fit(text.replace("\n", " ").replace("\t", " "))

    def _scenario(self, event: ScenarioFinished) -> None:
        if self._live is None:
            planned = len(self._started.planned) if self._started else 0
            width = len(str(planned))
            line = Text(f"[{len(self._finished):>{width}}/{planned}] ")
            line.append(f"{event.outcome:<7}", style=STYLES[event.outcome])
            line.append(f" {event.seconds:7.2f} s  {visible(event.scenario.id)}")
            verdict = (self._verdicts or {}).get(event.scenario.id)
            if verdict:
                line.append(f"  {visible(verdict)}")
            self._print(line)
        if self._verbose:
            for step in event.steps:
                self._print(
                    Text(
                        f"    {step.outcome:<7} {step.seconds:7.2f} s  "
                        f"{visible(redact(step.title))}",
                        style=STYLES[step.outcome],
                    )
                )

    def _stopping(self, event: RunStopping) -> None:
        """Say at once that the end is near and what it waits for; that can take a minute."""
        if self._ended:
            return
        waiting = [
            f"{name} ({step})" if (step := self._running.get(name)) else name
            for name in event.running
        ]
        line = f"{event.reason}: no more scenarios are started; what was made is being removed"
        if waiting:
            line += f", as soon as these have stopped: {', '.join(waiting)}"
        self._print(Text(self._one_line(redact(line)), style="yellow"))

    def _finish(self, event: RunFinished) -> None:
        self._ended = True
        self.close()
        if self._started is None:
            return
        outcomes = by_outcome(self._started.planned, self._finished)
        self.console.print()
        self.console.print(
            summary_table(
                self._started,
                self._finished,
                outcomes,
                self._verdicts,
                self._style,
                self.console.width,
            )
        )
        for line in failure_lines(self._started, self._finished, outcomes, self._diagnostics):
            self._print(line)
        for line in comparison_lines(self._started, self._notes):
            self._print(line)
        self.console.print()
        self._print(totals_line(outcomes, event))
        if event.interrupted:
            self._print(Text("interrupted: what had not run is counted as lost", style="yellow"))
        if event.left:
            left = ", ".join(event.left)
            self._print(Text(visible(f"left behind: {left}; run `dra-conformance cleanup`")))

    def _print(self, text: Text) -> None:
        """Print one text; characters that the encoding lacks become ``?``."""
        encoding = self.console.encoding or "utf-8"
        plain = text.plain.encode(encoding, "replace").decode(encoding)
        if plain != text.plain and len(plain) == len(text.plain):
            text.plain = plain
        self.console.print(text, soft_wrap=True)
