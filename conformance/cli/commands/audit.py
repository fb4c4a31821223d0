"""``dra-conformance audit``: what is wrong with the allocations of a cluster, or of a snapshot.

A cluster that changes may look wrong for a moment: what is found in one is looked at again after a
while, and reported only if it is still there. ``--watch`` goes on: see `conformance.cli.watching`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from conformance.cli.options import Html, TextOrJson
from conformance.cli.output import print_progress, printable
from conformance.cli.snapshots import (
    CLUSTER_FIELDS,
    HOW_TO_NAME,
    GivenFiles,
    Kubernetes,
    refuse_kubernetes,
    require_cluster,
    take_snapshot,
    write_page,
)
from conformance.targets.opening.options import TargetOptions
from kube.base.commandline import add_options
from kube.base.errors import ExitCode, TargetError, UsageError

if TYPE_CHECKING:
    from conformance.compare.audit.once import Finding
    from reference_allocator.snapshot import Snapshot


@add_options("options", TargetOptions, CLUSTER_FIELDS, target="cluster")
def audit_command(
    options: TargetOptions,
    snapshot: Annotated[
        Path | None,
        typer.Argument(metavar="SNAPSHOT", help="A snapshot or a dump, instead of a cluster."),
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
    kubernetes: Kubernetes = "",
    kubelets: Annotated[
        bool,
        typer.Option(
            "--kubelets",
            help="Ask each kubelet how many claims it has prepared (ci/rbac/kubelet-metrics.yaml).",
        ),
    ] = False,
    upgrade_to: Annotated[
        str,
        typer.Option(
            metavar="MINOR",
            help="Instead, say what this later Kubernetes treats otherwise of what is there.",
        ),
    ] = "",
) -> None:
    """Judge all allocations: devices allocated twice, broken rules, claims reserved for no pod.

    Read-only; `capture --rbac` prints the rights.

    Exit code: 0 nothing found, 1 something is wrong, 2 usage error, 3 no answer, or nothing is
    wrong but something could not be judged.
    """
    if metrics and not watch:
        raise UsageError("--metrics: is for a cluster that is watched; give --watch, too")
    if watch and upgrade_to:
        raise UsageError("--upgrade-to: looks once; leave --watch out")
    if watch:
        if snapshot is not None or html is not None or kubelets:
            raise UsageError(
                "--watch: is for a cluster, and goes on; give no snapshot, no --html, no --kubelets"
            )
        require_cluster(options)
        from conformance.cli.watching import watch_cluster

        raise typer.Exit(watch_cluster(options, settle, metrics, output == "json"))
    if (options.cluster is None) == (snapshot is None):
        raise UsageError(f"give either a snapshot file or the cluster: {HOW_TO_NAME}")
    if snapshot is None:
        refuse_kubernetes(kubernetes)
    given = GivenFiles(kubernetes)
    document: Mapping[str, Any]
    if upgrade_to:
        if html is not None or kubelets:
            raise UsageError("--upgrade-to: judges no allocations; leave --html and --kubelets out")
        from conformance.cli.upgrades import print_upgrade

        document = take_snapshot(options) if snapshot is None else given.read(snapshot)
        if snapshot is not None:
            document = _check_objects(document)[1]
        live = options if snapshot is None else None
        code = print_upgrade(document, upgrade_to, live, as_json=output == "json")
        raise typer.Exit(given.conclude(code))
    if snapshot is None:
        document, findings = _audit_cluster(options, settle, kubelets)
    else:
        if kubelets:
            raise UsageError("--kubelets: a snapshot has none to ask; name the cluster")
        from conformance.compare.audit.once import audit_snapshot

        read, document = _check_objects(given.read(snapshot))
        findings = audit_snapshot(read, pods_known="pods" in document)
    if html is not None:
        from conformance.report.clusterpage import render_cluster

        write_page(html, lambda: render_cluster("Audit", document, findings=findings))
    _print_findings(document, findings, as_json=output == "json")
    raise typer.Exit(given.conclude(_conclude(document, findings)))


def _check_objects(document: dict[str, Any]) -> tuple[Snapshot, dict[str, Any]]:
    """Return what a snapshot says, and its document, in which each object is there once.

    Raises UsageError: an object in it has not the form of its kind.
    """
    from conformance.compare.evidence import ask_reference
    from reference_allocator.snapshot import Snapshot

    read = ask_reference(lambda: Snapshot.take_dict(document))
    return read, document | read.to_dict()


def _audit_cluster(
    options: TargetOptions, settle: float, kubelets: bool
) -> tuple[Mapping[str, Any], list[Finding]]:
    """Return the last snapshot of a cluster, and what was wrong in it and ``settle`` seconds ago.

    ``kubelets``: ask each kubelet, too, how many claims it has prepared.
    """
    document, findings = _look_at_cluster(options, kubelets)
    if not findings:
        return document, findings
    time.sleep(settle)
    document, findings_again = _look_at_cluster(options, kubelets)
    return document, [finding for finding in findings if finding in findings_again]


def _look_at_cluster(
    options: TargetOptions, kubelets: bool
) -> tuple[Mapping[str, Any], list[Finding]]:
    from conformance.compare.audit.once import audit, kubelet_findings

    document = take_snapshot(options)
    findings = audit(document)
    if kubelets:
        findings += kubelet_findings(document, _count_prepared(options, document))
    return document, findings


def _print_findings(
    document: Mapping[str, Any], findings: Sequence[Finding], *, as_json: bool
) -> None:
    if as_json:
        typer.echo(json.dumps([asdict(finding) for finding in findings], indent=2))
        return
    for finding in findings:
        typer.echo(printable(finding))
    print_progress(f"{len(document['allocated'])} allocated claims, {len(findings)} findings")


def _conclude(document: Mapping[str, Any], findings: Sequence[Finding]) -> ExitCode:
    """Return the exit code; what could not be judged or read is never called right."""
    from conformance.compare.audit.once import NOT_JUDGED

    if any(finding.rule != NOT_JUDGED for finding in findings):
        return ExitCode.NOT_CONFORMANT
    if "pods" not in document:
        print_progress("pods were not read: none is called gone, and no deleted claim unused")
        return ExitCode.INCONCLUSIVE
    return ExitCode.INCONCLUSIVE if findings else ExitCode.CONFORMANT


def _count_prepared(options: TargetOptions, document: Mapping[str, Any]) -> dict[str, int]:
    """Return for each node how many claims its kubelet has prepared; warn of one without answer."""
    from conformance.targets.cluster.reading import prepared_claims
    from conformance.targets.opening.target import open_api
    from kube.errors import ApiError

    counts = {}
    with open_api(options) as api:
        for node_name in (node["metadata"]["name"] for node in document["nodes"]):
            try:
                count = prepared_claims(api.connection, node_name)
                problem = "" if count is not None else "it has no such metric"
            except (ApiError, TargetError) as error:
                count, problem = None, str(error)
            if count is not None:
                counts[node_name] = count
            else:
                print_progress(f"warning: kubelet of {node_name} not asked: {problem}")
    return counts
