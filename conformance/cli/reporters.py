"""The reporters of a run, for commands that make all reports."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager

from conformance.engine.events import Reporter
from conformance.report.diagnostics import DiagnosticsFolder
from conformance.report.files import file_reporters
from conformance.report.folder import DIAGNOSTICS, RESULTS, OutputFolder
from conformance.report.github import GithubAnnotations, in_github
from conformance.report.terminal import PlainConsole, TerminalReporter
from conformance.resultfile.write import ResultFile
from conformance.text import visible


@contextmanager
def reporters(
    folder: OutputFolder,
    *,
    verbose: bool = False,
    durations: int = 0,
    clock: Callable[[], float] = time.time,
) -> Iterator[list[Reporter]]:
    """All that a run is told to; at the end it is said where the reports are.

    Args:
        verbose: show every step.
        durations: how many of the slowest scenarios to name.
        clock: seconds since the epoch, for the times of Allure's results.
    """
    output = folder.path
    diagnostics = DiagnosticsFolder(output / DIAGNOSTICS)
    with ExitStack() as stack:
        results = stack.enter_context(closing(ResultFile(output / RESULTS)))
        terminal = TerminalReporter(
            live=False if os.environ.get("CI") or not sys.stdout.isatty() else None,
            diagnostics=diagnostics.place,
            verbose=verbose,
            durations=durations,
        )
        stack.callback(terminal.close)
        yield [
            folder,
            results,
            *file_reporters(output, diagnostics, clock),
            terminal,
            *([GithubAnnotations(terminal.console)] if in_github(os.environ) else ()),
        ]
    PlainConsole().print(f"reports in {visible(str(output))}", soft_wrap=True)
