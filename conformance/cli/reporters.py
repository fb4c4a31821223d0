"""The reporters of a run, and replaying a result file to them."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from conformance.report.ci import GithubAnnotations, in_github
from conformance.report.files import DiagnosticsFolder, file_reporters
from conformance.report.folder import DIAGNOSTICS, RESULTS, OutputFolder
from conformance.report.pages import PAGES, write_pages
from conformance.report.terminal import PlainConsole, TerminalReporter
from conformance.results.events.dispatch import Dispatcher, Event, Reporter
from conformance.results.read import RecordedRun, result_file
from conformance.results.write import ResultFile
from kube.base.errors import UsageError
from kube.base.text import visible


@contextmanager
def open_reporters(
    folder: OutputFolder,
    *,
    verbose: bool = False,
    durations: int = 0,
    clock: Callable[[], float] = time.time,
) -> Iterator[list[Reporter]]:
    """Open all reporters of a run but the pages, which `finish_reports` makes.

    ``clock``: seconds since the epoch, for the times of Allure's results.
    """
    output = folder.path
    diagnostics = DiagnosticsFolder(output / DIAGNOSTICS)
    with ExitStack() as stack:
        results = stack.enter_context(closing(ResultFile(output / RESULTS)))
        terminal = TerminalReporter(
            live=False if os.environ.get("CI") or not sys.stdout.isatty() else None,
            diagnostics=diagnostics.folder_of,
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


def finish_reports(
    output: Path, result: RecordedRun | None = None, formats: Collection[str] = tuple(PAGES)
) -> None:
    """Write the pages, and print where the reports are once all are there. Raises ReportError."""
    write_pages(output, result, formats)
    PlainConsole().print(f"reports in {visible(str(output))}", soft_wrap=True)


def find_result_files(paths: Sequence[Path], output: Path) -> list[Path]:
    """Return the result files that are named, and those in the folders that are named.

    Raises:
        UsageError: one of them is in ``output``, where the reports of an earlier run are removed.
    """
    files = [result_file(path) for path in paths]
    if any(is_same_path(output, file.parent) for file in files):
        which = "the result file" if len(files) == 1 else "one of the files"
        raise UsageError(
            f"--output {output}: holds {which}, which would be lost; choose another folder"
        )
    return files


def is_same_path(path: Path, other: Path) -> bool:
    """Tell whether two paths are the same; Path.resolve fails on a link to itself."""
    return os.path.realpath(path) == os.path.realpath(other)


def retell(events: Iterable[Event], reporters: Sequence[Reporter]) -> None:
    """Send the events of a finished run to reporters. Raises ReportError: one of them failed."""
    dispatcher = Dispatcher(reporters, threading.Event())
    for event in events:
        dispatcher.dispatch(event)
    dispatcher.check()
