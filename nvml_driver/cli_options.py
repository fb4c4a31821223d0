"""Options that commands of ``nvml-dra-driver`` share, and those of how the driver is installed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from nvml_driver.logs import Format as LogFormat
from reference_allocator.api.names import dns_subdomain_problems


def _subdomain(text: str, longest: int) -> str:
    """A DNS subdomain, or nothing: both names become part of paths and of API objects."""
    if text and (len(text) > longest or dns_subdomain_problems(text)):
        raise typer.BadParameter(
            f"{text!r} must be a DNS subdomain of at most {longest} characters, such as "
            "gpu.example.com"
        )
    return text


def _driver_name(text: str) -> str:
    if not text:
        raise typer.BadParameter("a driver needs a name")
    return _subdomain(text, 63)  # DriverNameMaxLength in resource.k8s.io/v1


def _container_prefix(text: str) -> str:
    if text and not re.fullmatch("[a-z][a-z0-9]{0,15}", text):
        raise typer.BadParameter(f"{text!r} must be up to 16 of a-z and 0-9, a letter first")
    return text


NodeName = Annotated[
    str,
    typer.Option(
        envvar="NODE_NAME",
        callback=lambda text: _subdomain(text, 253),
        help="The node's name; by default the host's.",
    ),
]
DriverName = Annotated[
    str,
    typer.Option(
        envvar="DRIVER_NAME",
        callback=_driver_name,
        help="The driver's name in slices and allocations.",
    ),
]
ContainerPrefix = Annotated[
    str,
    typer.Option(
        envvar="CONTAINER_PREFIX",
        callback=_container_prefix,
        help="Stands before the names of the variables and device files that containers get: lets "
        "two drivers of other names show simulated GPUs in one container.",
    ),
]
HealthcheckPort = Annotated[
    int,
    typer.Option(
        envvar="HEALTHCHECK_PORT",
        max=65535,
        help="TCP port of gRPC health checks for liveness; 0: any free, negative: none.",
    ),
]
MetricsPort = Annotated[
    int,
    typer.Option(
        envvar="METRICS_PORT",
        max=65535,
        help="TCP port of Prometheus metrics; 0: any free, negative: none.",
    ),
]
Simulate = Annotated[
    str | None,
    typer.Option(
        metavar="PROFILE",
        envvar="NVML_DRIVER_SIMULATE",
        help="Show simulated GPUs: a profile's name (t4x4, a100-40x8) or a JSON file.",
    ),
]
Verbosity = Annotated[
    int, typer.Option("--v", envvar="LOG_VERBOSITY", help="Log verbosity; from 4 on debugging.")
]
LoggingFormat = Annotated[
    LogFormat, typer.Option(envvar="LOGGING_FORMAT", help="How log lines look: text or json.")
]
DynamicMig = Annotated[
    bool,
    typer.Option(
        "--dynamic-mig", envvar="DYNAMIC_MIG", help="Publish all MIG devices that could be made."
    ),
]
Vfio = Annotated[
    bool, typer.Option("--vfio", envvar="VFIO", help="Publish GPUs that vfio-pci has.")
]
NumaList = Annotated[
    bool,
    typer.Option(
        "--numa-list", envvar="NUMA_LIST", help="Publish numaNode as a list (Kubernetes 1.37)."
    ),
]
ConsumableShares = Annotated[
    str,
    typer.Option(
        metavar="unlimited|memory|N",
        envvar="CONSUMABLE_SHARES",
        help="Let several claims share a device.",
    ),
]
NvidiaDriverRoot = Annotated[
    Path,
    typer.Option(
        envvar="NVIDIA_DRIVER_ROOT",
        help="Where NVIDIA's driver is installed on the node: / or /run/nvidia/driver.",
    ),
]
ContainerDriverRoot = Annotated[
    Path | None,
    typer.Option(
        envvar="CONTAINER_DRIVER_ROOT",
        help="Where this process sees that directory; by default at the same path.",
    ),
]
CdiHook = Annotated[
    Path | None,
    typer.Option(
        "--nvidia-cdi-hook-path",
        envvar="NVIDIA_CDI_HOOK_PATH",
        help="NVIDIA's CDI hook on the node, if its container toolkit is installed there.",
    ),
]
DriverLibraries = Annotated[
    bool,
    typer.Option(
        envvar="DRIVER_LIBRARIES",
        help="Give containers the driver's libraries and nvidia-smi (never with --simulate).",
    ),
]
