"""The result of ``driver-check`` as a part of a certificate: reading it, and whether it fits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from conformance.certify.codes import Finding
from conformance.certify.model import DriverCheckSummary
from conformance.certify.times import CLOCK_SKEW
from conformance.certify.values import Result, find_repeated
from conformance.digest import text_digest
from conformance.drivercheck.check import Level
from conformance.drivercheck.result import DriverCheckResult, Outcome, judge_checks
from conformance.results.events.run import RunStarted
from conformance.results.read import first_problem
from conformance.results.times import parse_time
from kube.base.errors import UsageError
from kube.base.files import read_regular
from kube.base.strictjson import BoundsError, loads

MAX_BYTES: Final = 4 << 20  # Of a result; one is about 60 KiB.
MAX_VALUES: Final = 100_000  # Of a result; one has about 600.


@dataclass(frozen=True, slots=True)
class DriverChecked:
    """A result of driver-check.

    Attributes:
        path: where it was read, for messages.
        text: the file, as it is.
    """

    path: str
    text: str
    result: DriverCheckResult


def read_driver_check(path: Path) -> DriverChecked:
    """Read what ``driver-check --output`` wrote. Raises UsageError."""
    try:
        content = read_regular(path, MAX_BYTES)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise UsageError(f"{path}: cannot be read: {reason}; check the path") from None
    return parse_driver_check(str(path), content)


def parse_driver_check(path: str, content: bytes) -> DriverChecked:
    """Return the result of driver-check in these bytes. Raises UsageError: they are none."""
    try:
        if len(content) > MAX_BYTES:
            raise BoundsError(f"it is larger than {MAX_BYTES >> 20} MiB")
        text = content.decode()
        loads(content, MAX_VALUES)  # refuses what two readers could read differently
        result = DriverCheckResult.model_validate_json(content, by_alias=True, by_name=False)
    except (ValueError, RecursionError) as error:
        raise UsageError(
            f"{path}: is not a result of driver-check ({first_problem(error)});"
            " `dra-conformance driver-check --driver-command CMD --output FILE` writes one"
        ) from None
    return DriverChecked(path, text, result)


def summarize_driver_check(checked: DriverChecked) -> DriverCheckSummary:
    """Return what a report says of a result of driver-check."""
    result = checked.result

    def named(level: Level, *outcomes: Outcome) -> tuple[str, ...]:
        return tuple(
            check.name
            for check in result.checks
            if check.level is level and check.outcome in outcomes
        )

    return DriverCheckSummary(
        digest=text_digest(checked.text),
        date=result.started_at,
        result=Result.of(result.exit_code),
        supported_versions=result.supported_versions,
        passed=result.count(Outcome.PASSED, Level.REQUIRED),
        failed=named(Level.REQUIRED, Outcome.FAILED),
        not_made=named(Level.REQUIRED, Outcome.ERROR, Outcome.SKIPPED, Outcome.NOT_RUN),
        not_offered=named(Level.REQUIRED, Outcome.NOT_OFFERED),
        advised=named(Level.RECOMMENDED, Outcome.FAILED),
    )


def find_misfits(checked: DriverChecked, run: RunStarted, *, ours: bool) -> Iterator[Finding]:
    """Yield where a result contradicts itself, or is not of this run's driver and suite.

    ``ours``: the run was of this version of the suite, whose checks are known.
    """
    result = checked.result
    if result.verdict != (right := judge_checks(result.checks)):
        yield "driver-check", f"says {result.verdict}, its checks come to {right}"
    if result.suite_version != run.suite_version:
        yield (
            "driver-check",
            f"is of suite {result.suite_version}, the run is of {run.suite_version}",
        )
    try:
        began = parse_time(result.started_at)
    except ValueError as error:
        yield "times", f"startedAt: {error}"
    else:
        if began > datetime.now(UTC) + CLOCK_SKEW:
            yield "times", f"began on {result.started_at}, which is in the future"
    if twice := find_repeated(check.name for check in result.checks):
        yield "driver-check", f"has checks twice: {', '.join(twice[:3])}"
    if result.driver != run.driver:
        yield "driver-check", f"is of the driver {result.driver}, the run of {run.driver}"
    if not ours:
        return
    from conformance.drivercheck.run import CHECKS  # half a second, and not needed elsewhere

    stated_checks = [(check.name, check.level) for check in result.checks]
    shipped = [(check.name, check.level) for check in CHECKS]
    if stated_checks != shipped:
        odd = {name for name, _ in {*stated_checks} ^ {*shipped}} or {
            name for name, _ in stated_checks
        }
        text = f"its checks are not all of driver-check's, each once: {', '.join(sorted(odd)[:3])}"
        yield "driver-check", f"{text}; run it without -k"
