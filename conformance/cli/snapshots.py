"""What commands about a cluster, or about a snapshot of one, share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from conformance.cli.output import print_progress, write_named
from conformance.errors import UsageError
from conformance.targets.opening.options import TargetOptions

if TYPE_CHECKING:
    from conformance.compare.audit.once import Finding
    from conformance.compare.explain import Seen, Told
    from conformance.engine.events.comparison import Judgement
    from reference_allocator.explain import Explanation

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
    from conformance.targets.opening.target import open_to_read

    require_cluster(options)
    with open_to_read(options) as api:
        return capture(api, lambda line: print_progress(f"warning: {line}"))


def require_cluster(options: TargetOptions) -> None:
    """Raise UsageError if no cluster is named."""
    if options.cluster is None:
        raise UsageError(f"name the cluster: {HOW_TO_NAME}")


def write_page(
    file: Path,
    title: str,
    document: Mapping[str, Any],
    *,
    told: Sequence[Told] = (),
    explained: Mapping[str, Explanation] | None = None,
    findings: Sequence[Finding] | None = None,
    judgements: Sequence[Judgement] | None = None,
    chosen: Iterable[tuple[Any, Any]] = (),
) -> None:
    """Write a page of the cluster in a snapshot's document, as `render_cluster` describes it.

    Raises UsageError: the document is malformed, or the page cannot be written.
    """
    from conformance.compare.evidence import reading
    from conformance.report.clusterpage import render_cluster

    def render() -> str:
        return render_cluster(
            title,
            document,
            told=told,
            explained=explained,
            findings=findings,
            judgements=judgements,
            chosen=chosen,
        )

    write_named(file, reading(render).encode())


def write_explanations(file: Path, title: str, told: Sequence[Told], seen: Seen) -> None:
    """Write a page of what is told of pods and claims that wait. Raises UsageError."""
    document = seen.snapshot.to_dict() if seen.snapshot is not None else {}
    explained = seen.explanations if seen.snapshot is not None else None
    write_page(file, title, document, told=told, explained=explained)
