"""The options of ``nvml-dra-driver``, as tables: dataclasses whose fields are options."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_type_hints

import typer

from nvml_driver.logs import Format as LogFormat
from nvml_driver.options import DEFAULT_DRIVER_NAME, Features
from reference_allocator.api.names import dns_subdomain_problems

T = TypeVar("T")


def takes(table: type[T]) -> Callable[[Callable[[T], None]], Callable[..., None]]:
    """Give a command the fields of a dataclass as options; it is called with an instance.

    A field's name gives its flag, ``--node-name``, and its environment variable, ``NODE_NAME``.
    """

    def decorate(command: Callable[[T], None]) -> Callable[..., None]:
        def call(**given: Any) -> None:
            command(table(**given))

        hints = get_type_hints(table)
        parameters = []
        for one in fields(table):  # type: ignore[arg-type]
            about = one.metadata["option"]
            about.envvar = about.envvar or one.name.upper()
            if one.default is False or len(one.name) == 1:  # no --no-..., and --v in full
                about.param_decls = (f"--{one.name.replace('_', '-')}",)
            hints[one.name] = Annotated[hints[one.name], about]
            parameters.append(
                inspect.Parameter(
                    one.name,
                    inspect.Parameter.KEYWORD_ONLY,
                    default=one.default,
                    annotation=hints[one.name],
                )
            )
        call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        call.__annotations__ = hints
        call.__name__, call.__doc__ = command.__name__, command.__doc__
        return call

    return decorate


def _subdomain(text: str, longest: int) -> str:
    """A DNS subdomain or "": names become part of paths and of API objects."""
    if text and (len(text) > longest or dns_subdomain_problems(text)):
        raise typer.BadParameter(
            f"{text!r} must be a DNS subdomain of at most {longest} characters, such as "
            "gpu.example.com"
        )
    return text


def _node_name(text: str) -> str:
    return _subdomain(text, 253)


def _driver_name(text: str) -> str:
    if not text:
        raise typer.BadParameter("the driver's name must not be empty")
    return _subdomain(text, 63)  # DriverNameMaxLength in resource.k8s.io/v1


def _container_prefix(text: str) -> str:
    if text and not re.fullmatch("[a-z][a-z0-9]{0,15}", text):
        raise typer.BadParameter(
            f"{text!r} must be up to 16 characters, a-z and 0-9, starting with a letter"
        )
    return text


def _group(name: str) -> Callable[..., Any]:
    def option(default: Any, text: str, *flags: str, **more: Any) -> Any:
        about = typer.Option(*flags, help=text, rich_help_panel=name, **more)
        return field(default=default, metadata={"option": about})

    return option


_node, _publish, _container, _served = map(
    _group, ("Kubernetes", "Devices", "Containers", "Monitoring")
)
_verbosity = partial(
    _served, text="Log verbosity; 4: debug.", metavar="LEVEL", envvar="LOG_VERBOSITY"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceFlags:
    """What is published: the options that ``slices`` and ``run`` share."""

    node_name: str = _node(
        "", "Name of the node. [default: the host name]", metavar="NAME", callback=_node_name
    )
    driver_name: str = _node(
        DEFAULT_DRIVER_NAME,
        "Name of the driver in slices and allocations.",
        metavar="NAME",
        callback=_driver_name,
    )
    simulate: str | None = _publish(
        None,
        "Simulate GPUs: name of a profile (t4x4, a100-40x8) or a JSON file.",
        metavar="PROFILE",
        envvar="NVML_DRIVER_SIMULATE",
    )
    dynamic_mig: bool = _publish(False, "Publish every MIG device that could be created.")
    vfio: bool = _publish(False, "Publish GPUs bound to vfio-pci.")
    numa_list: bool = _publish(False, "Publish numaNode as a list (Kubernetes 1.37).")
    consumable_shares: str = _publish(
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

    kubeconfig: Path | None = _node(
        None, "Kubeconfig file. [default: the pod's service account]", metavar="FILE"
    )
    kubelet_registrar_directory_path: Path = _node(
        Path("/var/lib/kubelet/plugins_registry"),
        "Folder in which the kubelet looks for registration sockets.",
    )
    kubelet_plugins_directory_path: Path = _node(
        Path("/var/lib/kubelet/plugins"), "Folder of the kubelet's plugins."
    )
    state_dir: Path | None = _node(
        None,
        "Folder of the checkpoint. [default: a folder of the driver's name in the plugins folder]",
    )
    pod_uid: str = _node(
        "",
        "UID of the driver's pod; allows two instances during a rolling update "
        "(Kubernetes 1.33 and later).",
        metavar="UID",
    )
    cdi_root: Path = _container(Path("/var/run/cdi"), "Folder for CDI specs.")
    device_root: Path | None = _container(
        None, "Folder of the nvidia<N> device files. [default: /dev, with --simulate STATE_DIR/dev]"
    )
    device_metadata: bool = _container(
        True, "Mount files that describe the devices into containers."
    )
    container_prefix: str = _container(
        "",
        "Prefix for the variables and device files in containers, so that two drivers "
        "can simulate GPUs in one container.",
        metavar="PREFIX",
        callback=_container_prefix,
    )
    nvidia_driver_root: Path = _container(
        Path("/"), "Root of NVIDIA's driver on the node: / or /run/nvidia/driver."
    )
    container_driver_root: Path | None = _container(
        None, "The same folder as seen by this process. [default: the same path]"
    )
    nvidia_cdi_hook_path: Path | None = _container(
        None, "NVIDIA's CDI hook on the node, if its container toolkit is installed."
    )
    driver_libraries: bool = _container(
        True, "Mount the driver's libraries and nvidia-smi into containers (never with --simulate)."
    )
    healthcheck_port: int = _served(
        -1,
        "TCP port of gRPC health checks; 0: any free port, negative: disabled.",
        metavar="PORT",
        max=65535,
    )
    metrics_port: int = _served(
        -1,
        "TCP port of Prometheus metrics; 0: any free port, negative: disabled.",
        metavar="PORT",
        max=65535,
    )
    v: int = _verbosity(2)
    logging_format: LogFormat = _served(LogFormat.TEXT, "Format of log lines.")
