"""Builders that the driver's tests share."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path
from typing import Any

import pytest

from nvml_driver.core import DriverCore
from nvml_driver.model.roots import NodeRoots
from nvml_driver.nvml.library import NvmlLibrary
from nvml_driver.options import DeviceNodes, DriverOptions
from nvml_driver.simulated import profile

DRIVER = "gpu.nvidia.com"
NOWHERE = NodeRoots(sysfs=Path("/nowhere"))


def _can_make_device_files() -> bool:
    with tempfile.TemporaryDirectory() as folder:
        try:
            os.mknod(Path(folder, "null"), 0o600 | stat.S_IFCHR, os.makedev(1, 3))
        except OSError:
            return False
    return True


makes_device_files = pytest.mark.skipif(
    not _can_make_device_files(), reason="making device files takes root (CAP_MKNOD)"
)


def make_core(
    root: Path,
    *,
    shown: str | profile.Profile = "t4x4",
    node: str = "node-a",
    device_nodes: DeviceNodes = "declare",
    durable: bool = False,
) -> DriverCore:
    """A core whose directories are below ``root``; made again, it is a restarted driver."""
    options = options_below(root, node_name=node, device_nodes=device_nodes, durable=durable)
    return DriverCore(options, NvmlLibrary.load_simulated(shown))


def options_below(root: Path, **changes: Any) -> DriverOptions:
    """Of a driver whose directories are below ``root``, and which waits for no disk."""
    own: dict[str, Any] = {"node_name": "node-a", "device_nodes": "declare", "durable": False}
    return DriverOptions(cdi_root=root / "cdi", state_dir=root / "state", **{**own, **changes})


def result(device: str, request: str = "gpu", **more: Any) -> dict[str, Any]:
    return {"driver": DRIVER, "pool": "node-a", "device": device, "request": request, **more}


def make_claim(
    *results: dict[str, Any], uid: str = "uid-1", config: list[dict[str, Any]] | None = None
) -> dict[str, Any]:
    """An allocated ResourceClaim."""
    devices = {"results": list(results), **({"config": config} if config else {})}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": f"claim-{uid}", "namespace": "default", "uid": uid},
        "status": {"allocation": {"devices": devices}},
    }


def opaque(
    parameters: dict[str, Any], *requests: str, source: str = "FromClaim", driver: str = DRIVER
) -> dict[str, Any]:
    return {
        "source": source,
        "requests": list(requests),
        "opaque": {"driver": driver, "parameters": parameters},
    }


def gpu_config(interval: str) -> dict[str, Any]:
    return {
        "apiVersion": "resource.nvidia.com/v1beta1",
        "kind": "GpuConfig",
        "sharing": {"strategy": "TimeSlicing", "timeSlicingConfig": {"interval": interval}},
    }


def with_gpu(name: str = "t4x4", index: int = 0, **changes: Any) -> profile.Profile:
    """A shipped profile with one GPU changed."""
    base = profile.load_profile(name)
    gpus = list(base.gpus)
    gpus[index] = gpus[index].model_copy(update=changes)
    return base.model_copy(update={"gpus": tuple(gpus)})
