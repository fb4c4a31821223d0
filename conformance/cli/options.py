"""Options that several commands share, written once."""

from __future__ import annotations

import shlex
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from conformance.errors import UsageError
from conformance.targets.options import DEFAULT_PROFILE, TargetOptions
from conformance.targets.sources import cluster_of
from nvml_driver.simulated.profile import shipped


class TargetChoice(StrEnum):
    """What scenarios run against."""

    REFERENCE = "reference"
    CLUSTER = "cluster"


class ClusterChoice(StrEnum):
    """Where a cluster comes from."""

    KUBECONFIG = "kubeconfig"
    KIND = "kind"
    LOCAL = "local"


ClusterOption = Annotated[
    ClusterChoice | None, typer.Option("--cluster", help="Where the cluster comes from.")
]
Kubeconfig = Annotated[
    Path | None,
    typer.Option(
        "--kubeconfig",
        help="File for --cluster kubeconfig; by default $KUBECONFIG, else ~/.kube/config.",
    ),
]
ContextName = Annotated[
    str,
    typer.Option(
        "--context", help="Context in it; required, the current one is never taken by accident."
    ),
]
Driver = Annotated[str, typer.Option("--driver", help="Driver profile: a shipped name or a file.")]
DriverCommand = Annotated[
    str,
    typer.Option(
        "--driver-command", help="Driver to start on each node of a local cluster, not ours."
    ),
]
Binaries = Annotated[
    Path | None,
    typer.Option("--binaries", help="Directory with the local cluster's binaries, not the cache."),
]
Nodes = Annotated[
    int, typer.Option("--nodes", help="Nodes of a local cluster; 0 is a control plane only.")
]
Name = Annotated[str, typer.Option("--name", help="Name of a local or kind cluster.")]
Simulate = Annotated[
    str | None,
    typer.Option(
        "--simulate",
        metavar="PROFILE",
        help="Simulated GPUs of our own driver: a file, or one of "
        f"{', '.join(shipped())}. [default: {DEFAULT_PROFILE}, or what a cluster that runs shows]",
    ),
]
DynamicMig = Annotated[
    bool,
    typer.Option("--dynamic-mig", help="Our own driver offers all MIG devices that can be made."),
]


FeatureGates = Annotated[
    list[str] | None,
    typer.Option(
        "--feature-gate", help="NAME=true or NAME=false, on every component of a local cluster."
    ),
]


def feature_gates(given: list[str] | None) -> dict[str, bool]:
    """Gate -> on or off.

    Raises:
        UsageError: one is not of the form NAME=true or NAME=false.
    """
    gates = {}
    for text in given or ():
        name, _, value = text.partition("=")
        if value not in {"true", "false"} or not name:
            raise UsageError(f"--feature-gate {text!r}: write NAME=true or NAME=false")
        gates[name] = value == "true"
    return gates


def split_command(text: str) -> tuple[str, ...]:
    """A command line as a list, without a shell.

    Raises:
        UsageError: a quote is not closed.
    """
    try:
        return tuple(shlex.split(text))
    except ValueError as error:
        raise UsageError(f"--driver-command {text!r}: {error}") from None


def name_context(options: TargetOptions) -> None:
    """See that somebody else's cluster is named in full, before a word is said about it.

    Raises:
        UsageError: --context is missing; the contexts of the file are listed.
    """
    if options.target == "cluster" and options.cluster == "kubeconfig" and not options.context:
        cluster_of(options).up()  # refuses without talking to a server


def say(line: str) -> None:
    """A line of progress, on standard error so that output can be piped."""
    print(line, file=sys.stderr, flush=True)
