"""A driver that has the kubelet's and the CDI folders in its code finds the check's there."""

from __future__ import annotations

import os
import shlex
import sys
import tempfile
from pathlib import Path

import pytest

from conformance.drivercheck import driver, process
from conformance.drivercheck.bench import Bench
from conformance.drivercheck.driver import DriverUnderCheck
from conformance.drivercheck.process import CommandStarter
from conformance.drivercheck.result import Outcome
from conformance.drivercheck.run import choose_checks, run
from conformance.drivercheck.violations import ViolationError

HARD_CODED = """\
#!/bin/sh
unset CDI_ROOT KUBELET_REGISTRAR_DIRECTORY_PATH KUBELET_PLUGINS_DIRECTORY_PATH
exec {python} -m nvml_driver run --simulate t4x4 --device-root {kept}/devices
"""
CHECKS = ("registration/endpoint-*", "prepare/devices-*", "cdi/ids-resolve", "cdi/gone-*")


@pytest.mark.needs_root
def test_driver_with_folders_in_its_code_is_checked(tmp_path: Path) -> None:
    program = tmp_path / "driver"
    program.write_text(HARD_CODED.format(python=shlex.quote(sys.executable), kept=tmp_path))
    program.chmod(0o755)
    with tempfile.TemporaryDirectory(prefix="dra-", dir="/tmp") as folder:
        bench = Bench(DriverUnderCheck(Path(folder), CommandStarter([str(program)])))
        try:
            found = run(bench, choose_checks(CHECKS)).checks
        finally:
            bench.driver.close()
    assert {one.name: one.message for one in found if one.outcome is not Outcome.PASSED} == {}
    assert len(found) > len(CHECKS)


def test_without_root_the_driver_is_told_what_it_may_miss(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(driver, "REGISTER_SECONDS", 0.01)
    bench = Bench(DriverUnderCheck(tmp_path, CommandStarter(["sleep", "60"])))
    try:
        bench.driver.start()
        with pytest.raises(ViolationError, match=r"without root, .* /var/lib/kubelet in its code"):
            bench.driver.await_registration()
    finally:
        bench.driver.close()


def test_path_of_the_node_is_found_outside(tmp_path: Path) -> None:
    (tmp_path / "plugins").mkdir()
    assert process.path_outside("/var/lib/kubelet/plugins", tmp_path) == f"{tmp_path}/plugins"
    for other in ("", "/run/d.sock", "/var/lib/kubelet/none", "../var/lib/kubelet/plugins"):
        assert process.path_outside(other, tmp_path) == other
