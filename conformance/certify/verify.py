"""Check a report against its result file, trusting neither.

The report is made again from the result file and must be the same in everything but the
implementation's own particulars. The result file must be whole and unchanged and must not
contradict itself, its scenarios must be those that the suite ships, and every allocation in it is
judged again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

from conformance import __version__
from conformance.certify.build import (
    OtherSuiteError,
    build_believed_report,
    driver_check_misfits,
    foreign_scenarios,
)
from conformance.certify.contradictions import Discrepancy, find_contradictions
from conformance.certify.driverchecked import DriverChecked, read_driver_check
from conformance.certify.evidence import Evidence, read_evidence
from conformance.certify.model import ConformanceReport
from conformance.certify.profiles import CORE, Profile, ProfileSet, find_foundations
from conformance.certify.readme import Readme
from conformance.certify.times import CLOCK_SKEW
from conformance.certify.values import Hardware, Result
from conformance.data import scenarios_dir
from conformance.jsondiff import differences, json_text
from conformance.results.events.run import RunStarted
from conformance.results.events.scenario import PlannedScenario
from conformance.results.read import RecordedRun, ResultFileError, load_results
from conformance.results.times import parse_time
from conformance.scenario.documents.validate import load_document
from conformance.scenario.driver.profile import load_profile
from kube.base.errors import ExitCode, UsageError
from kube.base.text import counted


@dataclass(frozen=True, slots=True)
class Verification:
    """The outcome of checking a report.

    Attributes:
        discrepancies: all that is not as claimed, in a stable order.
        departures: where the evidence's scenarios and profiles are not those of this suite.
        lacking: each core profile that is not in the report though another stands on it, in words.
        readme: what the evidence gives for the README beside it; None without evidence that can be
            read.
    """

    report: ConformanceReport
    discrepancies: tuple[Discrepancy, ...]
    notes: tuple[str, ...] = ()
    departures: tuple[str, ...] = ()
    lacking: tuple[str, ...] = ()
    readme: Readme | None = None

    @property
    def exit_code(self) -> ExitCode:
        """0: the report says what the result file says; 1: it does not."""
        return ExitCode.NOT_CONFORMANT if self.discrepancies else ExitCode.CONFORMANT

    def no_success(self) -> Iterator[str]:
        """Yield why not every profile is a success, and each core profile that they stand on."""
        for item in self.report.profiles:
            if item.result is not Result.SUCCESS:
                yield f"{item.name} is {item.result}"
        yield from self.lacking
        yield from self._no_basis()

    def no_success_of(self, profile: str) -> Iterator[str]:
        """Yield why a profile is no success; others do not matter."""
        results = {item.name: item.result for item in self.report.profiles}
        if profile not in results:
            yield "the report does not have it"
        elif results[profile] is not Result.SUCCESS:
            yield f"it is {results[profile]}"
        yield from self._no_basis()

    def _no_basis(self) -> Iterator[str]:
        """Yield why no success is one by the scenarios and profiles of this suite, with devices."""
        yield from self._judged_otherwise()
        if self.report.inventory is None or not self.report.inventory.devices:
            yield "no device of the driver was seen in a snapshot"

    def not_compared(self) -> Iterator[str]:
        """Yield why allocations were not judged, if so."""
        comparison = self.report.comparison
        if comparison is None or not any(comparison.verdicts.values()):
            yield "no allocation was judged"

    def no_hardware(self) -> Iterator[str]:
        """Yield why the run shows nothing of hardware, if so."""
        match self.report.hardware:
            case Hardware.SIMULATED:
                simulation = "; ".join(self.report.simulated)
                yield f"simulated: {simulation or 'the devices, as the driver profile says'}"
            case Hardware.NOT_SHOWN:
                yield "not shown: no scenario of the tier `device` passed, or one did not"
        # Which scenarios are of the tier `device` is said by the evidence itself.
        yield from self._judged_otherwise()

    def _judged_otherwise(self) -> Iterator[str]:
        """Yield whether the evidence was judged by scenarios and profiles that may ask for less."""
        if self.departures:
            yield (
                "its scenarios and profiles are not those of this suite; verify it with"
                f" dra-conformance {self.report.suite.version}"
            )

    def other_suite(self, version: str) -> Iterator[str]:
        """Yield why the run was not of that version of the suite and its scenarios, if so."""
        if self.report.suite.version != version:
            yield f"the run was of {self.report.suite.version}"
        elif version != __version__:
            yield f"this is {__version__}; install that version"
        elif self.departures:
            yield "its scenarios are not those of that version"

    def too_old(self, most: timedelta, now: datetime) -> Iterator[str]:
        """Yield why the run did not end, or driver-check not begin, in that time before ``now``."""
        checked = self.report.driver_check
        dates = [("the run ended", self.report.date)]
        if checked is not None:
            dates.append(("driver-check began", checked.date))
        for subject, date in dates:
            try:
                moment = parse_time(date)
            except ValueError as error:
                yield f"{subject}: {error}"
                continue
            if moment > now + CLOCK_SKEW:
                yield f"{subject} on {date}, which is in the future"
            elif now - moment > most:
                yield f"{subject} on {date}, {(now - moment).days} days ago"


def verify_report(
    report_path: Path,
    results_path: Path,
    profiles: ProfileSet,
    catalogue: Sequence[PlannedScenario],
    driver_check: Path | None = None,
) -> Verification:
    """Check a report.

    ``results_path``, ``driver_check``: the results that it claims to be made from.

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
        return Verification(report, (Discrepancy("results", "result-file", str(error)),))
    if result.run.suite_version != __version__:
        raise OtherSuiteError(result)
    checked = None if driver_check is None else read_driver_check(driver_check)
    ours = result.run.suite_version == __version__
    return _verify(report, result, profiles, catalogue, checked, ours=ours)


def verify_evidence(
    path: Path, profiles: ProfileSet, catalogue: Callable[[], Sequence[PlannedScenario]]
) -> Verification:
    """Check an evidence file by the scenarios and profiles in it; report where they are not ours.

    ``catalogue``: gives every scenario that the suite ships; called once the file was read, because
    it takes seconds, in which a file that is refused would not be refused.
    Raises UsageError: it cannot be read, is malformed, or of another version of the format.
    """
    evidence = read_evidence(path)
    report = evidence.report
    departures = tuple(_find_departures(evidence, profiles, catalogue()))
    try:
        result = evidence.run(path)
        evidence = evidence.model_copy(update={"results": ""})  # so that it takes no memory twice
    except ResultFileError as error:
        verification = Verification(report, (Discrepancy("results", "result-file", str(error)),))
    else:
        verification = _verify(
            report,
            result,
            evidence.profiles,
            evidence.catalogue,
            evidence.checked(path),
            # Which checks a suite with other scenarios had is not known here.
            ours=result.run.suite_version == __version__ and not departures,
        )
        readme = Readme(report, result.run.options, evidence.reproduce, path.name)
        verification = replace(verification, readme=readme)
    return replace(verification, departures=departures)


def _verify(
    report: ConformanceReport,
    result: RecordedRun,
    profiles: ProfileSet,
    catalogue: Sequence[PlannedScenario],
    checked: DriverChecked | None,
    *,
    ours: bool,
) -> Verification:
    known_profiles, discrepancies = _find_profiles(report, profiles)
    discrepancies += find_contradictions(result, catalogue)
    discrepancies += driver_check_misfits(result, checked, ours=ours)
    if known_profiles:
        rebuilt = build_believed_report(
            result, report.implementation, known_profiles, catalogue, checked
        )
        discrepancies += [
            Discrepancy(
                path,
                "report",
                f"the report says {json_text(stated, 200)}, its result file says"
                f" {json_text(is_there, 200)}",
            )
            for path, stated, is_there in differences(report.to_json(), rebuilt.to_json())
        ]
    notes = ["implementation is what the submitter says; nothing in a result file shows it"]
    notes += _own_profile(result.run)
    if runs := result.run.joined_runs:
        notes.append(f"the results of {len(runs)} runs were joined: {', '.join(runs)}")
    if foreign := foreign_scenarios(result, catalogue):
        notes.append(f"not of the suite, and counted for no profile: {', '.join(foreign)}")
    return Verification(
        report,
        tuple(discrepancies),
        tuple(notes),
        lacking=tuple(_missing_foundations(known_profiles, catalogue)),
    )


def _missing_foundations(
    profiles: Sequence[Profile], catalogue: Sequence[PlannedScenario]
) -> Iterator[str]:
    """Yield each core profile that another one stands on and that is not among them, in words."""
    names = {profile.name for profile in profiles}
    for core in CORE:
        above = [item.name for item in profiles if core in find_foundations(item, catalogue)]
        if above and core not in names:
            yield f"{core} is not in the report, and {', '.join(above)} cannot do without"


def _own_profile(run: RunStarted) -> Iterator[str]:
    """Yield that the driver's profile is not the suite's; by what it says devices are seen."""
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


def _find_departures(
    evidence: Evidence, profiles: ProfileSet, catalogue: Sequence[PlannedScenario]
) -> Iterator[str]:
    if (version := evidence.report.suite.version) != __version__:
        yield f"it is of suite {version}, and judged here by {__version__}"
    ours, theirs = (
        {item.id: replace(item, file="", line=0) for item in items}
        for items in (catalogue, evidence.catalogue)
    )
    both = ours.keys() & theirs.keys()
    for kind, names in (
        ("changed since", {name for name in both if ours[name] != theirs[name]}),
        ("in this suite and not in the evidence", ours.keys() - theirs.keys()),
        ("in the evidence and not in this suite", theirs.keys() - ours.keys()),
    ):
        if names:
            some = ", ".join(sorted(names)[:3]) + (", ..." if len(names) > 3 else "")
            yield f"{counted(len(names), 'scenario')} {kind}: {some}"
    known_profiles = {profile.name: profile for profile in profiles.profiles}
    for profile in evidence.profiles.profiles:
        if known_profiles.get(profile.name) != profile:
            yield f"the profile {profile.name} is not the one of this suite"


def _find_profiles(
    report: ConformanceReport, profiles: ProfileSet
) -> tuple[list[Profile], list[Discrepancy]]:
    """Return the report's profiles in its order, as the suite knows them."""
    by_name = {profile.name: profile for profile in profiles.profiles}
    known_profiles: list[Profile] = []
    discrepancies: list[Discrepancy] = []
    for index, item in enumerate(report.profiles):
        path = f"$.profiles[{index}].name"
        if item.name not in by_name:
            discrepancies.append(
                Discrepancy(path, "profile-unknown", f"unknown profile {item.name!r}")
            )
        elif by_name[item.name] in known_profiles:
            discrepancies.append(
                Discrepancy(path, "profile-repeated", f"profile {item.name} is listed twice")
            )
        else:
            known_profiles.append(by_name[item.name])
    return known_profiles, discrepancies
