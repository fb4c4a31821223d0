"""The command ``nvml-dra-driver``: run the kubelet plugin, or print what it would publish.

Flags have the names, and the environment variables, of upstream's drivers, so deployments can
replace one by the other. Expected errors are one message: exit status 2 for wrong usage, 1 for
everything else.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer

from kube.base.commandline import HelpCommand, add_options
from nvml_driver.cli_options import RunFlags, SlicesFlags
from nvml_driver.errors import DriverError, ProfileError
from nvml_driver.logs import configure_logging
from nvml_driver.nvml.installation import DriverRoot
from nvml_driver.options import DriverOptions

_LOG = logging.getLogger("nvml_driver")
_ENDING = (signal.SIGTERM, signal.SIGINT)
app = typer.Typer(
    help="A DRA driver for NVIDIA GPUs, or for simulated ones.",
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,  # the plain help does not cut the names of options
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80},
)


def _show_version(requested: bool) -> None:
    if requested:
        typer.echo(f"nvml-dra-driver {version('dra-conformance')}")
        raise typer.Exit


@app.callback()
def _options(
    show_version: Annotated[
        bool,
        typer.Option(
            "--version", is_eager=True, callback=_show_version, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """A DRA driver for NVIDIA GPUs, or for simulated ones."""


@app.command(cls=HelpCommand, short_help="Serve this node's kubelet and publish its GPUs.")
@add_options("flags", RunFlags, variables=True)
def run(flags: RunFlags) -> None:
    """Serve the kubelet of this node and publish its GPUs, until SIGTERM."""
    configure_logging(flags.v, flags.logging_format)
    if flags.container_prefix and not flags.simulate:
        raise typer.BadParameter("--container-prefix requires simulated GPUs (--simulate)")
    # Blocked here and in all threads, until it is waited for: a handler that sets an Event is not
    # run if the signal comes just before the wait goes to sleep.
    signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)

    from nvml_driver.cluster.kube import KubeClient
    from nvml_driver.nvml.library import NvmlLibrary
    from nvml_driver.running import RunningDriver

    root = DriverRoot(
        host=flags.nvidia_driver_root,
        container=flags.container_driver_root or flags.nvidia_driver_root,
    )
    plugins = flags.kubelet_plugins_directory_path
    state = (flags.state_dir or plugins / flags.driver_name).absolute()
    if flags.simulate:
        # MIG devices survive a restart of the driver, as on hardware; tests inject events.
        library = NvmlLibrary.load_simulated(
            flags.simulate, state_file=state / "nvml-state", control_file=state / "nvml-control"
        )
    else:
        library = NvmlLibrary.load_system(
            None if root.container == Path("/") else root.find_library("libnvidia-ml.so.1")
        )
    options = DriverOptions(
        node_name=flags.node_name or os.uname().nodename,
        cdi_root=flags.cdi_root,
        state_dir=state,
        driver_name=flags.driver_name,
        device_root=flags.device_root,
        device_metadata=flags.device_metadata,
        container_prefix=flags.container_prefix,
        driver_root=root,
        driver_libraries=flags.driver_libraries,
        cdi_hook=flags.nvidia_cdi_hook_path,
        features=flags.features,
    )
    driver = RunningDriver(
        options,
        library,
        KubeClient.connect(flags.kubeconfig),
        plugins=plugins,
        registry=flags.kubelet_registrar_directory_path,
        pod_uid=flags.pod_uid,
        healthcheck_port=flags.healthcheck_port,
        metrics_port=flags.metrics_port,
    )
    try:
        driver.start()
        signal.sigwait(_ENDING)
        _LOG.info("stopping; prepared claims and published slices stay")
    finally:
        driver.stop()


@app.command(cls=HelpCommand, short_help="Print the ResourceSlices of this node.")
@add_options("flags", SlicesFlags, variables=True)
def slices(flags: SlicesFlags) -> None:
    """Print the ResourceSlices that this node would publish, as YAML; needs no cluster."""
    configure_logging(flags.v)
    from nvml_driver.devices.discovery import discover_devices
    from nvml_driver.devices.slices import resource_slices
    from nvml_driver.model.roots import NodeRoots
    from nvml_driver.nvml.library import NvmlLibrary
    from nvml_driver.simulated.node import make_node

    node = flags.node_name or os.uname().nodename
    library = (
        NvmlLibrary.load_simulated(flags.simulate) if flags.simulate else NvmlLibrary.load_system()
    )
    with tempfile.TemporaryDirectory() as scratch:
        profile = library.profile
        roots = NodeRoots() if profile is None else make_node(profile, Path(scratch))
        inventory = discover_devices(library, roots, salt=node, features=flags.features)
    published_slices = resource_slices(inventory, driver_name=flags.driver_name, node_name=node)
    import yaml

    typer.echo(yaml.safe_dump_all(published_slices, sort_keys=False), nl=False)


@app.command(cls=HelpCommand, short_help="Print this node's GPUs as a profile for --simulate.")
def dump(
    simulate: Annotated[
        str | None, typer.Option(metavar="PROFILE", help="Record these simulated GPUs instead.")
    ] = None,
    name: Annotated[str, typer.Option(metavar="NAME", help="Name of the profile.")] = "recorded",
    keep_uuids: Annotated[
        bool, typer.Option("--keep-uuids", help="Record the GPUs' real UUIDs.")
    ] = False,
    sysfs_root: Annotated[Path, typer.Option(envvar="SYSFS_ROOT", help="Root of sysfs.")] = Path(
        "/sys"
    ),
) -> None:
    """Print this node's GPUs as a profile for --simulate, as JSON; changes nothing."""
    from nvml_driver.dump import record_gpus
    from nvml_driver.model.roots import NodeRoots
    from nvml_driver.nvml.library import NvmlLibrary

    library = NvmlLibrary.load_simulated(simulate) if simulate else NvmlLibrary.load_system()
    profile = record_gpus(library, NodeRoots(sysfs=sysfs_root), name=name, keep_uuids=keep_uuids)
    typer.echo(json.dumps(profile, indent=2) + os.linesep, nl=False)


@app.command(
    cls=HelpCommand,
    short_help="Start a program that sees simulated GPUs.",
    context_settings={"allow_interspersed_args": False},
)
def simulate(
    program: Annotated[
        list[str], typer.Argument(metavar="-- PROGRAM [ARGUMENT]...", help="What is started.")
    ],
    profile: Annotated[
        str, typer.Option(metavar="PROFILE", help="The GPUs: a profile's name or file.")
    ] = "t4x4",
) -> None:
    """Start a program that sees simulated GPUs, for example: simulate -- nvitop -1.

    Whatever loads libnvidia-ml.so.1 gets the simulated one; the program needs no change, the
    machine no GPU. The exit status is the program's.
    """
    from nvml_driver.simulated.profile import load_profile
    from nvml_driver.simulated.programs import run_program

    raise typer.Exit(run_program(load_profile(profile), program))


def main() -> None:
    """Run the command; a DriverError is one line on standard error and the exit status."""
    try:
        app()
    except DriverError as error:
        print(f"nvml-dra-driver: {error}", file=sys.stderr)
        sys.exit(2 if isinstance(error, ProfileError) else 1)
