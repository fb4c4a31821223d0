"""What a person sees: a line for each scenario that ends, then the failures and what it all means.

On a terminal a live line below them shows the counts and what runs. Nothing depends on colour or on
characters beyond ASCII, and no text that came from a target is taken for markup or reaches the
terminal with its control characters.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from rich.console import Console
from rich.live import Live
from rich.text import Text

from conformance.report.summary import STYLES, closing_lines, one_line
from conformance.results.events.dispatch import Event
from conformance.results.events.result import RunCollector
from conformance.results.events.run import RunFinished, RunStarted, RunStopping
from conformance.results.events.scenario import (
    Outcome,
    ScenarioFinished,
    ScenarioStarted,
    StepStarted,
)
from kube.base.redaction import redact
from kube.base.text import counted, visible

MAX_NAMES = 3  # Scenarios named in the live line; the others are counted.


class PlainConsole(Console):
    """Standard output without markup, and two corrections to rich's own console.

    Behind a closed pipe (``| head``) nothing more is printed (rich ends the process). A terminal
    that claims to have no columns (COLUMNS=0) gets the default of 80 (rich prints nothing).
    """

    def __init__(self) -> None:
        surroundings = {
            name: value
            for name, value in os.environ.items()
            if name not in {"COLUMNS", "LINES"} or value.strip("0")
        }
        super().__init__(highlight=False, markup=False, emoji=False, _environ=surroundings)

    def on_broken_pipe(self) -> None:
        """Discard further output: a run goes on when the reader of its output has gone."""
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self.file.fileno())
        os.close(nowhere)


class TerminalReporter:
    """A reporter for people.

    Attributes:
        console: by default on stdout, with rich's rules: no colour with NO_COLOR or behind a pipe.
        live: one line that changes in place; None decides (a terminal that can move its cursor).
            Give False where CI is set.
        diagnostics: where a scenario's diagnostics are, None where there are none.
        verbose: also print how each step went.
    """

    def __init__(
        self,
        console: Console | None = None,
        *,
        live: bool | None = None,
        diagnostics: Callable[[str], Path | None] = lambda _: None,
        verbose: bool = False,
        durations: int = 0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.console = console or PlainConsole()
        terminal = self.console.is_terminal and not self.console.is_dumb_terminal
        self._use_live = terminal if live is None else live
        self._diagnostics = diagnostics
        self._verbose = verbose
        self._durations = durations
        self._clock = clock
        self._began = clock()
        self._collector = RunCollector()
        self._running: dict[str, str] = {}
        self._live: Live | None = None

    def __str__(self) -> str:
        return "the terminal output"

    def handle(self, event: Event) -> None:
        self._collector.handle(event)
        match event:
            case RunStarted():
                self._start(event)
            case ScenarioStarted():
                self._running[event.scenario.id] = ""
            case StepStarted() if event.scenario in self._running:
                self._running[event.scenario] = event.title
            case ScenarioFinished():
                self._running.pop(event.scenario.id, None)
                self._scenario(event)
            case RunStopping():
                self._stopping(event)
            case RunFinished():
                self._finish()
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
        about = [
            f"dra-conformance {event.suite_version}",
            counted(len(event.planned), "scenario"),
            f"Kubernetes {event.kubernetes_version}",
            f"target {event.target}",
            f"driver {event.driver}" if event.driver else "no driver",
        ]
        self._print(Text(visible(", ".join(about))))
        if event.simulated:
            self._print(Text(visible(f"simulated: {'; '.join(event.simulated)}"), style="dim"))
        if "rules" in event.versions:
            self._print(Text(visible(f"judged by rules: {event.versions['rules']}"), style="dim"))
        if event.scheduler_version:
            text = f"scheduler judged by rules: those of Kubernetes {event.scheduler_version}"
            self._print(Text(visible(text), style="dim"))
        if event.resumed:
            self._print(Text(visible(f"resumed {event.resumption}"), style="dim"))
        self._began = self._clock()
        if self._use_live:
            self._live = Live(
                self._progress(),
                console=self.console,
                refresh_per_second=4,
                transient=True,
                get_renderable=self._progress,
            )
            self._live.start()

    def _progress(self) -> Text:
        """The live line: time, counts, then what runs, cut to the terminal's width."""
        planned = len(self._collector.run.planned) if self._collector.run else 0
        finished = [event.outcome for event in self._collector.finished]
        minutes, seconds = divmod(int(self._clock() - self._began), 60)
        line = Text(f"{minutes}:{seconds:02d}  ", no_wrap=True)
        line.append(f"{len(finished)}/{planned}", style="bold")
        for outcome in Outcome:
            number = finished.count(outcome)
            if number and outcome is not Outcome.LOST:
                line.append(f" {number} {outcome}", style=STYLES[outcome])
        names = list(self._running)
        if len(names) == 1:
            step = self._running[names[0]]
            line.append(self._one_line(f"  {names[0]}: {step}" if step else f"  {names[0]}"))
        elif names:
            # The folder says less than the name, and a line is short.
            short = [name.rpartition("/")[2] for name in names[:MAX_NAMES]]
            remainder = f" +{len(names) - MAX_NAMES}" if len(names) > MAX_NAMES else ""
            line.append(self._one_line("  " + ", ".join(short) + remainder))
        line.truncate(max(1, self.console.width - 1), overflow="crop")
        return line

    def _one_line(self, text: str) -> str:
        return self._encoded(visible(text.replace("\n", " ").replace("\t", " ")))

    def _scenario(self, event: ScenarioFinished) -> None:
        if event.outcome is Outcome.LOST:
            return  # the end names some of them; nothing is to be seen in the others
        planned = len(self._collector.run.planned) if self._collector.run else 0
        line = Text(f"[{len(self._collector.finished):>{len(str(planned))}}/{planned}] ")
        line.append(f"{event.outcome:<7}", style=STYLES[event.outcome])
        line.append(f" {event.seconds:7.2f} s  {visible(event.scenario.id)}")
        compared = self._collector.compared.get(event.scenario.id)
        if compared is not None and compared.in_short:
            line.append(
                f"  {compared.in_short}",
                style="" if compared.conformant else STYLES[Outcome.FAILED],
            )
        self._print(line)
        unwell = event.outcome not in (Outcome.PASSED, Outcome.SKIPPED)
        if self._live is not None and unwell and event.message:  # a file has it once, at the end
            self._print(Text(f"    {one_line(event.message.partition(chr(10))[0])}"))
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
        """Report at once that the run is stopping and what it waits for, up to a minute."""
        if self._collector.footer is not None:
            return
        waiting = [
            f"{name} ({step})" if (step := self._running.get(name)) else name
            for name in event.running
        ]
        line = f"{event.reason}: no more scenarios are started; what was made is being removed"
        if waiting:
            line += f", as soon as these have stopped: {', '.join(waiting)}"
        self._print(Text(self._one_line(redact(line)), style="yellow"))

    def _finish(self) -> None:
        self.close()
        if self._collector.run is None:
            return
        for line in closing_lines(self._collector.result(), self._diagnostics, self._durations):
            self._print(line)

    def _print(self, text: Text) -> None:
        text.plain = self._encoded(text.plain)
        self.console.print(text, soft_wrap=True)

    def _encoded(self, text: str) -> str:
        """The text with ``?`` for each character that the terminal's encoding lacks."""
        encoding = self.console.encoding or "utf-8"
        return text.encode(encoding, "replace").decode(encoding)
