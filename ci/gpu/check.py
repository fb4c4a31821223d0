"""Does the driver tell the truth about this machine's GPUs? Run by ``ci/gpu/check``, no cluster.

Exit status 0: yes, 1: no, with each difference; 2: it cannot be checked here.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from kube.cdi.reading import resolve
from nvml_driver.core import DriverCore
from nvml_driver.errors import DriverError
from nvml_driver.model.inventory import Device
from nvml_driver.nvml.library import NvmlLibrary, normalize_version
from nvml_driver.options import DriverOptions
from reference_allocator.allocator import Allocator
from reference_allocator.api.defaulting import default_claim
from reference_allocator.features import Features
from reference_allocator.index import Index

FIELDS = ("uuid", "name", "pci.bus_id", "driver_version", "memory.total", "compute_cap")
KUBERNETES = "1.37.2"
_MIB = 2**20


def ask_nvidia_smi(command: str) -> list[dict[str, str]]:
    """What nvidia-smi says of each GPU, field to text; GPUs in its order.

    Raises:
        DriverError: it is not there or fails.
    """
    program = shutil.which(command)
    if program is None:
        raise DriverError(f"{command} is not here: this needs a machine with NVIDIA's driver")
    done = subprocess.run(
        [program, f"--query-gpu={','.join(FIELDS)}", "--format=csv,noheader,nounits"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    if done.returncode != 0:
        raise DriverError(f"{program} failed: {(done.stderr or done.stdout).strip()}")
    lines = [line.split(", ") for line in done.stdout.splitlines() if line.strip()]
    return [dict(zip(FIELDS, (word.strip() for word in line), strict=True)) for line in lines]


def expected(said: dict[str, str]) -> dict[str, Any]:
    """nvidia-smi's words as the driver should publish them; what it does not know is left out."""
    known = {name: text for name, text in said.items() if not text.startswith("[")}
    found: dict[str, Any] = {"uuid": known.get("uuid"), "productName": known.get("name")}
    bus = known.get("pci.bus_id", "").lower()
    found["resource.kubernetes.io/pciBusID"] = bus[4:] if len(bus) == 16 else bus or None
    found["driverVersion"] = normalize_version(known.get("driver_version", ""))
    found["cudaComputeCapability"] = normalize_version(known.get("compute_cap", ""))
    if "memory.total" in known:
        found["memory (MiB)"] = int(known["memory.total"])
    return {name: value for name, value in found.items() if value is not None}


def published(device: Device) -> dict[str, Any]:
    """The same of a device, as published."""
    found: dict[str, Any] = {name: one.value for name, one in device.attributes.items()}
    if "memory" in device.capacity:
        found["memory (MiB)"] = device.capacity["memory"] // _MIB
    return found


def compare(core: DriverCore, said: list[dict[str, str]]) -> list[str]:
    """Each difference in words; GPUs are matched by UUID."""
    problems = []
    by_uuid = {device.uuid: device for device in core.inventory if device.kind == "full"}
    left_out = len(core.inventory.left_out)
    for one in map(expected, said):
        device = by_uuid.pop(one.get("uuid"), None)
        if device is None:
            problems.append(f"GPU {one.get('uuid')} is not published ({left_out} were left out)")
            continue
        ours = published(device)
        problems += [
            f"{device.name}: {name} is published as {ours.get(name)!r}, nvidia-smi says {value!r}"
            for name, value in one.items()
            if ours.get(name) != value
        ]
    problems += [f"{d.name} is published, nvidia-smi does not know it" for d in by_uuid.values()]
    return problems


def allocate(core: DriverCore) -> dict[str, Any]:
    """A claim for one GPU, allocated by the reference allocator from the driver's slices.

    Raises:
        DriverError: it finds none.
    """
    node_name, driver = core.options.node_name, core.options.driver_name
    selector = f"device.driver == '{driver}' && device.attributes['{driver}'].type == 'gpu'"
    device_class = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": driver},
        "spec": {"selectors": [{"cel": {"expression": selector}}]},
    }
    request = {"name": "gpu", "exactly": {"deviceClassName": driver}}
    claim: dict[str, Any] = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "check", "namespace": "default", "uid": "gpu-check"},
        "spec": {"devices": {"requests": [request]}},
    }
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": node_name}}
    features = Features.for_version(KUBERNETES)
    index = Index(features, core.resource_slices(), [device_class])
    outcome = Allocator(index).allocate(node, [default_claim(claim)])
    if outcome.kind != "allocated":
        raise DriverError(f"the reference allocator gives no GPU: {outcome.error}")
    return {**claim, "status": {"allocation": outcome.allocations[0]}}


def check(options: argparse.Namespace, root: Path) -> list[str]:
    """Run all of it below a scratch directory; the differences."""
    simulated = options.simulate is not None
    library = (
        NvmlLibrary.load_simulated(options.simulate) if simulated else NvmlLibrary.load_system()
    )
    said = (
        None
        if simulated and not options.nvidia_smi
        else ask_nvidia_smi(options.nvidia_smi or "nvidia-smi")
    )
    core = DriverCore(
        DriverOptions(
            node_name=os.uname().nodename,
            cdi_root=root / "cdi",
            state_dir=root / "state",
            device_nodes="declare",
        ),
        library,
    )
    for reason in core.inventory.left_out:
        print(reason)
    print(f"{len(core.inventory)} devices in {len(core.resource_slices())} slices")
    problems = [] if said is None else compare(core, said)
    claim = allocate(core)
    devices = core.prepare(claim)
    edits = resolve([root / "cdi"], [i for device in devices for i in device.cdi_device_ids])
    nodes = [node.path for node in edits.device_nodes]
    print(f"prepared {', '.join(d.device_name for d in devices)}: {', '.join(nodes)}")
    if not simulated:
        problems += [f"device file {path} is not here" for path in nodes if not Path(path).exists()]
    core.unprepare("gpu-check")
    left = [path.name for path in (root / "cdi").iterdir()]
    return problems + [f"{name} is left after unprepare" for name in left]


def main() -> int:
    """Check and report."""
    parser = argparse.ArgumentParser(prog="ci/gpu/check", description=__doc__)
    parser.add_argument("--simulate", metavar="PROFILE", help="simulated GPUs, to try the check")
    parser.add_argument("--nvidia-smi", metavar="PATH", help="another nvidia-smi")
    options = parser.parse_args()
    try:
        with tempfile.TemporaryDirectory(prefix="gpu-check-") as folder:
            problems = check(options, Path(folder))
    except DriverError as error:
        print(f"gpu-check: {error}", file=sys.stderr)
        return 2
    for problem in problems:
        print(f"DIFFERENT: {problem}")
    print("differences: " + str(len(problems)) if problems else "the driver and nvidia-smi agree")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
