"""What commands about a cluster, or about a snapshot of one, share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from conformance.cli.output import print_progress, write_named
from conformance.targets.opening.options import TargetOptions
from kube.base.errors import UsageError

if TYPE_CHECKING:
    from conformance.compare.explain import ExplanationTrace, PendingExplanation

CLUSTER_FIELDS = ("cluster", "kubeconfig", "context", "name")
"""The fields of TargetOptions by which a command that only reads names its cluster."""

HOW_TO_NAME = "--cluster kubeconfig --context NAME, --cluster kind or --cluster local"


def take_snapshot(options: TargetOptions) -> dict[str, Any]:
    """Return a snapshot of the cluster that the options name; print what may not be read.

    Raises:
        UsageError: no cluster is named.
        TargetError: it gave no answer, or something needed may not be read.
    """
    from conformance.targets.cluster.capture import capture
    from conformance.targets.opening.target import open_api

    require_cluster(options)
    with open_api(options) as api:
        return capture(api, lambda line: print_progress(f"warning: {line}"))


def require_cluster(options: TargetOptions) -> None:
    """Raise UsageError if no cluster is named."""
    if options.cluster is None:
        raise UsageError(f"name the cluster: {HOW_TO_NAME}")


def write_page(file: Path, render: Callable[[], str]) -> None:
    """Write a page of a cluster, which `report.clusterpage.render_cluster` renders.

    Raises UsageError: its snapshot is malformed, or the page cannot be written.
    """
    from conformance.compare.evidence import ask_reference

    write_named(file, ask_reference(render).encode())


def write_explanations(
    file: Path, title: str, explanations: Sequence[PendingExplanation], seen: ExplanationTrace
) -> None:
    """Write a page of why pods and claims wait. Raises UsageError."""
    from conformance.report.clusterpage import render_cluster

    snapshot = seen.snapshot
    document = snapshot.to_dict() if snapshot is not None else {}
    explained = seen.explanations if snapshot is not None else None
    write_page(
        file, lambda: render_cluster(title, document, told=explanations, explained=explained)
    )
