"""Check a report against its result file, trusting neither.

The report is made again from the result file and must be the same in everything but the
implementation's own particulars. The result file must be whole and unchanged and must not
contradict itself, its scenarios must be those that the suite ships, and every allocation in it is
judged again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conformance import __version__
from conformance.certify.contradictions import Discrepancy, contradictions
from conformance.certify.model import ConformanceReport, load_report
from conformance.certify.profiles import Profile, ProfileSet
from conformance.certify.report import OtherSuiteError, told
from conformance.compare.judging import Witness
from conformance.engine.events import PlannedScenario
from conformance.errors import ExitCode, UsageError
from conformance.resultfile.read import (
    ResultFileError,
    RunResult,
    UnknownVersionError,
    UnreadableResultFileError,
    load_results,
)


@dataclass(frozen=True, slots=True)
class Verification:
    """What came of checking a report.

    Attributes:
        report: the report as it was read.
        discrepancies: all that is not as claimed, in a stable order.
        notes: what could not be checked, and why.
    """

    report: ConformanceReport
    discrepancies: tuple[Discrepancy, ...]
    notes: tuple[str, ...] = ()

    @property
    def exit_code(self) -> ExitCode:
        """0: the report says what the result file says; 1: it does not."""
        return ExitCode.NOT_CONFORMANT if self.discrepancies else ExitCode.CONFORMANT


def verify(
    report_path: Path,
    results_path: Path,
    profiles: ProfileSet,
    catalogue: Sequence[PlannedScenario] | None = None,
    witness: Witness | None = None,
) -> Verification:
    """Check a report against its result file.

    Args:
        report_path: the report.
        results_path: the result file that it claims to be made from.
        profiles: the profiles that the suite knows.
        catalogue: every scenario that this suite ships, to compare digests with.
        witness: who judges the allocations again; None is the reference that the suite ships.

    Raises:
        UsageError: one of the files cannot be read, the report is malformed, or the result file is
            of another version of the format. A result file that was changed or cut off is a
            discrepancy and no error.
        OtherSuiteError: the run was of another version of the suite, so that a catalogue and the
            rules of this one say nothing about it.
    """
    report = load_report(report_path)
    try:
        result = load_results(results_path)
    except (UnknownVersionError, UnreadableResultFileError):
        raise
    except ResultFileError as error:
        return Verification(report, (Discrepancy("results", str(error)),))
    if catalogue is not None and result.run.suite_version != __version__:
        raise OtherSuiteError(result)
    known, found = _profiles(report, profiles)
    found += contradictions(result, witness)
    notes = []
    if catalogue is None:
        notes.append("the scenarios were not compared with those that the suite ships")
    else:
        found += _scenarios(result, catalogue)
    if known:
        try:
            again = told(result, report.implementation, known, catalogue)
        except UsageError as error:
            return Verification(report, (*found, Discrepancy("results", str(error))))
        found += _differences(report.to_json(), again.to_json(), catalogue is not None)
    if result.comparison is None:
        notes.append("the run was not compared with the reference: no allocation was judged")
    return Verification(report, tuple(found), tuple(notes))


def _profiles(
    report: ConformanceReport, profiles: ProfileSet
) -> tuple[list[Profile], list[Discrepancy]]:
    """The report's profiles in its order, as the suite knows them."""
    by_name = {profile.name: profile for profile in profiles.profiles}
    known: list[Profile] = []
    found: list[Discrepancy] = []
    for index, item in enumerate(report.profiles):
        path = f"$.profiles[{index}].name"
        if item.name not in by_name:
            found.append(Discrepancy(path, f"unknown profile {item.name!r}"))
        elif by_name[item.name] in known:
            found.append(Discrepancy(path, f"profile {item.name} is there twice"))
        else:
            known.append(by_name[item.name])
    return known, found


def _differences(claimed: Any, found: Any, with_catalogue: bool) -> list[Discrepancy]:
    """Where the report that was made again differs, the particulars left out."""
    pairs = _walk(claimed, found, "$")
    return [
        Discrepancy(path, f"the report says {_short(left)}, its result file says {_short(right)}")
        for path, left, right in pairs
        # What was not selected is known from the shipped scenarios alone.
        if with_catalogue or not _about_selection(path, left, right)
    ]


def _about_selection(path: str, claimed: Any, found: Any) -> bool:
    if ".notSelected" in path:
        return True
    return path.endswith(".result") and claimed == "partial" and found == "success"


def _walk(claimed: Any, found: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(claimed, dict) and isinstance(found, dict):
        for key in [*claimed, *(key for key in found if key not in claimed)]:
            yield from _walk(claimed.get(key), found.get(key), f"{path}.{key}")
    elif isinstance(claimed, list) and isinstance(found, list) and len(claimed) == len(found):
        for index, (left, right) in enumerate(zip(claimed, found, strict=True)):
            yield from _walk(left, right, f"{path}[{index}]")
    elif claimed != found:
        yield path, claimed, found


def _scenarios(result: RunResult, catalogue: Sequence[PlannedScenario]) -> Iterator[Discrepancy]:
    """Whether the scenarios that were planned are those of the suite."""
    shipped = {item.id: item for item in catalogue}
    for item in sorted(result.run.planned, key=lambda item: item.id):
        path = f"{result.where('header')}: {item.id}"
        if item.id not in shipped:
            yield Discrepancy(path, "the suite ships no such scenario")
        elif shipped[item.id].digest != item.digest:
            yield Discrepancy(path, "is not the scenario that the suite ships (its digest differs)")
        elif (shipped[item.id].level, shipped[item.id].feature) != (item.level, item.feature):
            yield Discrepancy(
                path,
                f"is {shipped[item.id].level} {shipped[item.id].feature} in the suite, the header"
                f" says {item.level} {item.feature}",
            )


def _short(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, ensure_ascii=False)
    return text if len(text) <= 200 else f"{text[:197]}..."
