"""The suite's own driver on simulated GPUs, as a local cluster starts it.

A local cluster knows a driver as a command with an environment. What the words of this one mean is
here, and so is how they are read back from a cluster that runs.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from localkube.base import ClusterUsageError
from localkube.driverprogram import DriverProgram
from localkube.processes.tools import python_path
from nvml_driver.errors import ProfileError
from nvml_driver.options import DEFAULT_DRIVER_NAME
from nvml_driver.simulated import list_shipped_profiles
from nvml_driver.simulated.profile import load_profile

if TYPE_CHECKING:
    from localkube.cluster import LocalCluster

SIMULATE, DYNAMIC_MIG = "--simulate", "--dynamic-mig"
DRIVER_NAME, PREFIX = "--driver-name", "--container-prefix"
PROGRAM = ("-m", "nvml_driver", "run")


class Simulation(NamedTuple):
    """Our own driver on simulated GPUs.

    Attributes:
        simulate: which GPUs it shows: a profile of nvml_driver, or a file.
        dynamic_mig: whether it publishes the MIG devices that could be made.
        prefix: stands before the names of what containers get from it.
    """

    simulate: str = "t4x4"
    dynamic_mig: bool = False
    driver_name: str = DEFAULT_DRIVER_NAME
    prefix: str = ""

    def __str__(self) -> str:
        return f"{SIMULATE} {self.simulate}" + (f" {DYNAMIC_MIG}" if self.dynamic_mig else "")


def own_driver(shown: Simulation) -> DriverProgram:
    """Return the program to start; it needs nothing of its node, its nvidia-smi no C library."""
    return DriverProgram(
        name=shown.driver_name,
        command=partial(make_command, shown),
        environment={"PYTHONPATH": python_path()},
        on_node=False,
        brings_tools=False,
        kept=("state", "devices"),
        # Another boot id, and no MIG device that was made (simulated/node.py, nvml/library.py).
        lost_at_reboot=("state/boot_id", "state/nvml-state"),
        check=partial(check_simulation, shown.simulate, shown.dynamic_mig),
    )


def make_command(shown: Simulation, folder: Path) -> tuple[str, ...]:
    """Return the command line of our own driver on simulated GPUs; its files lie in ``folder``."""
    return (
        *(sys.executable, *PROGRAM),
        *(DRIVER_NAME, shown.driver_name),
        *(SIMULATE, name_or_file(shown.simulate)),
        *("--device-root", str(folder / "devices")),
        *("--state-dir", str(folder / "state")),
        *((PREFIX, shown.prefix) if shown.prefix else ()),
        *((DYNAMIC_MIG,) if shown.dynamic_mig else ()),
    )


def name_or_file(simulate: str) -> str:
    """Return a shipped profile's name as it is, a file as a path that holds in every directory."""
    is_file = simulate not in list_shipped_profiles() and Path(simulate).is_file()
    return str(Path(simulate).absolute()) if is_file else simulate


def read_simulation(command: Sequence[str]) -> Simulation | None:
    """Return what a driver that was started so shows; None where it is not our own."""
    if tuple(command[1 : 1 + len(PROGRAM)]) != PROGRAM or SIMULATE not in command:
        return None
    values_by_flag = dict(pairwise(command))
    return Simulation(
        values_by_flag[SIMULATE],
        DYNAMIC_MIG in command,
        values_by_flag[DRIVER_NAME],
        values_by_flag.get(PREFIX, ""),
    )


def check_simulation(simulate: str, dynamic_mig: bool) -> None:
    """Refuse simulated GPUs of which our driver would publish nothing. Raises ClusterUsageError."""
    try:
        profile = load_profile(simulate)
    except ProfileError as error:
        raise ClusterUsageError(f"{SIMULATE} {simulate}: {error}") from None
    if not dynamic_mig and all(
        gpu.mig_mode == "enabled" and not gpu.mig_instances for gpu in profile.shown
    ):
        raise ClusterUsageError(
            f"{SIMULATE} {simulate}: no GPU of it can be used as it is (they are in MIG mode and "
            f"have no MIG device), so there would be nothing to publish; add {DYNAMIC_MIG}"
        )


def count_devices(simulate: str) -> int:
    """Return how many devices a node has that shows these simulated GPUs."""
    return len(load_profile(simulate).shown)


def simulation_of(cluster: LocalCluster) -> Simulation | None:
    """Return the simulated GPUs that our own driver shows in the cluster that runs.

    None where there is no such cluster, or another driver or none in it.
    """
    return read_simulation(cluster.driver_command())


def change_simulation(cluster: LocalCluster, simulate: str, *, dynamic_mig: bool = False) -> None:
    """Make the drivers of a running cluster show other GPUs, which is quick.

    ``dynamic_mig``: whether they publish the MIG devices that could be made.

    Raises:
        ClusterUsageError: no such cluster runs, it has another driver, there is no such profile, or
            devices are in use.
        ClusterError: a driver did not attach.
    """
    cluster.access()
    shown_before = simulation_of(cluster)
    if shown_before is None:
        raise ClusterUsageError(
            f"local cluster {cluster.layout.name!r} does not run our own driver on simulated GPUs"
        )
    cluster.change_driver(
        own_driver(shown_before._replace(simulate=simulate, dynamic_mig=dynamic_mig))
    )
