"""Read a result file, and distinguish the ways in which one can be wrong.

A file that was cut off, edited or put together from two runs must never be taken for a good one.
Each message names ``file:line`` and what to do.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final

from pydantic import ValidationError

from conformance.results.events.comparison import ScenarioCompared
from conformance.results.events.result import RunCollector, RunResult
from conformance.results.events.run import RunFinished, RunStarted
from conformance.results.events.scenario import PlannedScenario, ScenarioFinished
from conformance.results.sharing import Sharing
from conformance.results.write import FILE_NAME, Recorded, from_line
from conformance.scenario.base import API_VERSION
from kube.base.errors import UsageError
from kube.base.files import open_regular, too_large
from kube.base.strictjson import BoundsError, loads
from kube.base.text import cut

MAX_BYTES: Final = 512 << 20
"""Of a file, of which a line is there at a time, and what differs (`sharing.MAX_KEPT`). That of the
shipped scenarios has 14 MB; on a cluster of 50 nodes with 8 GPUs each it would have 270 MB."""

MAX_LINE: Final = 48 << 20
"""Bytes of a line, as it takes memory; the longest of the shipped scenarios have 1.8 MB, on such a
cluster 23 MB."""

MAX_LINE_VALUES: Final = 1_000_000
"""Of a line, which is judged as a whole; the longest of the shipped scenarios have 83,000."""

MAX_LINES: Final = 100_000
"""Of a file; that of the shipped scenarios has 800."""


class ResultFileError(UsageError):
    """A result file is not as a run writes it; the message says where, in what, and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedRun(RunResult):
    """A run as its result file has it; ``digest`` (``sha256:``) is of the whole file.

    ``lines``: kind of record and scenario id (empty where there is none) -> line number.
    """

    digest: str
    path: str
    lines: Mapping[tuple[str, str], int]

    def where(self, record: str, scenario: str = "") -> str:
        """``file:line`` of a record, the file alone where it has none of that kind."""
        line = self.lines.get((record, scenario))
        return self.path if line is None else f"{self.path}:{line}"


def result_file(path: Path) -> Path:
    """The result file that a path names: itself, or the one in a folder of reports."""
    return path / FILE_NAME if path.is_dir() else path


def load_results(
    path: Path, *, truncated_ok: bool = False, sharing: Sharing | None = None
) -> RecordedRun:
    """Read and check a result file.

    Equal parts of its snapshots are the same objects, which nobody may change.
    With ``truncated_ok`` a file without footer is read for what it has: everything without a result
    is lost, and a last line that was cut off is left out.
    ``sharing``: of files that are kept together.

    Raises:
        UsageError: it cannot be read, or is of another version of the format.
        ResultFileError: it is not as a run writes it.
    """
    try:
        with open_regular(path) as file:
            return parse_results(
                path, _lines_of(path, file), truncated_ok=truncated_ok, sharing=sharing
            )
    except OSError as error:
        raise UsageError(
            f"{path}: cannot be read: {error.strerror}; give the result file of a run"
        ) from None


def parse_results(
    path: Path,
    lines: Iterable[bytes],
    *,
    truncated_ok: bool = False,
    sharing: Sharing | None = None,
) -> RecordedRun:
    """As `load_results`, of a file's lines with their ends; ``path`` is what messages name."""
    return _Reader(path, sharing or Sharing()).read(lines, truncated_ok)


def _lines_of(path: Path, file: BinaryIO) -> Iterator[bytes]:
    """The lines of a file, the start of one that is too long. Raises OSError."""
    size = 0
    while line := file.readline(MAX_LINE + 1):
        size += len(line)
        if size > MAX_BYTES:
            raise too_large(path, MAX_BYTES)
        yield line


class _Reader:
    def __init__(self, path: Path, sharing: Sharing) -> None:
        self.path = path
        self.sharing = sharing
        self.digest = hashlib.sha256()  # of the lines before the present one
        self.collector = RunCollector()
        self.planned: dict[str, PlannedScenario] = {}
        self.numbers: dict[tuple[str, str], int] = {}

    def read(self, lines: Iterable[bytes], truncated_ok: bool) -> RecordedRun:
        is_empty = True
        for number, line in enumerate(lines, start=1):
            if number > MAX_LINES:
                raise ResultFileError(
                    f"{self.path}: is not read, it has more than {MAX_LINES} lines; run fewer"
                    " scenarios"
                )
            if line.strip():
                is_empty = False
                document = self._parse(number, line)
                if document is not None:
                    self._take(number, document)
            self.digest.update(line)
        if is_empty:
            raise ResultFileError(f"{self.path}: is empty; nothing was run, or the disk was full")
        if self.collector.run is None:
            raise ResultFileError(f"{self.path}:1: was cut off in its header; run again")
        result = self.collector.result()
        if result.footer is None and not truncated_ok:
            lost = len(self.planned) - len(result.finished)
            raise ResultFileError(
                f"{self.path}: has no footer, so the run was killed or the file was cut off"
                f" ({lost} of {len(self.planned)} planned scenarios have no result); run again"
            )
        counts = {str(outcome): len(ids) for outcome, ids in result.outcomes.items() if ids}
        said = result.footer.counts if result.footer is not None else counts
        if {outcome: number for outcome, number in said.items() if number} != counts:
            raise ResultFileError(
                f"{self.path}: the footer's counts are not those of the lines before it; the file"
                " was changed after the run"
            )
        return RecordedRun(
            run=result.run,
            finished=result.finished,
            compared=result.compared,
            diagnostics=result.diagnostics,
            footer=result.footer,
            digest=self._digest_so_far(),
            path=str(self.path),
            lines=self.numbers,
        )

    def _parse(self, number: int, line: bytes) -> dict[str, Any] | None:
        """The document of a line; None for a last line that was cut off."""
        try:
            document = loads(line.removesuffix(b"\n"), MAX_LINE_VALUES, MAX_LINE)
            if isinstance(document, dict):
                self.sharing.share(document)
        except BoundsError as error:
            raise ResultFileError(
                f"{self.path}:{number}: is not read, {error}; run fewer scenarios"
            ) from None
        except (ValueError, RecursionError) as error:
            # A whole line ends with a newline.
            if self.collector.footer is None and not line.endswith(b"\n"):
                return None
            raise ResultFileError(
                f"{self.path}:{number}: is not JSON as a run writes it"
                f" ({cut(str(error), 120)}); the file was changed"
            ) from None
        if not isinstance(document, dict):
            raise ResultFileError(f"{self.path}:{number}: is not a JSON object")
        return document

    def _take(self, number: int, document: dict[str, Any]) -> None:
        where = f"{self.path}:{number}"
        if self.collector.footer is not None:
            raise ResultFileError(f"{where}: follows the footer; keep one run to a file")
        if self.collector.run is None:
            _check_version(where, document)
        digest = document.pop("digest", None) if document.get("record") == "footer" else None
        try:
            event = from_line(document, self.planned)
        except ValueError as error:
            raise ResultFileError(f"{where}: {first_problem(error)}") from None
        self._check(where, event)
        if isinstance(event, RunFinished) and digest != self._digest_so_far():
            raise ResultFileError(
                f"{where}: the footer's digest is not that of the lines before it; the file was"
                " changed after the run"
            )
        self.numbers.setdefault(
            (str(document["record"]), str(document.get("scenario", ""))), number
        )
        self.collector.handle(event)

    def _digest_so_far(self) -> str:
        return f"sha256:{self.digest.hexdigest()}"

    def _check(self, where: str, event: Recorded) -> None:
        match event:
            case RunStarted():
                if self.collector.run is not None:
                    raise ResultFileError(f"{where}: a second header; keep one run to a file")
                self.planned = {item.id: item for item in event.planned}
                ids = set[str]()
                for item in event.whole_plan:
                    if item.id in ids:
                        raise ResultFileError(f"{where}: scenario {item.id} is planned twice")
                    ids.add(item.id)
            case ScenarioFinished() if ("scenario", event.scenario.id) in self.numbers:
                raise ResultFileError(f"{where}: scenario {event.scenario.id} has a second result")
            case ScenarioFinished() if [step.index for step in event.steps] != list(
                range(len(event.steps))
            ):
                raise ResultFileError(
                    f"{where}: the steps of scenario {event.scenario.id} are not numbered from 0"
                )
            case ScenarioCompared() if ("compared", event.scenario) in self.numbers:
                raise ResultFileError(f"{where}: scenario {event.scenario} has a second comparison")
            case RunFinished() if self.collector.run and event.run != self.collector.run.run:
                raise ResultFileError(f"{where}: the footer belongs to another run")
            case _:
                pass


def _check_version(where: str, document: Mapping[str, Any]) -> None:
    if document.get("record") != "header":
        raise ResultFileError(
            f"{where}: the first line is not a header; give the JSON result file of a run"
        )
    if document.get("apiVersion") != API_VERSION:
        found = cut(repr(document.get("apiVersion")), 120)
        raise UsageError(
            f"{where}: $.apiVersion is {found}, this suite reads {API_VERSION}; use the version of"
            " the suite that wrote the file"
        )


_FEW_PROBLEMS = 10_000  # pydantic describes all or none, each in a kilobyte.


def first_problem(error: BaseException) -> str:
    """The first of pydantic's errors in one line, as ``$.path[0]: what was expected``; else it."""
    if not isinstance(error, ValidationError):
        return cut(str(error), 200)
    if error.error_count() > _FEW_PROBLEMS:
        return f"{error.error_count()} values are not as expected"
    detail = error.errors(include_url=False, include_input=False)[0]
    path = "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in detail["loc"])
    return f"${path}: {cut(detail['msg'], 120)}"
