"""Check a report against its result file, trusting neither.

The report is made again from the result file and must be the same in everything but the
implementation's own particulars. The result file must be whole and unchanged and must not
contradict itself, its scenarios must be those that the suite ships, and every allocation in it is
judged again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from conformance import __version__
from conformance.certify.build import OtherSuiteError, believed, others
from conformance.certify.contradictions import Discrepancy, contradictions
from conformance.certify.model import ConformanceReport
from conformance.certify.profiles import Profile, ProfileSet
from conformance.engine.events import PlannedScenario
from conformance.errors import ExitCode, UsageError
from conformance.jsondiff import differences, json_text
from conformance.resultfile.read import ResultFileError, load_results
from conformance.scenario.validate import load_document


@dataclass(frozen=True, slots=True)
class Verification:
    """The outcome of checking a report.

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
    catalogue: Sequence[PlannedScenario],
) -> Verification:
    """Check a report.

    Args:
        report_path: the report.
        results_path: the result file that it claims to be made from.
        profiles: the profiles that the suite knows.
        catalogue: every scenario that this suite ships.

    Raises:
        UsageError: one of the files cannot be read, the report is malformed, or the result file is
            of another version of the format. A result file that was changed or cut off is a
            discrepancy and no error.
        OtherSuiteError: the run was of another version of the suite, so that the catalogue and the
            rules of this one say nothing about it.
    """
    report = load_document(ConformanceReport, report_path, "report")
    try:
        result = load_results(results_path)
    except ResultFileError as error:
        return Verification(report, (Discrepancy("results", str(error)),))
    if result.run.suite_version != __version__:
        raise OtherSuiteError(result)
    known, found = _profiles(report, profiles)
    found += contradictions(result, catalogue)
    if known:
        try:
            again = believed(result, report.implementation, known, catalogue)
        except UsageError as error:
            return Verification(report, (*found, Discrepancy("results", str(error))))
        found += [
            Discrepancy(
                path,
                f"the report says {json_text(said, 200)}, its result file says"
                f" {json_text(is_there, 200)}",
            )
            for path, said, is_there in differences(report.to_json(), again.to_json())
        ]
    notes = ["implementation is what the submitter says; nothing in a result file shows it"]
    if foreign := others(result, catalogue):
        notes.append(f"not of the suite, and counted for no profile: {', '.join(foreign)}")
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
            found.append(Discrepancy(path, f"profile {item.name} is listed twice"))
        else:
            known.append(by_name[item.name])
    return known, found
