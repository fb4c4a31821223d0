"""``dra-conformance explain``: why a claim is pending, from a cluster or a saved snapshot."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from conformance.cli.options import takes
from conformance.cli.output import printable
from conformance.errors import UsageError
from conformance.targets.options import TargetOptions


@takes("options", TargetOptions, ("cluster", "kubeconfig", "context", "name"), target="cluster")
def explain(
    subject: Annotated[
        str,
        typer.Argument(
            metavar="NAMESPACE/NAME|SNAPSHOT",
            help="ResourceClaim or Pod in a cluster, or a snapshot file of a run.",
        ),
    ],
    options: TargetOptions,
) -> None:
    """Explain why a claim is pending: for each node, which rule excluded how many devices.

    Read-only. Needs read access to slices, classes, claims and nodes.
    """
    from conformance.compare.explain import explain_file, explain_pending
    from conformance.targets.opening import open_existing

    if options.cluster is None:
        if not Path(subject).exists() and subject.count("/") == 1:
            raise UsageError(
                f"{subject}: name the cluster: --cluster kubeconfig --context NAME, "
                "--cluster kind or --cluster local; or give a snapshot file"
            )
        typer.echo(printable(explain_file(Path(subject))))
        return
    namespace, slash, name = subject.partition("/")
    if not (namespace and slash and name) or "/" in name:
        raise UsageError(f"{subject}: must be NAMESPACE/NAME of a ResourceClaim or a Pod")
    with open_existing(options) as target:
        if target is None:
            raise UsageError(f"the {options.cluster} cluster {options.name!r} is not running")
        with closing(target.scope(namespace)) as scope:
            typer.echo(printable(explain_pending(scope, name)))
