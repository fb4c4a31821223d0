"""Check a report against its result file, trusting neither.

The report is made again from the result file and must be the same in everything but the
implementation's own particulars. The result file must be whole and unchanged and must not
contradict itself, its scenarios must be those that the suite ships, and every allocation in it is
judged again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from conformance import __version__
from conformance.certify.build import OtherSuiteError, believed, others
from conformance.certify.bundle import Bundle, opened_bundle
from conformance.certify.contradictions import Discrepancy, contradictions
from conformance.certify.model import ConformanceReport
from conformance.certify.profiles import Profile, ProfileSet
from conformance.data import scenarios_dir
from conformance.engine.events import PlannedScenario, RunStarted
from conformance.errors import ExitCode, UsageError
from conformance.jsondiff import differences, json_text
from conformance.resultfile.read import ResultFileError, load_results
from conformance.scenario.profile import load_profile
from conformance.scenario.validate import load_document
from conformance.text import counted


@dataclass(frozen=True, slots=True)
class Verification:
    """The outcome of checking a report.

    Attributes:
        report: the report as it was read.
        discrepancies: all that is not as claimed, in a stable order.
        notes: what could not be checked, and why.
        departures: where scenarios and profiles of a bundle are not those of this suite.
    """

    report: ConformanceReport
    discrepancies: tuple[Discrepancy, ...]
    notes: tuple[str, ...] = ()
    departures: tuple[str, ...] = ()

    def with_discrepancies(self, found: Sequence[Discrepancy]) -> Verification:
        """The same, with these discrepancies instead."""
        return replace(self, discrepancies=tuple(found))

    @property
    def exit_code(self) -> ExitCode:
        """0: the report says what the result file says; 1: it does not."""
        return ExitCode.NOT_CONFORMANT if self.discrepancies else ExitCode.CONFORMANT


def verify_report(
    report_path: Path,
    results_path: Path,
    profiles: ProfileSet,
    catalogue: Sequence[PlannedScenario],
    *,
    any_suite: bool = False,
) -> Verification:
    """Check a report.

    Args:
        report_path: the report.
        results_path: the result file that it claims to be made from.
        profiles: the profiles that the suite knows.
        catalogue: every scenario that this suite ships.
        any_suite: profiles and catalogue are those of the suite that ran, whichever that was.

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
    if result.run.suite_version != __version__ and not any_suite:
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
    notes += _own_profile(result.run)
    if foreign := others(result, catalogue):
        notes.append(f"not of the suite, and counted for no profile: {', '.join(foreign)}")
    return Verification(report, tuple(found), tuple(notes))


def _own_profile(run: RunStarted) -> Iterator[str]:
    """Whether the driver's profile is not one of the suite's; by what it says devices are seen."""
    if run.driver_profile is None:
        return
    name, folder = run.driver_profile_name, scenarios_dir() / "drivers"
    if name in {file.stem for file in folder.glob("*.yaml")}:
        on = run.options.get("driverOption") or ()
        try:
            shipped = load_profile(name, folder).with_options([str(option) for option in on])
        except (TypeError, UsageError):
            pass
        else:
            if shipped.model_dump(mode="json", by_alias=True) == run.driver_profile:
                return
    yield (
        f"the driver profile {name} is not one of this suite's: what it says a container shows is"
        " the submitter's word"
    )


def verify_bundle(
    path: Path, profiles: ProfileSet, catalogue: Sequence[PlannedScenario]
) -> Verification:
    """Check a bundle by what is in it, and say where that is not what this suite ships.

    Args:
        path: of the bundle.
        profiles: the profiles that this suite knows.
        catalogue: every scenario that this suite ships.

    Raises:
        UsageError: it, or a file in it, cannot be read, is malformed, or of another version of the
            format.
    """
    with opened_bundle(path) as bundle:
        found = verify_report(
            bundle.report, bundle.results, bundle.profiles, bundle.catalogue, any_suite=True
        )
        inside = str(bundle.report.parent)

        def told(text: str) -> str:
            return text.replace(inside, str(path))

        return replace(
            found,
            discrepancies=tuple(
                Discrepancy(told(item.path), told(item.message)) for item in found.discrepancies
            ),
            departures=tuple(_departures(found.report, bundle, profiles, catalogue)),
        )


def _departures(
    report: ConformanceReport,
    bundle: Bundle,
    profiles: ProfileSet,
    catalogue: Sequence[PlannedScenario],
) -> Iterator[str]:
    if report.suite.version != __version__:
        yield f"it is of suite {report.suite.version}, and judged here by {__version__}"
    ours = {item.id: item.digest for item in catalogue}
    theirs = {item.id: item.digest for item in bundle.catalogue}
    both = ours.keys() & theirs.keys()
    for what, names in (
        ("changed since", {name for name in both if ours[name] != theirs[name]}),
        ("in this suite and not in the bundle", ours.keys() - theirs.keys()),
        ("in the bundle and not in this suite", theirs.keys() - ours.keys()),
    ):
        if names:
            some = ", ".join(sorted(names)[:3]) + (", ..." if len(names) > 3 else "")
            yield f"{counted(len(names), 'scenario')} {what}: {some}"
    known = {profile.name: profile for profile in profiles.profiles}
    for profile in bundle.profiles.profiles:
        if known.get(profile.name) != profile:
            yield f"the profile {profile.name} is not the one of this suite"


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
