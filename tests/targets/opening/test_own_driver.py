from __future__ import annotations

import sys
from pathlib import Path

import pytest

from conformance.targets.opening.own_driver import (
    Simulation,
    make_command,
    own_driver,
    read_simulation,
)
from localkube.base import ClusterUsageError
from localkube.driver.spec import driver_spec, reboot
from localkube.layout import Layout

LAYOUT = Layout("a", Path("/s/a"))


def test_our_own_driver_needs_nothing_of_its_node() -> None:
    assert driver_spec(LAYOUT, own_driver(Simulation()), 2).inside == ""


def test_our_own_driver_keeps_its_files_in_its_folder() -> None:
    started = driver_spec(LAYOUT, own_driver(Simulation("a100-40x8")), 1).command
    assert started[:4] == (sys.executable, "-m", "nvml_driver", "run")
    assert started[started.index("--simulate") + 1] == "a100-40x8"
    assert "--dynamic-mig" not in started
    assert started[started.index("--driver-name") + 1] == "gpu.nvidia.com"
    for option in ("--device-root", "--state-dir"):
        assert started[started.index(option) + 1].startswith("/s/a/n1/d/")


def test_our_own_driver_finds_a_profiles_file_from_every_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.json").touch()
    started = driver_spec(LAYOUT, own_driver(Simulation("mine.json")), 1).command
    assert started[started.index("--simulate") + 1] == str(tmp_path / "mine.json")


@pytest.mark.parametrize(
    "shown",
    [
        Simulation("t4x4", False, "gpu.nvidia.com"),
        Simulation("a30x4", True, "gpu.other.example", "OTHER"),
    ],
)
def test_what_our_own_driver_shows_is_read_from_how_it_was_started(shown: Simulation) -> None:
    assert read_simulation(make_command(shown, LAYOUT.node(1).driver)) == shown


def test_what_another_driver_shows_is_not_known() -> None:
    assert read_simulation(("/bin/driver", "--simulate", "t4x4")) is None


def test_simulated_gpus_are_checked_before_anything_starts() -> None:
    own_driver(Simulation("a30x4", dynamic_mig=True)).check()
    own_driver(Simulation("mixed")).check()
    with pytest.raises(ClusterUsageError, match=r"--simulate nope.*shipped: .*a30x4.*t4x4"):
        own_driver(Simulation("nope")).check()
    with pytest.raises(ClusterUsageError, match=r"--simulate a30x4.*add --dynamic-mig"):
        own_driver(Simulation("a30x4")).check()


def test_a_reboot_takes_the_boot_id_and_mig_devices_of_both_drivers(tmp_path: Path) -> None:
    node = Layout("a", tmp_path).node(1)
    for folder in (node.driver, node.other):
        (folder / "state").mkdir(parents=True)
        for name in ("boot_id", "nvml-state", "checkpoint.json"):
            (folder / "state" / name).touch()
    reboot(node, own_driver(Simulation()), own_driver(Simulation(driver_name="other.example.com")))
    for folder in (node.driver, node.other):
        assert [path.name for path in (folder / "state").iterdir()] == ["checkpoint.json"]
