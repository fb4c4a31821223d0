"""Check a report against its result file, trusting neither.

The report is made again from the result file and must be the same in everything but the
implementation's own particulars. The result file must be whole and unchanged, its scenarios must be
those that the suite ships, and every allocation in it is judged again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conformance import __version__
from conformance.certify.model import ConformanceReport, load_report
from conformance.certify.profiles import Profile, ProfileSet
from conformance.certify.report import build_report
from conformance.compare.compare import compare_scenario
from conformance.compare.results import (
    ResultFileError,
    RunResult,
    UnknownVersionError,
    load_results,
)
from conformance.compare.verdicts import Witness
from conformance.engine.events import PlannedScenario
from conformance.errors import ExitCode, UsageError


@dataclass(frozen=True, slots=True)
class Discrepancy:
    """One thing that is not as it is claimed.

    Attributes:
        path: where: in the report (``$.profiles[0].statistics.passed``), or ``results`` with a
            scenario's id.
        message: what is wrong, with both values.
    """

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"


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
    """
    report = load_report(report_path)
    try:
        results_path.stat()
        result = load_results(results_path)
    except OSError as error:
        raise UsageError(
            f"{results_path}: cannot be read: {error.strerror}; give the report's result file"
        ) from None
    except UnknownVersionError:
        raise
    except ResultFileError as error:
        return Verification(report, (Discrepancy("results", str(error)),))
    known, found = _profiles(report, profiles)
    same_suite = result.run.suite_version == __version__
    notes = []
    if catalogue is None:
        notes.append("the scenarios were not compared with those that the suite ships")
    elif not same_suite:
        notes.append(
            f"the run was of suite {result.run.suite_version} and this is {__version__}: its"
            " scenarios were not compared; install that version to do so"
        )
    shipped = catalogue if same_suite else None
    if known:
        try:
            again = build_report(result, report.implementation, known, shipped)
        except UsageError as error:
            return Verification(report, (*found, Discrepancy("results", str(error))))
        found += _differences(report.to_json(), again.to_json(), shipped is not None)
    found += _scenarios(result, shipped)
    found += _verdicts(result, witness)
    if result.comparison is None:
        notes.append("the run was not compared with the reference")
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


def _scenarios(
    result: RunResult, catalogue: Sequence[PlannedScenario] | None
) -> Iterator[Discrepancy]:
    """Whether the scenarios that ran are those of the suite."""
    digest = scenario_set_digest(result.run.planned)
    if digest != result.run.scenario_set_digest:
        yield Discrepancy(
            "results",
            f"the header's scenario-set digest is {result.run.scenario_set_digest}, that of its"
            f" scenarios is {digest}",
        )
    if catalogue is None:
        return
    shipped = {item.id: item for item in catalogue}
    for item in sorted(result.run.planned, key=lambda item: item.id):
        path = f"results: {item.id}"
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


def _verdicts(result: RunResult, witness: Witness | None) -> Iterator[Discrepancy]:
    """Whether judging every allocation again gives the verdicts of the comparison."""
    if result.comparison is None:
        return
    listed = result.comparison.get("scenarios")
    claimed = {item.get("id"): item for item in listed if isinstance(item, dict)} if listed else {}
    ended = {event.scenario.id for event in result.finished}
    for name in sorted(str(name) for name in claimed if name not in ended):
        yield Discrepancy(f"results: {name}", "was compared, and has no result")
    for event in sorted(result.finished, key=lambda event: event.scenario.id):
        name = event.scenario.id
        if name not in claimed:
            yield Discrepancy(f"results: {name}", "was not compared, though others were")
            continue
        judged = compare_scenario(event, None, witness)
        for field, left, right in (
            ("counts", claimed[name].get("counts"), judged.to_json()["counts"]),
            ("verdict", claimed[name].get("verdict"), judged.to_json()["verdict"]),
        ):
            if left != right:
                yield Discrepancy(
                    f"results: {name}",
                    f"the comparison's {field} are {_short(left)}, judged again {_short(right)}",
                )
        for problem in judged.problems:
            if problem not in (claimed[name].get("problems") or ()):
                yield Discrepancy(f"results: {name}", f"cannot be judged again: {problem}")


def scenario_set_digest(planned: Iterable[PlannedScenario]) -> str:
    """``sha256:`` over the sorted lines ``<id> <digest>`` of a set of scenarios."""
    lines = sorted(f"{item.id} {item.digest}\n" for item in planned)
    return f"sha256:{hashlib.sha256(''.join(lines).encode()).hexdigest()}"


def _short(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, ensure_ascii=False)
    return text if len(text) <= 200 else f"{text[:197]}..."
