"""Read a result file, and tell apart the ways in which one can be wrong.

A file that was cut off, edited or put together from two runs must never be taken for a good one.
Each way has an error of its own (``resulterrors``), and each message names ``file:line`` and what
to do.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from conformance.engine.events import (
    Outcome,
    PlannedScenario,
    RunFinished,
    RunStarted,
    ScenarioFinished,
)
from conformance.resultfile.errors import (
    DigestMismatchError,
    DuplicateRecordError,
    EmptyResultFileError,
    MalformedResultFileError,
    ResultFileError,
    TruncatedResultFileError,
    UnknownVersionError,
    UnreadableResultFileError,
)
from conformance.resultfile.records import (
    API_VERSION,
    LINE,
    ComparisonRecord,
    FooterRecord,
    HeaderRecord,
    ScenarioRecord,
)
from conformance.resultfile.strictjson import loads

__all__ = [
    "DigestMismatchError",
    "DuplicateRecordError",
    "EmptyResultFileError",
    "MalformedResultFileError",
    "ResultFileError",
    "RunResult",
    "TruncatedResultFileError",
    "UnknownVersionError",
    "UnreadableResultFileError",
    "by_outcome",
    "load_results",
]


@dataclass(frozen=True, slots=True)
class RunResult:
    """All that a result file says.

    Attributes:
        run: the header.
        finished: the scenarios that ended, in the order in which they did.
        diagnostics: scenario id -> name -> text.
        comparison: ``Comparison.to_json()`` of the run, None without one.
        footer: None only where ``load_results`` was told to take a truncated file.
        digest: ``sha256:`` of the whole file.
        path: of the file, as it was given.
        lines: kind of record and scenario id (empty where there is none) -> line number.
    """

    run: RunStarted
    finished: tuple[ScenarioFinished, ...]
    diagnostics: Mapping[str, Mapping[str, str]]
    comparison: Mapping[str, Any] | None
    footer: RunFinished | None
    digest: str
    path: str = "results"
    lines: Mapping[tuple[str, str], int] = field(default_factory=dict)

    def where(self, record: str, scenario: str = "") -> str:
        """``file:line`` of a record, the file alone where it has none of that kind."""
        line = self.lines.get((record, scenario))
        return self.path if line is None else f"{self.path}:{line}"

    @property
    def lost(self) -> tuple[PlannedScenario, ...]:
        """Planned scenarios without a result, those reported as lost included; sorted by id."""
        ids = set(by_outcome(self.run.planned, self.finished)[Outcome.LOST])
        return tuple(sorted((s for s in self.run.planned if s.id in ids), key=lambda s: s.id))

    @property
    def counts(self) -> dict[Outcome, int]:
        """Outcome -> how many, every outcome present, counted from the lines."""
        outcomes = by_outcome(self.run.planned, self.finished)
        return {outcome: len(ids) for outcome, ids in outcomes.items()}


def by_outcome(
    planned: Sequence[PlannedScenario], finished: Sequence[ScenarioFinished]
) -> dict[Outcome, tuple[str, ...]]:
    """Outcome -> sorted scenario ids, every outcome present.

    A planned scenario without a result is ``lost``; one that passed and whose cleanup failed is
    ``failed``, whatever was reported: a cleanup that lies is a known trap of such suites.
    """
    outcomes: dict[str, Outcome] = {item.id: Outcome.LOST for item in planned}
    for event in finished:
        outcome = event.outcome
        if outcome is Outcome.PASSED and event.cleanup not in (Outcome.PASSED, Outcome.SKIPPED):
            outcome = Outcome.FAILED
        outcomes[event.scenario.id] = outcome
    return {
        outcome: tuple(sorted(key for key, value in outcomes.items() if value is outcome))
        for outcome in Outcome
    }


def load_results(path: Path, *, truncated_ok: bool = False) -> RunResult:
    """Read and check a result file.

    Args:
        path: the file.
        truncated_ok: take a file without footer for what it is: everything that has no result is
            lost. A last line that was cut off in the middle is then left out.

    Raises:
        ResultFileError: one of its kinds, which say what is wrong.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise UnreadableResultFileError(
            f"{path}: cannot be read: {error.strerror}; give the result file of a run"
        ) from None
    if not content.strip():
        raise EmptyResultFileError(f"{path}: is empty; nothing was run, or the disk was full")
    return _Reader(path, content, truncated_ok).read()


class _Reader:
    def __init__(self, path: Path, content: bytes, truncated_ok: bool) -> None:
        self.path = path
        self.content = content
        self.truncated_ok = truncated_ok
        self.header: HeaderRecord | None = None
        self.planned: dict[str, PlannedScenario] = {}
        self.scenarios: dict[str, ScenarioRecord] = {}
        self.comparison: ComparisonRecord | None = None
        self.footer: FooterRecord | None = None
        self.numbers: dict[tuple[str, str], int] = {}

    def read(self) -> RunResult:
        for number, offset, line in self._lines():
            self._take(number, offset, self._parse(number, line))
        if self.header is None:
            raise TruncatedResultFileError(f"{self.path}:1: was cut off in its header; run again")
        if self.footer is None and not self.truncated_ok:
            lost = len(self.planned) - len(self.scenarios)
            raise TruncatedResultFileError(
                f"{self.path}: has no footer, so the run was killed or the file was cut off"
                f" ({lost} of {len(self.planned)} planned scenarios have no result); run again"
            )
        result = RunResult(
            run=self.header.to_event(),
            finished=tuple(r.to_event(self.planned[r.id]) for r in self.scenarios.values()),
            diagnostics={r.id: r.diagnostics for r in self.scenarios.values() if r.diagnostics},
            comparison=self.comparison.comparison if self.comparison else None,
            footer=self.footer.to_event() if self.footer else None,
            digest=f"sha256:{hashlib.sha256(self.content).hexdigest()}",
            path=str(self.path),
            lines=self.numbers,
        )
        if self.footer:
            self._check_counts(result, self.footer)
        return result

    def _lines(self) -> Iterator[tuple[int, int, bytes]]:
        """Line number, offset of its first byte, the line without its end."""
        offset = 0
        for number, line in enumerate(self.content.split(b"\n"), start=1):
            if line.strip():
                yield number, offset, line
            offset += len(line) + 1

    def _parse(self, number: int, line: bytes) -> dict[str, Any] | None:
        """The document of a line; None for a last line that was cut off."""
        try:
            document = loads(line)
        except (ValueError, RecursionError) as error:
            if self.footer is None and self._is_last(number):
                return None
            raise MalformedResultFileError(
                f"{self.path}:{number}: is not JSON as a run writes it ({_short(str(error))}); the"
                " file was changed"
            ) from None
        if not isinstance(document, dict):
            raise MalformedResultFileError(f"{self.path}:{number}: is not a JSON object")
        return document

    def _is_last(self, number: int) -> bool:
        return number == self.content.count(b"\n") + 1  # a whole line ends with a newline

    def _take(self, number: int, offset: int, document: dict[str, Any] | None) -> None:
        if document is None:
            return
        where = f"{self.path}:{number}"
        if self.footer is not None:
            raise MalformedResultFileError(f"{where}: follows the footer; keep one run to a file")
        if number == 1 or self.header is None:
            self._check_version(where, document)
        try:
            record = LINE.validate_python(document)
        except ValidationError as error:
            raise MalformedResultFileError(f"{where}: {_first(error)}") from None
        name = record.id if isinstance(record, ScenarioRecord) else ""
        self.numbers[record.record, name] = number
        if isinstance(record, HeaderRecord):
            self._take_header(where, record)
        elif isinstance(record, ScenarioRecord):
            self._take_scenario(where, record)
        elif isinstance(record, ComparisonRecord):
            if self.comparison is not None:
                raise DuplicateRecordError(f"{where}: a second comparison; keep one run to a file")
            self.comparison = record
        else:
            self._take_footer(where, offset, record)

    def _check_version(self, where: str, document: Mapping[str, Any]) -> None:
        if document.get("record") != "header":
            raise MalformedResultFileError(
                f"{where}: the first line is no header; give the JSON result file of a run"
            )
        if document.get("apiVersion") != API_VERSION:
            raise UnknownVersionError(
                f"{where}: $.apiVersion is {_short(repr(document.get('apiVersion')))}, this suite"
                f" reads {API_VERSION}; use the version of the suite that wrote the file"
            )

    def _take_header(self, where: str, record: HeaderRecord) -> None:
        if self.header is not None:
            raise DuplicateRecordError(f"{where}: a second header; keep one run to a file")
        self.header = record
        for item in record.planned:
            if item.id in self.planned:
                raise DuplicateRecordError(f"{where}: scenario {item.id} is planned twice")
            self.planned[item.id] = item.to_event()

    def _take_scenario(self, where: str, record: ScenarioRecord) -> None:
        if record.id in self.scenarios:
            raise DuplicateRecordError(f"{where}: scenario {record.id} has a second result")
        if record.id not in self.planned:
            raise MalformedResultFileError(f"{where}: scenario {record.id} was not planned")
        self.scenarios[record.id] = record

    def _take_footer(self, where: str, offset: int, record: FooterRecord) -> None:
        digest = f"sha256:{hashlib.sha256(self.content[:offset]).hexdigest()}"
        if record.digest != digest:
            raise DigestMismatchError(
                f"{where}: the footer's digest is not that of the lines before it; the file was"
                " changed after the run"
            )
        if self.header is None or record.run != self.header.run:
            raise DigestMismatchError(f"{where}: the footer belongs to another run")
        self.footer = record

    def _check_counts(self, result: RunResult, footer: FooterRecord) -> None:
        if footer.counts != result.counts or footer.planned != len(self.planned):
            raise DigestMismatchError(
                f"{self.path}: the footer's counts are not those of the lines before it; the file"
                " was changed after the run"
            )


def _first(error: ValidationError) -> str:
    """The first of the model's complaints, with its path."""
    detail = error.errors(include_url=False, include_input=False)[0]
    # The discriminator puts the record's name in front; the path in the line begins after it.
    path = "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in detail["loc"][1:])
    return f"${path}: {_short(detail['msg'])}"


def _short(text: str) -> str:
    return text if len(text) <= 120 else f"{text[:117]}..."
