"""``dra-conformance capture``: a snapshot of a cluster, as a file."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Annotated

import typer

from conformance.cli.output import printable, write_named
from conformance.cli.snapshots import CLUSTER_FIELDS, take_snapshot
from conformance.targets.opening.options import TargetOptions
from kube.base.commandline import add_options

_COUNTED = (
    ("nodes", "nodes"),
    ("slices", "slices"),
    ("allocated", "allocated claims"),
    ("claims", "claims without devices"),
    ("pods", "pods with claims"),
)
"""Field of a snapshot's document -> what is in it, for the line that is printed at the end."""


@add_options("options", TargetOptions, CLUSTER_FIELDS, target="cluster")
def capture_command(
    options: TargetOptions,
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="FILE", help="File to write; gzipped if it ends in .gz."
        ),
    ] = Path("snapshot.json.gz"),
    rename: Annotated[
        bool,
        typer.Option(
            "--rename", help="Number namespaces, pods, claims, nodes and pools instead of naming."
        ),
    ] = False,
    rbac: Annotated[
        bool, typer.Option("--rbac", help="Print a ClusterRole with the rights needed, and exit.")
    ] = False,
) -> None:
    """Write a snapshot of a cluster's devices, claims and pods that want them.

    `explain`, `replay` and `audit` read it. Read-only. No Secrets, and of pods neither env, args,
    images, volumes nor annotations.

    Exit code: 0 written, 2 usage error, 3 no answer, or something needed may not be read.
    """
    from conformance.targets.cluster.capture import RIGHTS
    from conformance.targets.cluster.rename import replace_names

    if rbac:
        typer.echo(RIGHTS, nl=False)
        return
    snapshot = take_snapshot(options)
    data = json.dumps(replace_names(snapshot) if rename else snapshot).encode()
    # Without a time in it, the same snapshot makes the same file.
    write_named(output, gzip.compress(data, 6, mtime=0) if output.suffix == ".gz" else data)
    counts = ", ".join(f"{len(snapshot.get(field, ()))} {word}" for field, word in _COUNTED)
    typer.echo(printable(f"{output}: Kubernetes {snapshot['kubernetes']}, {counts}"))
