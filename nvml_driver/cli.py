"""The command ``nvml-dra-driver``: run the kubelet plugin, or print what it would publish.

Flags have the names, and the environment variables, of upstream's drivers, so that deployments
can exchange one for the other. An error that a user can do something about is one message:
exit status 2 for what was asked for, 1 for what was found.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import tempfile
import threading
from pathlib import Path
from typing import Annotated

import typer
import yaml

from nvml_driver.errors import DriverError, ProfileError
from nvml_driver.options import DEFAULT_DRIVER_NAME, DriverOptions

_LOG = logging.getLogger("nvml_driver")
app = typer.Typer(
    help="A DRA driver for NVIDIA GPUs, or for simulated ones.",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

NodeName = Annotated[
    str, typer.Option(envvar="NODE_NAME", help="The node's name; by default the host's.")
]
DriverName = Annotated[
    str, typer.Option(envvar="DRIVER_NAME", help="The driver's name in slices and allocations.")
]
Simulate = Annotated[
    str | None,
    typer.Option(
        metavar="PROFILE",
        envvar="NVML_DRIVER_SIMULATE",
        help="Show simulated GPUs: a profile's name (t4x4, a100-40x8) or a JSON file.",
    ),
]
Verbosity = Annotated[int, typer.Option("--v", help="Log verbosity; from 4 on debug messages.")]


@app.command()
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
    v: Verbosity = 2,
) -> None:
    """Serve the kubelet of this node and publish its GPUs, until SIGTERM."""
    _log_to_stderr(v)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())

    from nvml_driver.core import DriverCore
    from nvml_driver.kube import KubeClient
    from nvml_driver.library import NvmlLibrary
    from nvml_driver.plugin import KubeletPlugin
    from nvml_driver.publish import Publisher

    node = node_name or os.uname().nodename
    plugins = kubelet_plugins_directory_path
    library = NvmlLibrary.simulated(simulate) if simulate else NvmlLibrary.system()
    kube = KubeClient.connect(kubeconfig)
    options = DriverOptions(
        node_name=node,
        cdi_root=cdi_root,
        state_dir=(state_dir or plugins / driver_name).absolute(),
        driver_name=driver_name,
        device_root=device_root,
    )
    core = DriverCore(options, library)
    _LOG.info(
        "driver %s on node %s: %d %sdevices",
        *(driver_name, node, len(core.inventory)),
        "simulated " if core.inventory.simulated else "",
    )
    plugin = KubeletPlugin(
        core, kube.get_claim, plugins=plugins, registry=kubelet_registrar_directory_path
    )
    publisher = Publisher(kube, core.resource_slices, driver_name=driver_name, node_name=node)
    try:
        plugin.start()
        publisher.start()
        stop.wait()
        _LOG.info("stopping; prepared claims and published slices stay")
    finally:
        publisher.stop()
        plugin.stop()


@app.command()
def slices(
    node_name: NodeName = "",
    driver_name: DriverName = DEFAULT_DRIVER_NAME,
    simulate: Simulate = None,
    v: Verbosity = 0,
) -> None:
    """Print the ResourceSlices that this node would publish, as YAML; needs no cluster."""
    _log_to_stderr(v)
    from nvml_driver.discovery import discover
    from nvml_driver.library import NvmlLibrary
    from nvml_driver.simulated.node import make_sysfs
    from nvml_driver.slices import resource_slices

    node = node_name or os.uname().nodename
    library = NvmlLibrary.simulated(simulate) if simulate else NvmlLibrary.system()
    with tempfile.TemporaryDirectory() as scratch:
        sysfs_root = Path("/sys")
        if library.profile is not None:
            sysfs_root = Path(scratch)
            make_sysfs(library.profile, sysfs_root)
        inventory = discover(library, sysfs_root, salt=node)
    found = resource_slices(inventory, driver_name=driver_name, node_name=node)
    typer.echo(yaml.safe_dump_all(found, sort_keys=False), nl=False)
    for reason in inventory.left_out:
        typer.echo(reason, err=True)


def _log_to_stderr(verbosity: int) -> None:
    """Levels after klog's habit: 0 warnings, 1 to 3 information, 4 and more debugging."""
    level = logging.DEBUG if verbosity >= 4 else logging.INFO if verbosity else logging.WARNING
    logging.basicConfig(
        stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s: %(message)s", level=level
    )
    logging.getLogger("urllib3").setLevel(max(level, logging.INFO))


def main() -> None:
    """The console command."""
    try:
        app()
    except DriverError as error:
        print(f"nvml-dra-driver: {error}", file=sys.stderr)
        sys.exit(2 if isinstance(error, ProfileError) else 1)
