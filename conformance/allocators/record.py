"""What came of each question, as lines of a journal: a check that was cut off goes on with them."""

from __future__ import annotations

from pathlib import Path
from typing import IO, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from conformance.allocators.judging import WRONG, Kind, Level
from conformance.allocators.questions import Vector
from kube.base.errors import UsageError
from reference_allocator.gates import LATEST

JOURNAL = "journal.ndjson"
LONGEST_SECONDS: Final = 86_400
"""The longest time limit: a day."""


class CheckHeader(BaseModel):
    """What is asked of whom; a check that was cut off goes on with it."""

    model_config = ConfigDict(extra="forbid")

    contract: Literal["allocation/v1"] = "allocation/v1"
    program: list[str] = Field(description="the command")
    level: Level = "fits"
    kubernetes: str = Field(
        default=LATEST, description="the minor by whose rules the answers are judged"
    )
    without: list[str] = Field(
        default_factory=list, description="features that the program does not claim to have"
    )
    file: str = Field(default="", description="where the questions are; empty for random ones")
    seed: str = ""
    first: int = 0
    count: int = 0
    timeout: float = Field(
        default=10.0, gt=0, le=LONGEST_SECONDS, description="seconds for each node of a question"
    )
    small: int = Field(default=100, description="how many differences are made small, at most")


class NodeFinding(BaseModel):
    """What is wrong with an answer for one node."""

    model_config = ConfigDict(extra="forbid")

    node: str
    kind: Kind
    said: str
    right: str
    detail: str = ""
    pod: int = Field(0, description="which of the question's pods, 0 for the first")


class SmallCase(BaseModel):
    """A difference made small, as a vector, and what it is."""

    model_config = ConfigDict(extra="forbid")

    kind: Kind
    vector: Vector


class QuestionRecord(BaseModel):
    """What came of one question.

    ``fault`` says how the program failed to answer, ``unjudged`` why the reference could not judge.
    """

    model_config = ConfigDict(extra="forbid")

    number: int
    id: str
    features: list[str]
    milliseconds: float = 0.0
    findings: list[NodeFinding] = Field(default_factory=list)
    fault: str = ""
    unsupported: str = ""
    unjudged: str = ""
    small: SmallCase | None = None

    def has(self, *kinds: Kind) -> bool:
        """Return whether a finding is of one of the kinds."""
        return any(item.kind in kinds for item in self.findings)

    @property
    def differs(self) -> bool:
        """Whether the answer is wrong for some node."""
        return self.has(*WRONG)


class Journal:
    """The journal of one check in a folder; each line is on disk before the next question."""

    def __init__(self, stream: IO[bytes], records: list[QuestionRecord]) -> None:
        """Go on behind the records that are there."""
        self._stream, self.records = stream, records

    @classmethod
    def begin(cls, folder: Path, header: CheckHeader) -> Self:
        """Make the folder and its journal.

        Raises UsageError: it holds a check already, or cannot be written.
        """
        file = folder / JOURNAL
        if file.exists():
            raise UsageError(
                f"{folder}: holds a check already; go on with it with --resume {folder}, or name"
                " another folder with -o"
            )
        try:
            folder.mkdir(parents=True, exist_ok=True)
            stream = file.open("wb")
        except OSError as error:
            raise UsageError(f"{folder}: cannot be written: {error.strerror}") from None
        journal = cls(stream, [])
        journal._write(header)
        return journal

    @classmethod
    def resume(cls, folder: Path) -> tuple[CheckHeader, Self]:
        """Open the journal of a folder to go on with; a last line that is not whole is dropped.

        Raises UsageError: there is none, or it is damaged.
        """
        file = folder / JOURNAL
        try:
            stream = file.open("r+b")
        except OSError as error:
            raise UsageError(f"{file}: cannot be read: {error.strerror}") from None
        whole = [line for line in stream.read().splitlines(keepends=True) if line.endswith(b"\n")]
        try:
            header = CheckHeader.model_validate_json(whole[0] if whole else b"")
            records = [QuestionRecord.model_validate_json(line) for line in whole[1:]]
        except ValidationError:
            stream.close()
            raise UsageError(
                f"{file}: is not the journal of a check, is damaged, or is of a newer version of"
                " dra-conformance; begin again with another -o"
            ) from None
        stream.seek(sum(map(len, whole)))
        stream.truncate()
        return header, cls(stream, records)

    def add(self, record: QuestionRecord) -> None:
        """Keep what came of a question."""
        self.records.append(record)
        self._write(record)

    def _write(self, model: BaseModel) -> None:
        self._stream.write(model.model_dump_json(exclude_defaults=True).encode() + b"\n")
        self._stream.flush()

    def close(self) -> None:
        """Close the file."""
        self._stream.close()
