"""What commands have in common that make reports of result files: from where, and how."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path

from conformance.engine.dispatch import Dispatcher
from conformance.engine.events import Event, Reporter
from conformance.errors import UsageError
from conformance.resultfile.read import result_file


def result_files(given: Sequence[Path], output: Path) -> list[Path]:
    """The result files that are named, or lie in the folders that are.

    Args:
        given: files and folders.
        output: where the reports go.

    Raises:
        UsageError: one of them is there, where the reports of an earlier run are removed.
    """
    files = [result_file(item) for item in given]
    if any(same_place(output, file.parent) for file in files):
        which = "the result file" if len(files) == 1 else "one of the files"
        raise UsageError(
            f"--output {output}: holds {which}, which would be lost; choose another folder"
        )
    return files


def same_place(one: Path, other: Path) -> bool:
    """Whether two paths lead to the same; of a link to itself Path.resolve makes an error."""
    return os.path.realpath(one) == os.path.realpath(other)


def retell(events: Iterable[Event], reporters: Sequence[Reporter]) -> None:
    """Tell reporters of a run that is over.

    Raises:
        ReportError: one of them failed.
    """
    dispatcher = Dispatcher(reporters, threading.Event())
    for event in events:
        dispatcher.dispatch(event)
    dispatcher.check()
