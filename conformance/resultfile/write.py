"""Write the one result file of a run, as it goes.

The file is NDJSON (``records``): header, a line for each scenario that ended, the comparison where
there is one, a footer. Each line is on its way to the disk before the next
event is handled, so that after a kill -9 the file still says what had run, and the missing footer
says that it is not whole. ``load_results`` reads it again.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from conformance.engine.events import (
    Diagnostics,
    Event,
    RunFinished,
    RunStarted,
    ScenarioFinished,
)
from conformance.errors import UsageError
from conformance.redaction import redact_json
from conformance.resultfile.read import by_outcome
from conformance.resultfile.records import (
    ComparisonRecord,
    FooterRecord,
    HeaderRecord,
    PlannedRecord,
    Record,
    ScenarioRecord,
)
from conformance.text import public_path, public_text

_LOCAL = "<path>"


class ResultFile:
    """A reporter that writes the result file.

    Args:
        path: the file; its folder is made, an older file is replaced.
        comparison: asked once, before the footer; gives ``Comparison.to_json()`` or None.

    Raises:
        UsageError: the file cannot be written (when the run starts).
    """

    def __init__(
        self, path: Path, comparison: Callable[[], Mapping[str, Any] | None] | None = None
    ) -> None:
        self.path = path
        self._comparison = comparison
        self._file: IO[bytes] | None = None
        self._digest = hashlib.sha256()
        self._started: RunStarted | None = None
        self._finished: list[ScenarioFinished] = []
        self._diagnostics: dict[str, dict[str, str]] = {}

    def __str__(self) -> str:
        return f"the result file {self.path}"

    def __enter__(self) -> ResultFile:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def handle(self, event: Event) -> None:
        """Write the line that the event stands for, if any."""
        match event:
            case RunStarted():
                self._start(event)
            case Diagnostics():
                self._diagnostics.setdefault(event.scenario, {}).update(event.items)
            case ScenarioFinished():
                self._scenario(event)
            case RunFinished():
                self._finish(event)
            case _:
                pass

    def close(self) -> None:
        """Close the file as it is; without :class:`RunFinished` it has no footer."""
        if self._file is not None:
            self._file.close()
            self._file = None

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
        self._write(
            HeaderRecord(
                run=event.run,
                target=event.target,
                kubernetes_version=event.kubernetes_version,
                driver=event.driver,
                simulated=event.simulated,
                versions=dict(sorted(event.versions.items())),
                suite_version=event.suite_version,
                scenario_set_digest=event.scenario_set_digest,
                started_at=event.started_at,
                options=_without_paths(dict(sorted(event.options.items()))),
                planned=tuple(
                    PlannedRecord.of(item, file=public_path(item.file, item.id))
                    for item in event.planned
                ),
            )
        )

    def _scenario(self, event: ScenarioFinished) -> None:
        self._finished.append(event)
        record = ScenarioRecord.of(event, self._diagnostics.pop(event.scenario.id, None))
        file, name = event.scenario.file, event.scenario.id
        self._write(
            record.model_copy(
                update={
                    "where": public_text(record.where, file, name),
                    "message": public_text(record.message, file, name),
                }
            )
        )

    def _finish(self, event: RunFinished) -> None:
        if self._file is None or self._started is None:
            return
        comparison = self._comparison() if self._comparison else None
        if comparison is not None:
            self._write(ComparisonRecord(comparison=dict(comparison)))
        planned = self._started.planned
        counts = {key: len(ids) for key, ids in by_outcome(planned, self._finished).items()}
        self._write(
            FooterRecord(
                run=event.run,
                finished_at=event.finished_at,
                seconds=max(0.0, round(event.seconds, 6)),
                interrupted=event.interrupted,
                left=event.left,
                terminating=event.terminating,
                planned=len(planned),
                counts=counts,
                digest=f"sha256:{self._digest.hexdigest()}",
            )
        )
        os.fsync(self._file.fileno())
        self.close()

    def _write(self, record: Record) -> None:
        if self._file is None:
            return
        # ASCII: no reader stumbles over U+2028 or a surrogate. One line, whatever is in it.
        line = json.dumps(
            redact_json(record.to_json()), ensure_ascii=True, allow_nan=False, sort_keys=False
        )
        data = line.encode("ascii") + b"\n"
        self._digest.update(data)
        try:
            self._file.write(data)
            self._file.flush()
        except OSError:
            self._abandon()
            raise

    def _abandon(self) -> None:
        """Close the file without what it could not take: closing would try, and fail, again."""
        file, self._file = self._file, None
        if file is not None:
            with suppress(OSError):
                file.close()


def _without_paths(value: Any) -> Any:
    """Options without local folders: an absolute path says more of a machine than of a run."""
    if isinstance(value, Mapping):
        return {str(key): _without_paths(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        items = sorted(value, key=str) if isinstance(value, set | frozenset) else value
        return [_without_paths(item) for item in items]
    if isinstance(value, os.PathLike):
        return _LOCAL
    if isinstance(value, str):
        return _LOCAL if value.startswith(("/", "~")) else value
    if value is None or isinstance(value, bool | int | float):
        return value
    return str(value)
