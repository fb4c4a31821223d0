"""The options of ``nvml-dra-driver``, as tables: dataclasses whose fields are options."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import typer

from kube.base.options import option_field
from nvml_driver.logs import Format as LogFormat
from nvml_driver.options import DEFAULT_DRIVER_NAME, Features
from reference_allocator.api.names import dns_subdomain_problems


def _check_subdomain(text: str, longest: int) -> None:
    """Raise ValueError for a name that cannot be part of paths and of API objects; "" can."""
    if text and (len(text) > longest or dns_subdomain_problems(text)):
        raise ValueError(
            f"{text!r} must be a DNS subdomain of at most {longest} characters, such as "
            "gpu.example.com"
        )


def _check_driver_name(text: str) -> None:
    """Raise ValueError unless it can be the name of a driver."""
    if not text:
        raise ValueError("the driver's name must not be empty")
    _check_subdomain(text, 63)  # DriverNameMaxLength in resource.k8s.io/v1


def _check_prefix(text: str) -> None:
    """Raise ValueError unless it can be part of variables and file names in containers."""
    if text and not re.fullmatch("[a-z][a-z0-9]{0,15}", text):
        raise ValueError(
            f"{text!r} must be up to 16 characters, a-z and 0-9, starting with a letter"
        )


_kubernetes = partial(option_field, group="Kubernetes")
_devices = partial(option_field, group="Devices")
_containers = partial(option_field, group="Containers")
_monitoring = partial(option_field, group="Monitoring")
_verbosity = partial(
    _monitoring, text="Log verbosity; 4: debug.", metavar="LEVEL", variable="LOG_VERBOSITY"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceFlags:
    """What is published: the options that ``slices`` and ``run`` share."""

    node_name: str = _kubernetes(
        "",
        "Name of the node. [default: the host name]",
        metavar="NAME",
        check=partial(_check_subdomain, longest=253),
    )
    driver_name: str = _kubernetes(
        DEFAULT_DRIVER_NAME,
        "Name of the driver in slices and allocations.",
        metavar="NAME",
        check=_check_driver_name,
    )
    simulate: str | None = _devices(
        None,
        "Simulate GPUs: name of a profile (t4x4, a100-40x8) or a JSON file.",
        metavar="PROFILE",
        variable="NVML_DRIVER_SIMULATE",
    )
    dynamic_mig: bool = _devices(False, "Publish every MIG device that could be created.")
    vfio: bool = _devices(False, "Publish GPUs bound to vfio-pci.")
    numa_list: bool = _devices(False, "Publish numaNode as a list (Kubernetes 1.37).")
    consumable_shares: str = _devices(
        "", "Let several claims share a device.", metavar="unlimited|memory|N"
    )

    @property
    def features(self) -> Features:
        """The features to publish. Raises typer.BadParameter: ``consumable_shares`` is invalid."""
        shares = self.consumable_shares
        try:
            return Features(
                dynamic_mig=self.dynamic_mig,
                vfio=self.vfio,
                numa_list=self.numa_list,
                consumable_shares=int(shares) if shares.isdecimal() else shares or None,  # type: ignore[arg-type]
            )
        except ValueError as error:
            raise typer.BadParameter(str(error)) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class SlicesFlags(DeviceFlags):
    """The options of ``slices``."""

    v: int = _verbosity(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFlags(DeviceFlags):
    """The options of ``run``."""

    kubeconfig: Path | None = _kubernetes(
        None, "Kubeconfig file. [default: the pod's service account]", metavar="FILE"
    )
    kubelet_registrar_directory_path: Path = _kubernetes(
        Path("/var/lib/kubelet/plugins_registry"),
        "Folder in which the kubelet looks for registration sockets.",
    )
    kubelet_plugins_directory_path: Path = _kubernetes(
        Path("/var/lib/kubelet/plugins"), "Folder of the kubelet's plugins."
    )
    state_dir: Path | None = _kubernetes(
        None,
        "Folder of the checkpoint. [default: a folder of the driver's name in the plugins folder]",
    )
    pod_uid: str = _kubernetes(
        "",
        "UID of the driver's pod; allows two instances during a rolling update "
        "(Kubernetes 1.33 and later).",
        metavar="UID",
    )
    cdi_root: Path = _containers(Path("/var/run/cdi"), "Folder for CDI specs.")
    device_root: Path | None = _containers(
        None, "Folder of the nvidia<N> device files. [default: /dev, with --simulate STATE_DIR/dev]"
    )
    device_metadata: bool = _containers(
        True, "Mount files that describe the devices into containers."
    )
    container_prefix: str = _containers(
        "",
        "Prefix for the variables and device files in containers, so that two drivers "
        "can simulate GPUs in one container.",
        metavar="PREFIX",
        check=_check_prefix,
    )
    nvidia_driver_root: Path = _containers(
        Path("/"), "Root of NVIDIA's driver on the node: / or /run/nvidia/driver."
    )
    container_driver_root: Path | None = _containers(
        None, "The same folder as seen by this process. [default: the same path]"
    )
    nvidia_cdi_hook_path: Path | None = _containers(
        None, "NVIDIA's CDI hook on the node, if its container toolkit is installed."
    )
    driver_libraries: bool = _containers(
        True, "Mount the driver's libraries and nvidia-smi into containers (never with --simulate)."
    )
    healthcheck_port: int = _monitoring(
        -1,
        "TCP port of gRPC health checks; 0: any free port, negative: disabled.",
        metavar="PORT",
        maximum=65535,
    )
    metrics_port: int = _monitoring(
        -1,
        "TCP port of Prometheus metrics; 0: any free port, negative: disabled.",
        metavar="PORT",
        maximum=65535,
    )
    v: int = _verbosity(2)
    logging_format: LogFormat = _monitoring(LogFormat.TEXT, "Format of log lines.")
