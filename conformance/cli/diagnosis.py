"""What is wrong in a cluster, or in a snapshot of one: ``capture``, ``explain``, ``audit``."""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from conformance.cli.options import TextOrJson
from conformance.cli.output import print_progress, printable, write_named
from conformance.errors import ExitCode, TargetError, UsageError
from conformance.targets.opening.options import TargetOptions
from kube.base.commandline import add_options

if TYPE_CHECKING:
    from conformance.compare.audit.once import Finding
    from conformance.compare.explain import Seen

_CLUSTER = ("cluster", "kubeconfig", "context", "name")
Html = Annotated[
    Path | None,
    typer.Option("--html", metavar="FILE", help="Also write an HTML page of nodes and devices."),
]
WHICH = "--cluster kubeconfig --context NAME, --cluster kind or --cluster local"


@add_options("options", TargetOptions, _CLUSTER, target="cluster")
def capture(
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
    from conformance.targets.cluster.rename import renamed

    if rbac:
        typer.echo(RIGHTS, nl=False)
        return
    found = captured(options)
    data = json.dumps(renamed(found) if rename else found).encode()
    write_named(output, gzip.compress(data, 6, mtime=0) if output.suffix == ".gz" else data)
    counts = ", ".join(f"{len(found.get(field, ()))} {word}" for field, word in _COUNTED)
    typer.echo(printable(f"{output}: Kubernetes {found['kubernetes']}, {counts}"))


_COUNTED = (
    ("nodes", "nodes"),
    ("slices", "slices"),
    ("allocated", "allocated claims"),
    ("claims", "claims without devices"),
    ("pods", "pods with claims"),
)


@add_options("options", TargetOptions, _CLUSTER, target="cluster")
def explain(
    subjects: Annotated[
        list[str],
        typer.Argument(
            metavar="[SNAPSHOT] [NAMESPACE/NAME]",
            help="A ResourceClaim or Pod of a cluster, or of a snapshot file; of a file alone, all"
            " that waits.",
            show_default=False,
        ),
    ],
    options: TargetOptions,
    output: TextOrJson = "text",
    html: Html = None,
) -> None:
    """Explain why a claim is pending: for each node, which rule excluded how many devices.

    Also says who holds them, and the smallest change that makes it fit. Read-only;
    `capture --rbac` prints the rights.

    Exit code: 0 explained, 2 usage error or no such claim, 3 the cluster gave no answer.
    """
    from conformance.compare.explain import Seen, explain_file, explain_snapshot, read_snapshot

    seen = Seen()
    if options.cluster is not None:
        if len(subjects) != 1 or subjects[0].count("/") != 1 or not all(subjects[0].split("/")):
            raise UsageError(f"{subjects[0]}: must be NAMESPACE/NAME of a ResourceClaim or a Pod")
        told = explain_snapshot(read_snapshot(captured(options)), subjects[0], seen=seen)
    else:
        file, *names = subjects
        if len(names) > 1:
            raise UsageError(f"{names[1]}: give one snapshot and one NAMESPACE/NAME")
        if not Path(file).exists() and file.count("/") == 1:
            raise UsageError(f"{file}: name the cluster: {WHICH}; or give a snapshot file")
        told = explain_file(Path(file), "".join(names), seen)
    if html is not None:
        write_page(html, "Why claims are pending", told=told, seen=seen)
    if output == "json":
        typer.echo(json.dumps([asdict(item) for item in told], indent=2))
    else:
        typer.echo(printable("\n".join(item.text for item in told)))


@add_options("options", TargetOptions, _CLUSTER, target="cluster")
def audit(
    options: TargetOptions,
    snapshot: Annotated[
        Path | None,
        typer.Argument(metavar="SNAPSHOT", help="A file of `capture`, instead of a cluster."),
    ] = None,
    settle: Annotated[
        float,
        typer.Option(
            metavar="SECONDS",
            min=0,
            help="Look at a cluster again after this time; what is right by then is not reported.",
        ),
    ] = 10.0,
    watch: Annotated[
        bool,
        typer.Option(
            "--watch", help="Run until a signal; print findings when they appear and end."
        ),
    ] = False,
    metrics: Annotated[
        str,
        typer.Option(
            metavar="[HOST:]PORT",
            help="With --watch: serve Prometheus metrics, on loopback if no host is named.",
        ),
    ] = "",
    output: TextOrJson = "text",
    html: Html = None,
    kubelets: Annotated[
        bool,
        typer.Option(
            "--kubelets",
            help="Ask each kubelet how many claims it has prepared (ci/rbac/kubelet-metrics.yaml).",
        ),
    ] = False,
) -> None:
    """Judge all allocations: devices allocated twice, broken rules, claims reserved for no pod.

    Read-only; `capture --rbac` prints the rights.

    Exit code: 0 nothing found, 1 something is wrong, 2 usage error, 3 no answer, or nothing is
    wrong but something could not be judged.
    """
    if metrics and not watch:
        raise UsageError("--metrics: is for a cluster that is watched; give --watch, too")
    if watch and (snapshot is not None or html is not None or kubelets):
        raise UsageError(
            "--watch: is for a cluster, and goes on; give no snapshot, no --html, no --kubelets"
        )
    if watch:
        from conformance.cli.watching import watch as watch_cluster

        cluster_of(options)
        raise typer.Exit(watch_cluster(options, settle, metrics, output == "json"))
    from conformance.compare.audit.once import NOT_JUDGED, of_kubelets
    from conformance.compare.audit.once import audit as audit_document
    from conformance.strictjson import read_object

    if (options.cluster is None) == (snapshot is None):
        raise UsageError(f"give either a snapshot file or the cluster: {WHICH}")
    if kubelets and snapshot is not None:
        raise UsageError("--kubelets: a snapshot has none to ask; name the cluster")

    def look() -> tuple[dict[str, Any], list[Finding]]:
        document = captured(options) if snapshot is None else read_object(snapshot)
        found = audit_document(document)
        if kubelets:
            found += of_kubelets(document, _prepared(options, document))
        return document, found

    document, found = look()
    if found and snapshot is None:
        time.sleep(settle)
        document, again = look()
        found = [item for item in found if item in again]
    if html is not None:
        write_page(html, "Audit", document=document, findings=found)
    if output == "json":
        typer.echo(json.dumps([asdict(item) for item in found], indent=2))
    else:
        for item in found:
            typer.echo(printable(item))
        print_progress(f"{len(document['allocated'])} allocated claims, {len(found)} findings")
    if any(item.rule != NOT_JUDGED for item in found):
        raise typer.Exit(ExitCode.NOT_CONFORMANT)
    if "pods" not in document:
        print_progress("pods were not read: none is called gone, and no deleted claim unused")
    if found or "pods" not in document:
        raise typer.Exit(ExitCode.INCONCLUSIVE)


def _prepared(options: TargetOptions, document: Mapping[str, Any]) -> dict[str, int]:
    """Node -> how many claims its kubelet has prepared; one that does not tell is named."""
    from conformance.targets.cluster.observe.reading import prepared_claims
    from conformance.targets.opening.target import open_to_read
    from conformance.targets.seam.values import ApiError

    found = {}
    with open_to_read(options) as api:
        for name in (node["metadata"]["name"] for node in document["nodes"]):
            try:
                number = prepared_claims(api.connection, name)
                problem = "" if number is not None else "it has no such metric"
            except (ApiError, TargetError) as error:
                number, problem = None, str(error)
            if number is not None:
                found[name] = number
            else:
                print_progress(f"warning: kubelet of {name} not asked: {problem}")
    return found


def captured(options: TargetOptions) -> dict[str, Any]:
    """The snapshot of the cluster that the options name; what may not be read is printed."""
    from conformance.targets.cluster.capture import capture as capture_cluster
    from conformance.targets.opening.target import open_to_read

    cluster_of(options)

    def missing(line: str) -> None:
        print_progress(f"warning: {line}")

    with open_to_read(options) as api:
        return capture_cluster(api, missing)


def cluster_of(options: TargetOptions) -> None:
    """Raises UsageError: no cluster is named."""
    if options.cluster is None:
        raise UsageError(f"name the cluster: {WHICH}")


def write_page(
    file: Path,
    what: str,
    *,
    seen: Seen | None = None,
    document: Mapping[str, Any] | None = None,
    **more: Any,
) -> None:
    """Write a page of a cluster (`report.clusterpage`). Raises UsageError: it cannot be written."""
    from conformance.compare.evidence import reading
    from conformance.report.clusterpage import render_cluster

    if seen is not None and seen.snapshot is not None:
        document, more["explained"] = seen.snapshot.to_dict(), seen.explanations
    shown = document or {}
    write_named(file, reading(lambda: render_cluster(what, shown, **more)).encode())
