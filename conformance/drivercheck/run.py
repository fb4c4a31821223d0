"""All checks in their order, and running them on a bench one after the other."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from typing import Final

from conformance import __version__
from conformance.drivercheck.bench import Bench
from conformance.drivercheck.check import Check
from conformance.drivercheck.checks import (
    cdi,
    concurrent,
    health,
    hostile,
    prepare,
    rbac,
    refusing,
    registration,
    restart,
    slices,
    unprepare,
    upgrade,
)
from conformance.drivercheck.result import CheckResult, DriverCheckResult, Outcome, judge_checks
from conformance.drivercheck.violations import (
    NotOfferedError,
    SilenceError,
    UnanswerableError,
    ViolationError,
)
from kube.base.errors import UsageError
from kube.base.text import one_line
from reference_allocator.api.names import dns_subdomain_problems

CHECKS: Final[tuple[Check, ...]] = tuple(
    check
    for module in (
        registration,
        slices,
        prepare,
        refusing,
        unprepare,
        cdi,
        concurrent,
        hostile,
        health,
        restart,
        upgrade,
        rbac,
    )
    for check in module.section.checks
)


def choose_checks(patterns: Sequence[str]) -> tuple[Check, ...]:
    """Return the checks that patterns name (wildcards, a section), or all. Raises UsageError."""
    for pattern in patterns:
        if not any(_matches(check, pattern) for check in CHECKS):
            sections = ", ".join(dict.fromkeys(check.name.partition("/")[0] for check in CHECKS))
            raise UsageError(
                f"no check is named {pattern!r}; sections are {sections}; --list names all checks"
            )
    if not patterns:
        return CHECKS
    return tuple(c for c in CHECKS if any(_matches(c, pattern) for pattern in patterns))


def _matches(check: Check, pattern: str) -> bool:
    return fnmatchcase(check.name, pattern) or check.name.startswith(f"{pattern}/")


MAX_SILENT: Final = 3
"""Checks that end by a call's time limit before the rest is left: each takes a minute."""

Reporter = Callable[[CheckResult], None]


def run(
    bench: Bench, checks: Sequence[Check], report: Reporter = lambda _: None
) -> DriverCheckResult:
    """Start the driver, if that is ours to do, and make the checks; ``report`` gets each result."""
    started = datetime.now(UTC).isoformat(timespec="seconds")
    runner = Runner(bench)
    results: list[CheckResult] = []
    for check in checks:
        results.append(runner.make_check(check))
        report(results[-1])
    info, checked = bench.driver.info, tuple(results)
    devices = 0
    if info is not None:
        devices = sum(
            len(resource_slice["spec"].get("devices") or ())
            for resource_slice in bench.driver.list_slices()
        )
    return DriverCheckResult(
        suite_version=__version__,
        started_at=started,
        driver=one_line(info.name, 253) if info is not None else "",
        supported_versions=tuple(one_line(v, 100) for v in info.supported_versions[:20])
        if info is not None
        else (),
        devices=devices,
        verdict=judge_checks(checked),
        checks=checked,
        least_cluster_role=bench.api.objects.rights.least_role(_role_name(bench)),
        unused_rights=bench.driver.policy.unused()[:MAX_UNUSED]
        if bench.driver.policy is not None
        else (),
    )


MAX_UNUSED: Final = 100


def _role_name(bench: Bench) -> str:
    name = bench.driver.name if bench.driver.info is not None else ""
    return name if name and not dns_subdomain_problems(name) else "driver"


class Runner:
    """Makes checks on one bench, and brings the driver back between them."""

    def __init__(self, bench: Bench) -> None:
        self._bench, self._driver = bench, bench.driver
        self._silent_checks = 0
        self._why_absent = ""
        self._began = False
        self._broken = False

    def make_check(self, check: Check) -> CheckResult:
        """Make one check; never raises for what the driver does."""
        if self._broken:
            self._restart_driver()
        began = time.monotonic()
        self._driver.begin_check()
        outcome, message = self._run_check(check)
        return CheckResult(
            name=check.name,
            level=check.level,
            outcome=outcome,
            summary=check.summary,
            source=check.source,
            message=one_line(message, 600),
            seconds=round(time.monotonic() - began, 3),
        )

    def _run_check(self, check: Check) -> tuple[Outcome, str]:
        if self._why_absent and not check.looks_back:
            return Outcome.NOT_RUN, self._why_absent
        if check.starts_driver and self._driver.starter is None:
            return Outcome.SKIPPED, "it stops and starts the driver; give --driver-command"
        try:
            if not self._why_absent:
                self._start_driver()
            self._driver.begin_check()
            remark = check.run(self._bench)
        except NotOfferedError as error:
            ending = Outcome.NOT_OFFERED, str(error)
        except UnanswerableError as error:
            ending = Outcome.SKIPPED, str(error)
        except ViolationError as error:
            if isinstance(error, SilenceError):
                self._silent_checks += 1
            ending = Outcome.FAILED, str(error)
        except Exception as error:  # noqa: BLE001 -- a fault of a check is no fault of the driver
            ending = Outcome.ERROR, f"a fault of this check: {type(error).__name__}: {error}"
        else:
            ending = Outcome.PASSED, remark or ""
        self._clean_up(ending[0])
        return ending

    def _start_driver(self) -> None:
        if not self._began:
            self._began = True
            if self._driver.starter is not None:
                self._driver.start()
            try:
                self._driver.await_registration()
            except ViolationError as error:
                self._why_absent = "the driver did not register"
                raise error from None
            with suppress(ViolationError):  # which slices/published says, where it is asked
                self._driver.await_slices()

    def _clean_up(self, outcome: Outcome) -> None:
        """Clean up, and note whether the next check needs a driver that is started anew."""
        if self._why_absent:
            return
        clean = self._bench.clean() if self._driver.info is not None else True
        if self._silent_checks >= MAX_SILENT:
            self._why_absent = f"the driver did not answer in {MAX_SILENT} checks before"
            return
        broken = outcome in (Outcome.FAILED, Outcome.ERROR) or not clean
        self._broken = broken or not self._driver.is_serving()

    def _restart_driver(self) -> None:
        self._broken = False
        if self._driver.starter is None:
            with suppress(ViolationError):
                self._driver.await_registration(5.0)
            return
        try:
            self._driver.begin_check()
            self._driver.renew()
        except ViolationError as error:
            self._why_absent = one_line(f"the driver cannot be started again: {error}", 300)
