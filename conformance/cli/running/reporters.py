"""The reporters of a run, replaying a result file to them, and the text of ``run --dry-run``."""

from __future__ import annotations

import os
import sys
import textwrap
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from conformance.engine.plan import Plan
from conformance.report.ci import GithubAnnotations, in_github
from conformance.report.files import DiagnosticsFolder, file_reporters
from conformance.report.folder import DIAGNOSTICS, RESULTS, OutputFolder
from conformance.report.pages import PAGES, write_pages
from conformance.report.terminal import PlainConsole, TerminalReporter
from conformance.results.events.dispatch import Dispatcher, Event, Reporter
from conformance.results.read import RecordedRun, result_file
from conformance.results.write import ResultFile
from conformance.targets.opening.target import Opened
from kube.base.errors import UsageError
from kube.base.text import counted, visible
from kube.nodes import RUN_LABEL
from reference_allocator.api.schema import CLUSTER_SCOPED


def planned_lines(plans: Sequence[Plan], opened: Opened, run: str) -> Iterator[str]:
    """The lines of a terminal of 80 columns, without colour."""
    made, skipped = Counter[str](), 0
    for item in plans:
        made += item.objects
        skipped += bool(item.skipped)
        yield f"{'skip' if item.skipped else 'run '}  {item.id}"
        yield from _indented(item.skipped or _listed(item.objects))
        yield from _indented(f"would {fault}" for fault in item.disturbed)
    capabilities = opened.capabilities
    yield ""
    yield from textwrap.wrap(
        f"would run {counted(len(plans) - skipped, 'scenario')} and skip {skipped} on Kubernetes"
        f" {capabilities.kubernetes_version}, target {opened.target.name}",
        79,
    )
    everywhere = {kind: number for kind, number in made.items() if kind in CLUSTER_SCOPED}
    yield f"would make, each with the label {RUN_LABEL}={run}:"
    yield from _indented(f"cluster-wide: {_listed(everywhere)}")
    own = {kind: number for kind, number in made.items() if kind not in CLUSTER_SCOPED}
    yield from _indented(f"in namespaces of the run: {_listed(own)}")
    profile = opened.profile
    if profile is not None and profile.driver == capabilities.driver:
        both = [profile, *([opened.other] if opened.other is not None else [])]
        names = ", ".join(entry.name for one in both for entry in one.spec.classes.values())
        yield from _indented(f"where it is not there: DeviceClass {names}")
    yield "nothing was made"


def _listed(kinds: Mapping[str, int]) -> str:
    return ", ".join(f"{number} {kind}" for kind, number in sorted(kinds.items())) or "nothing"


def _indented(texts: str | Iterator[str]) -> Iterator[str]:
    for text in [texts] if isinstance(texts, str) else texts:
        yield from textwrap.wrap(text, 79, initial_indent="      ", subsequent_indent="      ")


@contextmanager
def reporters(
    folder: OutputFolder,
    *,
    verbose: bool = False,
    durations: int = 0,
    clock: Callable[[], float] = time.time,
) -> Iterator[list[Reporter]]:
    """All reporters of a run but the pages, which `finish_reports` makes.

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


def result_files(given: Sequence[Path], output: Path) -> list[Path]:
    """The given result files, and those in the given folders.

    Raises:
        UsageError: one of them is in ``output``, where the reports of an earlier run are removed.
    """
    files = [result_file(item) for item in given]
    if any(same_place(output, file.parent) for file in files):
        which = "the result file" if len(files) == 1 else "one of the files"
        raise UsageError(
            f"--output {output}: holds {which}, which would be lost; choose another folder"
        )
    return files


def same_place(one: Path, other: Path) -> bool:
    """Whether two paths are the same; Path.resolve fails on a link to itself."""
    return os.path.realpath(one) == os.path.realpath(other)


def retell(events: Iterable[Event], reporters: Sequence[Reporter]) -> None:
    """Send the events of a finished run to reporters. Raises ReportError: one of them failed."""
    dispatcher = Dispatcher(reporters, threading.Event())
    for event in events:
        dispatcher.dispatch(event)
    dispatcher.check()
