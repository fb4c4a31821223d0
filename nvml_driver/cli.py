"""The command ``nvml-dra-driver``: run the kubelet plugin, or print what it would publish.

Flags have the names, and the environment variables, of upstream's drivers, so that deployments
can exchange one for the other. An error that a user can do something about is one message:
exit status 2 for what was asked for, 1 for what was found.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
import tempfile
import threading
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer

from nvml_driver.cli_options import (
    CdiHook,
    ConsumableShares,
    ContainerDriverRoot,
    ContainerPrefix,
    DriverLibraries,
    DriverName,
    DynamicMig,
    HealthcheckPort,
    LoggingFormat,
    MetricsPort,
    NodeName,
    NumaList,
    NvidiaDriverRoot,
    Simulate,
    Verbosity,
    Vfio,
)
from nvml_driver.errors import DriverError, ProfileError
from nvml_driver.logs import Format as LogFormat
from nvml_driver.logs import configure
from nvml_driver.nvml.installation import DriverRoot
from nvml_driver.options import DEFAULT_DRIVER_NAME, DriverOptions, Features

_LOG = logging.getLogger("nvml_driver")
app = typer.Typer(
    help="A DRA driver for NVIDIA GPUs, or for simulated ones.",
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,  # the plain help does not cut the names of options
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"nvml-dra-driver {version('dra-conformance')}")
        raise typer.Exit


@app.callback()
def _options(
    shown: Annotated[
        bool,
        typer.Option("--version", is_eager=True, callback=_show_version, help="Show the version."),
    ] = False,
) -> None:
    """A DRA driver for NVIDIA GPUs, or for simulated ones."""


@app.command(short_help="Serve this node's kubelet and publish its GPUs.")
def run(
    node_name: NodeName = "",
    kubeconfig: Annotated[
        Path | None,
        typer.Option(envvar="KUBECONFIG", help="By default the pod's service account."),
    ] = None,
    cdi_root: Annotated[
        Path, typer.Option(envvar="CDI_ROOT", help="Where CDI specs are written.")
    ] = Path("/var/run/cdi"),
    kubelet_registrar_directory_path: Annotated[
        Path,
        typer.Option(
            envvar="KUBELET_REGISTRAR_DIRECTORY_PATH",
            help="Where the kubelet looks for registration sockets.",
        ),
    ] = Path("/var/lib/kubelet/plugins_registry"),
    kubelet_plugins_directory_path: Annotated[
        Path,
        typer.Option(
            envvar="KUBELET_PLUGINS_DIRECTORY_PATH", help="Where plugins have their directories."
        ),
    ] = Path("/var/lib/kubelet/plugins"),
    driver_name: DriverName = DEFAULT_DRIVER_NAME,
    simulate: Simulate = None,
    device_root: Annotated[
        Path | None,
        typer.Option(
            envvar="DEVICE_ROOT",
            help="Where nvidia<N> device files are: /dev, or with --simulate STATE_DIR/dev.",
        ),
    ] = None,
    state_dir: Annotated[
        Path | None,
        typer.Option(
            envvar="STATE_DIR", help="Checkpoint and own files; by default PLUGINS/DRIVER."
        ),
    ] = None,
    pod_uid: Annotated[
        str,
        typer.Option(
            envvar="POD_UID",
            help="Of the driver's pod: lets two instances run during a rolling update "
            "(Kubernetes 1.33 and later).",
        ),
    ] = "",
    device_metadata: Annotated[
        bool,
        typer.Option(
            "--device-metadata/--no-device-metadata",
            envvar="DEVICE_METADATA",
            help="Give containers files that describe their devices.",
        ),
    ] = True,
    container_prefix: ContainerPrefix = "",
    dynamic_mig: DynamicMig = False,
    vfio: Vfio = False,
    numa_list: NumaList = False,
    consumable_shares: ConsumableShares = "",
    nvidia_driver_root: NvidiaDriverRoot = Path("/"),
    container_driver_root: ContainerDriverRoot = None,
    nvidia_cdi_hook_path: CdiHook = None,
    driver_libraries: DriverLibraries = True,
    healthcheck_port: HealthcheckPort = -1,
    metrics_port: MetricsPort = -1,
    v: Verbosity = 2,
    logging_format: LoggingFormat = LogFormat.TEXT,
) -> None:
    """Serve the kubelet of this node and publish its GPUs, until SIGTERM."""
    configure(v, logging_format)
    if container_prefix and not simulate:
        raise typer.BadParameter("--container-prefix is for simulated GPUs (--simulate)")
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())

    from nvml_driver.cluster.kube import KubeClient
    from nvml_driver.nvml.library import NvmlLibrary
    from nvml_driver.running import RunningDriver

    root = DriverRoot(
        host=nvidia_driver_root, container=container_driver_root or nvidia_driver_root
    )
    state = (state_dir or kubelet_plugins_directory_path / driver_name).absolute()
    if simulate:
        # MIG devices survive a restart of the driver, as on hardware; tests put events in.
        library = NvmlLibrary.simulated(
            simulate, state_file=state / "nvml-state", control_file=state / "nvml-control"
        )
    else:
        library = NvmlLibrary.system(
            None if root.container == Path("/") else root.library("libnvidia-ml.so.1")
        )
    options = DriverOptions(
        node_name=node_name or os.uname().nodename,
        cdi_root=cdi_root,
        state_dir=state,
        driver_name=driver_name,
        device_root=device_root,
        device_metadata=device_metadata,
        container_prefix=container_prefix,
        driver_root=root,
        driver_libraries=driver_libraries,
        cdi_hook=nvidia_cdi_hook_path,
        features=_features(dynamic_mig, vfio, numa_list, consumable_shares),
    )
    driver = RunningDriver(
        options,
        library,
        KubeClient.connect(kubeconfig),
        plugins=kubelet_plugins_directory_path,
        registry=kubelet_registrar_directory_path,
        pod_uid=pod_uid,
        healthcheck_port=healthcheck_port,
        metrics_port=metrics_port,
    )
    try:
        driver.start()
        stop.wait()
        _LOG.info("stopping; prepared claims and published slices stay")
    finally:
        driver.stop()


@app.command(short_help="Print the ResourceSlices of this node.")
def slices(
    node_name: NodeName = "",
    driver_name: DriverName = DEFAULT_DRIVER_NAME,
    simulate: Simulate = None,
    dynamic_mig: DynamicMig = False,
    vfio: Vfio = False,
    numa_list: NumaList = False,
    consumable_shares: ConsumableShares = "",
    v: Verbosity = 0,
) -> None:
    """Print the ResourceSlices that this node would publish, as YAML; needs no cluster."""
    configure(v)
    from nvml_driver.devices.discovery import discover
    from nvml_driver.devices.slices import resource_slices
    from nvml_driver.model.roots import NodeRoots
    from nvml_driver.nvml.library import NvmlLibrary
    from nvml_driver.simulated.node import make_node

    node = node_name or os.uname().nodename
    features = _features(dynamic_mig, vfio, numa_list, consumable_shares)
    library = NvmlLibrary.simulated(simulate) if simulate else NvmlLibrary.system()
    with tempfile.TemporaryDirectory() as scratch:
        shown = library.profile
        roots = NodeRoots() if shown is None else make_node(shown, Path(scratch))
        inventory = discover(library, roots, salt=node, features=features)
    found = resource_slices(inventory, driver_name=driver_name, node_name=node)
    import yaml

    typer.echo(yaml.safe_dump_all(found, sort_keys=False), nl=False)


@app.command(short_help="Print this node's GPUs as a profile for --simulate.")
def dump(
    simulate: Annotated[
        str | None,
        typer.Option(metavar="PROFILE", help="Record simulated GPUs instead of this node's."),
    ] = None,
    name: Annotated[str, typer.Option(help="The profile's name.")] = "recorded",
    keep_uuids: Annotated[
        bool, typer.Option("--keep-uuids", help="Record the GPUs' real UUIDs.")
    ] = False,
    sysfs_root: Annotated[Path, typer.Option(envvar="SYSFS_ROOT", help="Where sysfs is.")] = Path(
        "/sys"
    ),
) -> None:
    """Print this node's GPUs as a profile for --simulate, as JSON; changes nothing."""
    from nvml_driver.dump import record
    from nvml_driver.model.roots import NodeRoots
    from nvml_driver.nvml.library import NvmlLibrary

    library = NvmlLibrary.simulated(simulate) if simulate else NvmlLibrary.system()
    found = record(library, NodeRoots(sysfs=sysfs_root), name=name, keep_uuids=keep_uuids)
    typer.echo(json.dumps(found, indent=2) + os.linesep, nl=False)


def _features(dynamic_mig: bool, vfio: bool, numa_list: bool, shares: str) -> Features:
    try:
        return Features(
            dynamic_mig=dynamic_mig,
            vfio=vfio,
            numa_list=numa_list,
            consumable_shares=int(shares) if shares.isdecimal() else shares or None,  # type: ignore[arg-type]
        )
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def main() -> None:
    """The console command."""
    try:
        app()
    except DriverError as error:
        print(f"nvml-dra-driver: {error}", file=sys.stderr)
        sys.exit(2 if isinstance(error, ProfileError) else 1)
