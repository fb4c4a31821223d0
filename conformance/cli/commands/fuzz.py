"""``dra-conformance fuzz``: random problems for a scheduler, judged by the reference."""

from __future__ import annotations

import json
import math
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from conformance.cli.output import print_progress, printable, write_named
from conformance.targets.opening.options import TargetOptions
from kube.base.commandline import add_options
from kube.base.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from conformance.fuzz.cases import Answer
    from conformance.fuzz.find_differences import Hunt
    from conformance.targets.opening.target import Opened
    from kube.api import Api

_CLUSTER_FIELDS = (
    "cluster",
    "kubeconfig",
    "context",
    "name",
    "kubernetes_version",
    "feature_gates",
    "binaries",
    "scheduler",
    "scheduler_command",
    "scheduler_kubernetes",
)
MOST_BATCHES = 16
_PROGRESS_SECONDS = 10.0  # between two lines of progress


@add_options("options", TargetOptions, _CLUSTER_FIELDS, target="cluster")
def fuzz_command(
    options: TargetOptions,
    target: Annotated[  # noqa: ARG001 -- said as for `run`; there is no other
        Literal["cluster"], typer.Option(help="What is tested; the reference judges the answers.")
    ] = "cluster",
    count: Annotated[int, typer.Option(min=1, help="Number of problems.")] = 1000,
    seconds: Annotated[
        float, typer.Option(min=0, help="Start no problem after this time; 0: no limit.")
    ] = 0.0,
    seed: Annotated[
        str, typer.Option(help="Seed of the problems. [default: random]", show_default=False)
    ] = "",
    first: Annotated[int, typer.Option(min=0, help="Number of the first problem of the seed.")] = 0,
    workers: Annotated[
        int,
        typer.Option(
            "--workers", "-n", metavar="N", help="Batches of 25 at the same time, up to 16."
        ),
    ] = 4,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FOLDER", help="Folder for the differences.")
    ] = Path("dra-fuzz"),
    here: Annotated[
        bool, typer.Option("--here", help="Allow it on a cluster that others may be using.")
    ] = False,
) -> None:
    """Give a scheduler random problems, each about two or three features, and judge the answers.

    Creates hundreds of nodes without a kubelet, and slices, classes, claims and pods with the run's
    label, and removes them at the end. A difference that can be reproduced is reduced on the
    cluster and written as a scenario, with a line in differences.ndjson. A problem that could not
    be judged is repeated alone, and listed at the end if it still could not.

    Exit code: 0 all judged and no difference, 1 differences, 2 usage error, 3 no answer, or some
    problems were not judged.
    """
    from conformance.fuzz.find_differences import Hunt
    from conformance.fuzz.problem import Generator
    from conformance.fuzz.run_problems import Runner

    if options.cluster in ("kubeconfig", "kind") and not here:
        raise UsageError(
            "fuzz makes hundreds of nodes and keeps scheduler and API server busy, also for others"
            " who use this cluster; if that may be, add --here"
        )
    if not 1 <= workers <= MOST_BATCHES:
        raise UsageError(f"--workers {workers}: must be between 1 and {MOST_BATCHES}")
    seed = seed or secrets.token_hex(4)
    with _open_cluster(options) as (opened, api):
        capabilities, scheduler = opened.capabilities, opened.scheduler
        version, gates = capabilities.kubernetes_version, capabilities.feature_gates
        judged = capabilities.scheduling[0]
        name = scheduler.name if scheduler else ""
        runner = Runner(api, *capabilities.scheduling, secrets.token_hex(3), name)
        hunt = Hunt(runner, Generator(version, gates, judged), seed, workers)
        beside = f", judged by the rules of the scheduler's, {judged}" if judged != version else ""
        print_progress(f"seed {seed}, Kubernetes {version}{beside}")
        differences = 0
        with runner.open_namespace():
            progress = _make_progress(hunt, count)
            for answer in hunt.find_differences(first, count, seconds or math.inf, progress):
                differences += 1
                _write_difference(output, answer, judged)
    typer.echo(_count_problems(hunt))
    for text in hunt.unjudged:
        typer.echo(printable(f"not judged: {text}"))
    if differences:
        raise typer.Exit(ExitCode.NOT_CONFORMANT)
    if hunt.unjudged:
        raise typer.Exit(ExitCode.INCONCLUSIVE)


@contextmanager
def _open_cluster(options: TargetOptions) -> Iterator[tuple[Opened, Api]]:
    """Open what the options ask for, and its API server; a cluster that is not there is started."""
    from conformance.targets.cluster.target import ClusterTarget
    from conformance.targets.opening.sources import find_local_access, local_cluster
    from conformance.targets.opening.target import open_target

    if options.cluster == "local" and find_local_access(local_cluster(options)) is None:
        options = replace(options, nodes=0)  # its nodes are hollow
    with open_target(options, print_progress) as opened:
        assert isinstance(opened.target, ClusterTarget)
        yield opened, opened.target.api


def _make_progress(hunt: Hunt, count: int) -> Callable[[], None]:
    """Return what prints a line of progress if the last one is long enough ago."""
    start = printed_at = time.monotonic()

    def print_sometimes() -> None:
        nonlocal printed_at
        now = time.monotonic()
        if now - printed_at > _PROGRESS_SECONDS:
            printed_at = now
            rate = hunt.counts.total() / (now - start)
            print_progress(f"{_count_problems(hunt)}; of {count}, {rate:.1f} a second")

    return print_sometimes


def _count_problems(hunt: Hunt) -> str:
    counts = ", ".join(f"{number} {name}" for name, number in sorted(hunt.counts.items()))
    return f"{hunt.counts.total()} problems: {counts}"


def _write_difference(folder: Path, answer: Answer, kubernetes: str) -> None:
    """Write the scenario of a difference, and its line; print where."""
    from conformance.fuzz.scenario import scenario_of

    file = folder / f"fuzz-{answer.problem.id}.yaml"  # as its scenario: `run` asks for that
    write_named(file, scenario_of(answer, kubernetes).encode())
    line = {
        "id": answer.problem.id,
        "kubernetes": kubernetes,
        "verdict": answer.verdict,
        "reason": answer.reason,
        "focus": answer.problem.focus,
        "scenario": file.name,
        "evidence": answer.evidence,
    }
    with (folder / "differences.ndjson").open("a", encoding="utf-8") as stream:
        stream.write(json.dumps(line) + "\n")
    typer.echo(printable(f"{answer.verdict}: {file}: {answer.reason}"))
