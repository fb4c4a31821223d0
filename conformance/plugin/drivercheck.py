"""The checks of `dra-conformance driver-check` as tests of a driver's own repository.

A test that takes `dra_driver_check` runs once for each check, and `dra_driver_command`, a fixture
of the driver's own, says how the driver is started; `dra_driver_options` may be another. Next to
nothing is imported before that.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

FIXTURE = "dra_driver_check"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if FIXTURE in metafunc.fixturenames:
        from conformance.drivercheck.run import CHECKS

        metafunc.parametrize(FIXTURE, CHECKS, ids=str, indirect=True)


@pytest.fixture(scope="module")
def dra_driver_command() -> Sequence[str]:
    """The driver's program and arguments; a driver's tests have their own fixture of this name."""
    pytest.fail(
        "define a fixture dra_driver_command that returns the driver's program and arguments",
        pytrace=False,
    )


@pytest.fixture(scope="module")
def dra_driver_options() -> Mapping[str, Any]:
    """Further options of `driver-check`; a driver's tests may have their own fixture of this name.

    Any of ``rbac`` (a file), ``service_account``, ``next_driver_command`` (program and arguments)
    and ``cdi_dir`` (folders).
    """
    return {}


@pytest.fixture(scope="module")
def _dra_driver_runner(
    dra_driver_command: Sequence[str], dra_driver_options: Mapping[str, Any]
) -> Iterator[Any]:
    """Start one driver for all tests of a module."""
    from conformance.drivercheck.bench import Bench
    from conformance.drivercheck.driver import DriverUnderCheck
    from conformance.drivercheck.objects import NODE
    from conformance.drivercheck.process import CommandStarter
    from conformance.drivercheck.rbac.policy import read_policy
    from conformance.drivercheck.runner import Runner
    from kube.base.errors import UsageError

    option_names = ("rbac", "service_account", "next_driver_command", "cdi_dir")
    rbac, account, next_command, folders = map(dra_driver_options.get, option_names)
    if unknown := sorted({*dra_driver_options} - {*option_names}):
        names = f"{', '.join(unknown)}: unknown; known are {', '.join(option_names)}"
        text = f"dra_driver_options: {names}"
        pytest.fail(text, pytrace=False)
    try:
        policy = read_policy(Path(rbac), account or "", NODE) if rbac else None
    except UsageError as error:
        pytest.fail(f"dra_driver_options: {error}", pytrace=False)
    # In /tmp wherever TMPDIR is: the path of a socket has at most 107 bytes.
    with tempfile.TemporaryDirectory(prefix="dra-", dir="/tmp") as folder:
        bench = Bench(
            DriverUnderCheck(
                Path(folder),
                CommandStarter(dra_driver_command),
                cdi_folders=tuple(map(Path, folders or ())),
                policy=policy,
                next_starter=CommandStarter(next_command) if next_command else None,
            )
        )
        try:
            yield Runner(bench)
        finally:
            bench.driver.close()


@pytest.fixture
def dra_driver_check(request: pytest.FixtureRequest, _dra_driver_runner: Any) -> Callable[[], None]:
    """Make the check: a broken recommendation is an expected failure, what was not made a skip."""
    from conformance.drivercheck.check import Level
    from conformance.drivercheck.result import Outcome

    def check() -> None:
        result = _dra_driver_runner.make_check(request.param)
        text = f"{result.summary}\n{result.message}\nsource: {result.source}"
        match result.outcome:
            case Outcome.PASSED:
                return
            case Outcome.SKIPPED | Outcome.NOT_OFFERED:
                pytest.skip(result.message)
            case Outcome.FAILED if result.level is Level.RECOMMENDED:
                pytest.xfail(text)
            case _:
                pytest.fail(text, pytrace=False)

    return check
