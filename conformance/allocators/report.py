"""What a check of an allocator came to: as text for people, JSON, JUnit XML, and vectors."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from conformance.allocators.features import FEATURES
from conformance.allocators.record import CheckHeader, QuestionRecord, SmallCase
from kube.base.errors import ExitCode
from kube.base.text import counted, fold, xml_text

_SHOWN_FAULTS: Final = 5
_HEADS: Final = f"{'errors':>7}{'timeouts':>9} {'median':>6} {'worst':>8}"
ALL: Final = "all questions"


class FeatureCounts(BaseModel):
    """What came of the questions that use a feature; times are in milliseconds."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)

    asked: int = 0
    wrong_yes: int = 0
    wrong_no: int = 0
    other_devices: int = Field(0, description="inadmissible devices, or not those of Kubernetes")
    errors: int = Field(0, description="no answer that can be read")
    timeouts: int = Field(0, description="the program gave up")
    median: float = 0.0
    worst: float = 0.0


@dataclass(frozen=True, slots=True)
class DifferenceClass:
    """Differences whose small cases are of one kind and about the same features.

    ``cases``: the ids of the questions that showed them; ``smallest``: the shortest of the cases.
    """

    smallest: SmallCase
    cases: tuple[str, ...]


@dataclass(frozen=True)
class CheckResult:
    """What came of a check.

    Attributes:
        left_out: how many questions use what the program does not claim to have.
        given_up: why the program was given up; empty if it was not.
        interrupted: whether a signal ended the check.
    """

    header: CheckHeader
    records: Sequence[QuestionRecord]
    left_out: int = 0
    given_up: str = ""
    interrupted: bool = False

    @property
    def exit_code(self) -> ExitCode:
        """As `run` has them; what the program leaves out without saying so is partial."""
        if any(record.differs for record in self.records):
            return ExitCode.NOT_CONFORMANT
        unanswered = any(
            record.fault or record.unjudged or record.has("timeout") for record in self.records
        )
        if unanswered or self.given_up or self.interrupted or not self.records:
            return ExitCode.INCONCLUSIVE
        left = any(record.unsupported or record.has("unsupported") for record in self.records)
        return ExitCode.PARTIAL if left else ExitCode.CONFORMANT

    @property
    def verdict(self) -> str:
        """The exit code in words."""
        return self.exit_code.name.lower().replace("_", " ")

    def count_features(self) -> dict[str, FeatureCounts]:
        """Return feature -> counts, for those that were asked about; and for all questions."""
        names = (ALL, *FEATURES)
        table = {name: FeatureCounts.model_validate({}) for name in names}
        times: dict[str, list[float]] = {name: [] for name in names}
        for record in self.records:
            if record.unjudged or record.unsupported:
                continue
            for name in (ALL, *record.features):
                counts = table[name]
                counts.asked += 1
                counts.wrong_yes += record.has("wrong yes")
                counts.wrong_no += record.has("wrong no")
                counts.other_devices += record.has("inadmissible", "other devices")
                counts.errors += bool(record.fault)
                counts.timeouts += record.has("timeout")
                if not record.fault:
                    times[name].append(record.milliseconds)
        for name, found in times.items():
            if found:
                table[name].median, table[name].worst = median(found), max(found)
        return {name: counts for name, counts in table.items() if counts.asked or name == ALL}

    def group_differences(self) -> list[DifferenceClass]:
        """Return the classes of differences that were made small, the most frequent first."""
        groups: dict[tuple[Any, ...], list[QuestionRecord]] = {}
        for record in self.records:
            if record.small is not None:
                key = (record.small.kind, *record.small.vector.features)
                groups.setdefault(key, []).append(record)
        classes = [
            DifferenceClass(
                min(
                    (record.small for record in found if record.small is not None),
                    key=lambda case: len(case.model_dump_json()),
                ),
                tuple(record.id for record in found),
            )
            for found in groups.values()
        ]
        return sorted(classes, key=lambda item: -len(item.cases))


def summarize(result: CheckResult) -> Iterator[str]:
    """Yield the result in lines of at most `WIDTH` characters; the verdict is the last."""
    header = result.header
    yield from _table(result.count_features())
    classes = result.group_differences()
    if classes:
        yield "differences, made small:"
    for number, item in enumerate(classes, 1):
        yield from _wrapped(f"{number}. ", item.smallest.vector.sentence)
        about = ", ".join(item.smallest.vector.features) or "nothing but devices"
        times = counted(len(item.cases), "question")
        yield from _wrapped(
            "   ", f"{item.smallest.kind}; about {about}; {times}, first {item.cases[0]}"
        )
    rest = sum(record.differs and record.small is None for record in result.records)
    if rest:
        yield f"{counted(rest, 'more question')} with differences, not made small (--small)"
    yield from _reasons(result.records)
    if header.without:
        left = counted(result.left_out, "question")
        yield from _wrapped("", f"without {', '.join(header.without)}: {left} not asked")
    if result.given_up:
        yield from _wrapped("", f"the program was given up: it {result.given_up}")
    asked = counted(len(result.records), "question")
    yield f"{asked}, level {header.level}, Kubernetes {header.kubernetes}, {header.contract}"
    yield f"{result.verdict} (exit code {int(result.exit_code)})"


def _table(table: Mapping[str, FeatureCounts]) -> Iterator[str]:
    yield f"{'':22}{'':>6}{'wrong':>6}{'wrong':>6}{'wrong':>8}"
    yield f"{'feature':22}{'asked':>6}{'yes':>6}{'no':>6}{'devices':>8}{_HEADS}"
    for name, row in sorted(table.items(), key=lambda item: item[0] == ALL):
        yield (
            f"{name:22}{row.asked:>6}{row.wrong_yes:>6}{row.wrong_no:>6}{row.other_devices:>8}"
            f"{row.errors:>7}{row.timeouts:>9} {_time(row.median):>6} {_time(row.worst):>8}"
        )
    yield "(questions; times in ms, with the pipe)"


def _time(milliseconds: float) -> str:
    """Return a time with as many digits as mean something, so that a day has its column, too."""
    return f"{milliseconds:.{2 if milliseconds < 1000 else 0}f}"


def _reasons(records: Iterable[QuestionRecord]) -> Iterator[str]:
    """Yield why there was nothing to judge, the most frequent reasons first."""
    reasons: Counter[tuple[str, str]] = Counter()
    first: dict[tuple[str, str], str] = {}
    for record in records:
        timed_out = "gave up the search" if record.has("timeout") else ""
        unsupported = record.unsupported or ("some nodes" if record.has("unsupported") else "")
        for word, text in (
            ("no answer", record.fault),
            ("timeout", timed_out),
            ("unsupported", unsupported),
            ("not judged", record.unjudged),
        ):
            if text:
                reasons[word, text] += 1
                first.setdefault((word, text), record.id)
    for (word, text), number in reasons.most_common(_SHOWN_FAULTS):
        yield from _wrapped(
            f"{word}: ", f"{text} ({counted(number, 'question')}, first {first[word, text]})"
        )
    if len(reasons) > _SHOWN_FAULTS:
        yield f"and {counted(len(reasons) - _SHOWN_FAULTS, 'more reason')} in the JSON report"


def _wrapped(head: str, text: str) -> list[str]:
    return fold(text, head, " " * min(len(head), 4) or "  ")


def make_document(result: CheckResult) -> dict[str, Any]:
    """Return the result as a document of JSON."""
    return {
        "apiVersion": "dra-conformance/v1",
        "kind": "AllocatorCheck",
        **result.header.model_dump(),
        "verdict": result.verdict,
        "exitCode": int(result.exit_code),
        "asked": len(result.records),
        "leftOut": result.left_out,
        "givenUp": result.given_up,
        "interrupted": result.interrupted,
        "features": {
            name: counts.model_dump(by_alias=True)
            for name, counts in result.count_features().items()
        },
        "differences": [
            {
                "kind": item.smallest.kind,
                "questions": list(item.cases),
                "vector": item.smallest.vector.to_document(),
            }
            for item in result.group_differences()
        ],
        "unanswered": [
            {
                "id": record.id,
                "fault": record.fault,
                "unjudged": record.unjudged,
                "unsupported": record.unsupported,
                "timeout": record.has("timeout"),
            }
            for record in result.records
            if record.fault or record.unjudged or record.unsupported or record.has("timeout")
        ],
    }


def make_vectors(result: CheckResult) -> bytes:
    """Return the small cases as lines of vectors, one for each class of differences."""
    return "".join(item.smallest.vector.to_line() for item in result.group_differences()).encode()


def junit_xml(result: CheckResult) -> bytes:
    """Return the result as one test suite with a test case for each question."""
    kinds = Counter(_classify(record) for record in result.records)
    totals = {
        "name": "allocators check",
        "tests": str(len(result.records)),
        "failures": str(kinds["failure"]),
        "errors": str(kinds["error"]),
        "skipped": str(kinds["skipped"]),
    }
    root = ET.Element("testsuites")
    suite = ET.SubElement(root, "testsuite", totals)
    for record in result.records:
        attributes = {
            "classname": f"allocators.{record.features[0] if record.features else 'devices'}",
            "name": xml_text(record.id),
            "time": f"{record.milliseconds / 1000:.6f}",
        }
        case = ET.SubElement(suite, "testcase", attributes)
        if tag := _classify(record):
            ET.SubElement(case, tag, {"message": xml_text(_describe(record))})
    ET.indent(root)
    text: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return text


def _classify(record: QuestionRecord) -> str:
    """Return the JUnit element of what came of a question; empty if it passed."""
    if record.differs:
        return "failure"
    if record.fault or record.has("timeout"):
        return "error"
    if record.unjudged or record.unsupported or record.has("unsupported"):
        return "skipped"
    return ""


def _describe(record: QuestionRecord) -> str:
    if record.small is not None:
        return record.small.vector.sentence
    texts = [record.fault, record.unjudged, record.unsupported]
    texts += [f"{item.node}: {item.kind} {item.detail}".strip() for item in record.findings]
    return "; ".join(filter(None, texts))
