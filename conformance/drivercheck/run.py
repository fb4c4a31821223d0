"""All checks in their order, and what a run of them comes to."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from typing import Final

from conformance import __version__
from conformance.drivercheck.bench import Bench
from conformance.drivercheck.beside import Reporter, make_checks
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
from conformance.drivercheck.result import DriverCheckResult, Processes, judge_checks
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


def run(
    bench: Bench, checks: Sequence[Check], report: Reporter = lambda _: None
) -> DriverCheckResult:
    """Start the driver, if that is ours to do, and make the checks.

    ``report`` gets each result, not in the order of the checks.
    """
    started = datetime.now(UTC).isoformat(timespec="seconds")
    checked = tuple(make_checks(bench, checks, report))
    info = bench.driver.info
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
        processes=_count_processes(bench),
        least_cluster_role=bench.api.objects.rights.least_role(_role_name(bench)),
        unused_rights=bench.driver.policy.unused()[:MAX_UNUSED]
        if bench.driver.policy is not None
        else (),
    )


MAX_UNUSED: Final = 100


def _role_name(bench: Bench) -> str:
    name = bench.driver.name if bench.driver.info is not None else ""
    return name if name and not dns_subdomain_problems(name) else "driver"


def _count_processes(bench: Bench) -> Processes:
    starts, start_seconds = bench.driver.spent["starts"]
    ends, end_seconds = bench.driver.spent["ends"]
    return Processes(
        starts=starts,
        start_seconds=round(start_seconds, 3),
        ends=ends,
        end_seconds=round(end_seconds, 3),
    )
