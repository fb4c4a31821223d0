"""``dra-conformance explain``: why claims of a cluster, or of a snapshot of one, are pending."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from conformance.cli.options import Html, TextOrJson
from conformance.cli.output import printable
from conformance.cli.snapshots import (
    CLUSTER_FIELDS,
    HOW_TO_NAME,
    GivenFiles,
    Kubernetes,
    refuse_kubernetes,
    take_snapshot,
    write_explanations,
)
from conformance.targets.opening.options import TargetOptions
from kube.base.commandline import add_options
from kube.base.errors import ExitCode, UsageError


@add_options("options", TargetOptions, CLUSTER_FIELDS, target="cluster")
def explain_command(
    subjects: Annotated[
        list[str],
        typer.Argument(
            metavar="[SNAPSHOT] [NAMESPACE/NAME]...",
            help="A ResourceClaim or Pod of a cluster, or of a snapshot or a dump (a file, a folder"
            " or - for standard input); of that alone, all that waits.",
            show_default=False,
        ),
    ],
    options: TargetOptions,
    output: TextOrJson = "text",
    html: Html = None,
    kubernetes: Kubernetes = "",
    together: Annotated[
        bool,
        typer.Option(
            "--together", help="Of two Pods with devices: which attributes these have in common."
        ),
    ] = False,
) -> None:
    """Explain why a claim is pending: for each node, which rule excluded how many devices.

    Also says who holds them, and the smallest change that makes it fit. Read-only;
    `capture --rbac` prints the rights.

    Exit code: 0 explained, 2 usage error or no such claim, 3 the cluster gave no answer, or a part
    of what was given could not be read.
    """
    from conformance.compare.explain import (
        ExplanationTrace,
        explain_file,
        explain_snapshot,
        read_snapshot,
    )
    from conformance.compare.together import compare_pods

    seen, given = ExplanationTrace(), GivenFiles(kubernetes)
    names = subjects if options.cluster is not None else subjects[1:]
    if len(names) > (2 if together else 1):
        raise UsageError(f"{names[-1]}: give one snapshot and one NAMESPACE/NAME")
    if together and len(names) != 2:
        raise UsageError("--together: give NAMESPACE/NAME of two Pods")
    if options.cluster is not None:
        refuse_kubernetes(kubernetes)
        if any(name.count("/") != 1 or not all(name.split("/")) for name in names):
            raise UsageError(f"{names[0]}: must be NAMESPACE/NAME of a ResourceClaim or a Pod")
        snapshot = read_snapshot(take_snapshot(options))
    else:
        file = subjects[0]
        if file != "-" and not Path(file).exists() and file.count("/") == 1:
            raise UsageError(f"{file}: name the cluster: {HOW_TO_NAME}; or give a snapshot file")
    if together:
        if options.cluster is None:
            snapshot = read_snapshot(given.read(Path(file)))
        common = compare_pods(snapshot, *names)
        shown = json.dumps(asdict(common), indent=2) if output == "json" else printable(common.text)
        typer.echo(shown)
        raise typer.Exit(given.conclude(ExitCode.CONFORMANT))
    if options.cluster is not None:
        explanations = explain_snapshot(snapshot, names[0], seen=seen)
    else:
        explanations = explain_file(Path(file), "".join(names), seen, given.read)
    if html is not None:
        write_explanations(html, "Why claims are pending", explanations, seen)
    if output == "json":
        typer.echo(json.dumps([asdict(item) for item in explanations], indent=2))
    else:
        typer.echo(printable("\n".join(item.text for item in explanations)))
    raise typer.Exit(given.conclude(ExitCode.CONFORMANT))
