"""What ``report``, ``submit``, ``verify`` and ``page`` share."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from conformance.certify.driverchecked import DriverChecked, read_driver_check
from conformance.certify.model import ConformanceReport
from conformance.certify.profiles import CORE, Profile, load_profiles
from conformance.certify.values import Implementation, build_implementation
from conformance.engine.setup import planned
from conformance.report.folder import RESULTS
from conformance.results.events.scenario import PlannedScenario
from conformance.scenario.selection import select
from kube.base.errors import UsageError
from kube.base.options import option_field


@dataclass(frozen=True, slots=True, kw_only=True)
class CertifiedOptions:
    """The options that describe a report: the implementation, its owner, the profiles."""

    organization: str = option_field(..., "Organization that submits the report.", metavar="NAME")
    project: str = option_field(..., "Driver or distribution under test.", metavar="NAME")
    url: str = option_field(..., "Home page of the project.", metavar="URL")
    version: str = option_field(..., "Version of the project.", metavar="VERSION")
    contact: tuple[str, ...] = option_field(
        (), "Contact for questions (repeatable).", metavar="TEXT"
    )
    image: str | None = option_field(None, "Image of the driver.", metavar="NAME@sha256:HEX")
    ci_run: str | None = option_field(None, "URL of the CI job.", metavar="URL")
    profile: tuple[str, ...] = option_field(
        (), f"Conformance profile (repeatable). [default: {', '.join(CORE)}]", metavar="NAME"
    )
    driver_check: Path | None = option_field(
        None, "Result of driver-check for this driver; dra-core-driver needs it.", metavar="FILE"
    )

    @property
    def implementation(self) -> Implementation:
        """What was tested, and whose it is. Raises UsageError: one of the options is malformed."""
        return build_implementation(
            **{
                name: value
                for name, value in asdict(self).items()
                if name not in {"profile", "driver_check"}
            }
        )

    @property
    def checked_driver(self) -> DriverChecked | None:
        """The result of driver-check, if one was given. Raises UsageError: it is none."""
        return None if self.driver_check is None else read_driver_check(self.driver_check)

    @property
    def profiles(self) -> tuple[Profile, ...]:
        """The requested profiles; without a request, those of the core. Raises UsageError."""
        return load_profiles().select(dict.fromkeys(self.profile or CORE))


def summarize_report(report: ConformanceReport) -> Iterator[str]:
    """List the result of each profile, and what it is worth, as lines."""
    for profile in report.profiles:
        yield f"{profile.name}: {profile.result}"
        if profile.driver_check == "missing":
            yield "  without a result of driver-check; give it by --driver-check FILE"
        elif profile.driver_check is not None and profile.driver_check is not profile.result:
            yield f"  driver-check: {profile.driver_check}"
        for unshown in profile.without:
            yield f"  without {unshown.scenario}: {unshown.reason}"
    yield f"hardware: {report.hardware}"
    for reason in report.uncertified:
        yield f"certifies nothing: {reason}"


def refuse_folder(results: Path) -> None:
    """Raise UsageError for the folder of reports in place of the result file in it."""
    if results.is_dir():
        raise UsageError(f"{results}: is a folder; give the result file in it, {RESULTS}")


def list_shipped_scenarios() -> list[PlannedScenario]:
    """Return every scenario that the suite ships, as a run plans it."""
    return [planned(scenario) for scenario in select()]
