"""Write the one result file of a run, as it goes.

Each line (``lines``) is on its way to the disk before the next event is handled, so that after a
kill -9 the file still says what had run, and the missing footer says that it is not whole.
``load_results`` reads it again.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

from conformance.engine.events import (
    Diagnostics,
    Event,
    RunFinished,
    RunStarted,
    ScenarioFinished,
)
from conformance.engine.result import by_outcome
from conformance.engine.verdicts import ScenarioCompared
from conformance.errors import UsageError
from conformance.redaction import redact_json
from conformance.resultfile.lines import Json, to_line
from conformance.text import public_path, public_text

_LOCAL = re.compile(r"(?:(?<=\s)|(?<==)|^)[/~][^\s=]*/")
"""The folder of an absolute path, in an option or between the words of one."""


class ResultFile:
    """A reporter that writes the result file.

    Args:
        path: the file; its folder is made, an older file is replaced.

    Raises:
        UsageError: the file cannot be written (when the run starts).
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: IO[bytes] | None = None
        self._digest = hashlib.sha256()
        self._started: RunStarted | None = None
        self._finished: list[ScenarioFinished] = []

    def __str__(self) -> str:
        return f"the result file {self.path}"

    def handle(self, event: Event) -> None:
        """Write the line that the event stands for, if any."""
        match event:
            case RunStarted():
                self._start(event)
            case Diagnostics() | ScenarioCompared():
                self._write(to_line(event))
            case ScenarioFinished():
                self._finished.append(event)
                self._write(to_line(_public(event)))
            case RunFinished() if self._started is not None:
                self._finish(self._started, event)
            case _:
                pass

    def close(self) -> None:
        """Close the file as it is; without :class:`RunFinished` it has no footer."""
        file, self._file = self._file, None
        if file is not None:
            with suppress(OSError):  # What it could not take was told when it was written.
                file.close()

    def _start(self, event: RunStarted) -> None:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = self.path.open("wb")
        except OSError as error:
            raise UsageError(
                f"{self.path}: cannot be written: {error.strerror}; choose another place for the"
                " result file"
            ) from None
        self._started = event
        planned = tuple(
            replace(item, file=public_path(item.file, item.id)) for item in event.planned
        )
        options = _without_folders(dict(sorted(event.options.items())))
        self._write(to_line(replace(event, planned=planned, options=options)))

    def _finish(self, started: RunStarted, event: RunFinished) -> None:
        outcomes = by_outcome(started.planned, self._finished)
        counts = {str(outcome): len(ids) for outcome, ids in outcomes.items()}
        line = to_line(replace(event, counts=counts, seconds=round(event.seconds, 6)))
        self._write(line | {"digest": f"sha256:{self._digest.hexdigest()}"})
        if self._file is not None:
            os.fsync(self._file.fileno())
        self.close()

    def _write(self, line: Json) -> None:
        if self._file is None:
            return
        # ASCII: no reader stumbles over U+2028 or a surrogate. One line, whatever is in it.
        text = json.dumps(redact_json(line), ensure_ascii=True, allow_nan=False, sort_keys=False)
        data = text.encode("ascii") + b"\n"
        self._digest.update(data)
        try:
            self._file.write(data)
            self._file.flush()
        except OSError:
            self.close()
            raise


def _public(event: ScenarioFinished) -> ScenarioFinished:
    """The scenario without local folders, its times to the microsecond."""
    file, name = event.scenario.file, event.scenario.id
    return replace(
        event,
        where=public_text(event.where, file, name),
        message=public_text(event.message, file, name),
        seconds=round(event.seconds, 6),
        steps=tuple(replace(step, seconds=round(step.seconds, 6)) for step in event.steps),
    )


def _without_folders(value: Any) -> Any:
    """Options without local folders: an absolute path says more of a machine than of a run."""
    if isinstance(value, Mapping):
        return {str(key): _without_folders(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_folders(item) for item in value]
    if isinstance(value, str | os.PathLike):
        return _LOCAL.sub("<path>/", os.fspath(value))
    return value
