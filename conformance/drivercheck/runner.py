"""Makes checks on a bench one after the other, and brings the driver back between them."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Final

from conformance.drivercheck.bench import Bench
from conformance.drivercheck.check import Check
from conformance.drivercheck.result import CheckResult, Outcome
from conformance.drivercheck.violations import (
    NotOfferedError,
    SilenceError,
    UnanswerableError,
    ViolationError,
)
from kube.base.text import one_line

MAX_SILENT: Final = 3
"""Checks that end by a call's time limit before the rest is left: each takes a minute."""


class Runner:
    """Makes checks on one bench, and brings the driver back between them.

    Attributes:
        silent_checks: how many ended by a call's time limit.
    """

    def __init__(self, bench: Bench, *, silent_checks: int = 0) -> None:
        self._bench, self._driver = bench, bench.driver
        self.silent_checks = silent_checks
        self._why_absent = ""
        self._began = False
        self._broken = False

    @property
    def is_lost(self) -> bool:
        """Whether no check can be made any more, because the driver is not there."""
        return bool(self._why_absent)

    def start_beside(self, seconds: float) -> bool:
        """Start the driver beside another process of it; return whether it serves and publishes."""
        self._began = True
        try:
            self._driver.start()
            self._driver.await_registration(seconds)
            self._driver.await_slices(seconds)
        except ViolationError:
            return False
        return self._driver.is_serving()

    def start_anew(self) -> None:
        """Let the next check have a driver process without anything of those before."""
        self._began = self._broken = True

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
                self.silent_checks += 1
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
        if self.silent_checks >= MAX_SILENT:
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
