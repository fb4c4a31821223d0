"""What commands about a cluster, or about a snapshot of one, share."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from conformance.cli.output import print_progress, write_named
from conformance.targets.opening.conversions import version_of
from conformance.targets.opening.options import TargetOptions
from kube.base.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from conformance.compare.explain import ExplanationTrace, PendingExplanation

CLUSTER_FIELDS = ("cluster", "kubeconfig", "context", "name")
"""The fields of TargetOptions by which a command that only reads names its cluster."""

_PROGRESS = 16 << 20

Kubernetes = Annotated[
    str,
    typer.Option(
        metavar="MINOR",
        help="Judge what is given by this Kubernetes with its default gates; default: its own, of a"
        " dump that of its newest kubelet.",
        show_default=False,
    ),
]
"""The option of commands that read a dump, which does not say its API server's version."""

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


class GivenFiles:
    """Reads what a command is given of a cluster, and tells what could not be read.

    Args:
        kubernetes: the version to judge by, with its default gates; empty: that of what is given.

    Attributes:
        is_complete: whether all of it could be read.
    """

    def __init__(self, kubernetes: str = "") -> None:
        self.is_complete = True
        self._kubernetes = version_of(kubernetes) if kubernetes else ""
        self._shown = 0

    def read(self, path: Path) -> dict[str, Any]:
        """Return a snapshot's or a decision's document. Raises UsageError: none can be made."""
        from conformance.compare.dumps import read_dump

        # What is read stays until the end: to look through it for cycles again and again takes a
        # quarter of the time, and finds none.
        gc.set_threshold(1_000_000, 20, 100)
        return read_dump(
            path,
            self._report_unread,
            lambda text: print_progress(f"warning: {text}"),
            self._show_progress,
            self._kubernetes,
        )

    def conclude(self, code: ExitCode) -> ExitCode:
        """Return a command's exit code: what could not be read is never called right."""
        right = code == ExitCode.CONFORMANT and not self.is_complete
        return ExitCode.INCONCLUSIVE if right else code

    def _report_unread(self, problem: str) -> None:
        self.is_complete = False
        print_progress(f"not read: {problem}")

    def _show_progress(self, size: int) -> None:
        if size - self._shown >= _PROGRESS and sys.stderr.isatty():
            print_progress(f"{size >> 20} MiB read")
            self._shown = size


def refuse_kubernetes(kubernetes: str) -> None:
    """Raise UsageError if a version is given with a cluster, which has its own."""
    if kubernetes:
        raise UsageError(
            "--kubernetes: the cluster says its version itself; to ask what another would do,"
            " `dra-conformance capture`, then give the snapshot"
        )


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
