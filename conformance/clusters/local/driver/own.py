"""Our own driver beside a local cluster's kubelets: which simulated GPUs it shows.

A cluster takes longer to start than a driver, so a cluster that is up can be given other GPUs.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from conformance.clusters.base import ClusterUsageError
from conformance.clusters.local.layout import NodeLayout
from conformance.clusters.local.options import DYNAMIC_MIG, SIMULATE, Simulation
from nvml_driver.errors import ProfileError
from nvml_driver.simulated import shipped
from nvml_driver.simulated.profile import load

PROGRAM = ("-m", "nvml_driver", "run")
DRIVER_NAME, PREFIX = "--driver-name", "--container-prefix"


def command(shown: Simulation, folder: Path) -> tuple[str, ...]:
    """Our own driver on simulated GPUs; what it keeps lies in the folder."""
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
    """A shipped profile's name as it is; a file by a path that holds in every directory."""
    own = simulate not in shipped() and Path(simulate).is_file()
    return str(Path(simulate).absolute()) if own else simulate


def read_simulation(started: Sequence[str]) -> Simulation | None:
    """What a driver that was started with this command shows; None where it is not our own."""
    if tuple(started[1 : 1 + len(PROGRAM)]) != PROGRAM or SIMULATE not in started:
        return None
    after = dict(pairwise(started))
    return Simulation(
        after[SIMULATE], DYNAMIC_MIG in started, after[DRIVER_NAME], after.get(PREFIX, "")
    )


def check_simulation(simulate: str, dynamic_mig: bool) -> None:
    """Refuse simulated GPUs of which our driver would publish nothing. Raises ClusterUsageError."""
    try:
        profile = load(simulate)
    except ProfileError as error:
        raise ClusterUsageError(f"{SIMULATE} {simulate}: {error}") from None
    if not dynamic_mig and all(
        gpu.mig_mode == "enabled" and not gpu.mig_instances for gpu in profile.shown
    ):
        raise ClusterUsageError(
            f"{SIMULATE} {simulate}: no GPU of it can be used as it is (they are in MIG mode and "
            f"have no MIG device), so there would be nothing to publish; add {DYNAMIC_MIG}"
        )


def forget(node: NodeLayout) -> None:
    """Remove what our driver kept on a node: the next one shows GPUs that never were in use."""
    for kept in ("state", "devices"):
        shutil.rmtree(node.driver / kept, ignore_errors=True)


def reboot(node: NodeLayout) -> None:
    """Let our drivers on a node find another boot id, and no MIG device that they made.

    What they kept stays (simulated/node.py, nvml/library.py).
    """
    for folder in (node.driver, node.other):
        for name in ("boot_id", "nvml-state"):
            (folder / "state" / name).unlink(missing_ok=True)


def shown(simulate: str) -> int:
    return len(load(simulate).shown)


def check_unused(claims: Sequence[dict[str, Any]], driver_name: str) -> None:
    """Refuse to take away devices that are in use. Raises ClusterUsageError."""
    held = [
        f"{claim['metadata']['namespace']}/{claim['metadata']['name']}"
        for claim in claims
        for result in ((claim.get("status") or {}).get("allocation") or {})
        .get("devices", {})
        .get("results", ())
        if result["driver"] == driver_name
    ]
    if held:
        raise ClusterUsageError(
            f"devices of {driver_name} are allocated to claims ({', '.join(sorted(set(held))[:5])})"
            "; delete their pods before the driver is given other devices"
        )
