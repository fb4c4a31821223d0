"""``dra-conformance replay``: judges saved decisions again, or says what would fit if.

Three things are asked of a file: a run's decisions again (results.ndjson), one decision or snapshot
again, or what would fit in a snapshot that is changed (the options of `WhatIf`; ``--questions``).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import TypeAdapter

from conformance.cli.certifying import refuse_folder
from conformance.cli.lines import answer_lines
from conformance.cli.options import Html
from conformance.cli.output import printable
from conformance.cli.snapshots import GivenFiles, write_explanations, write_page
from conformance.compare.explain import ExplanationTrace
from conformance.compare.replay import (
    WhatIf,
    find_faults_met,
    make_answerer,
    replay,
    replay_if,
    replay_results,
)
from conformance.report.folder import RESULTS
from conformance.report.summary import VERDICTS
from conformance.results.events.comparison import Judgement, ScenarioCompared
from conformance.results.events.result import count_verdicts
from kube.base.commandline import add_options
from kube.base.errors import ExitCode, UsageError


@add_options("what_if", WhatIf)
def replay_command(
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="A decision, snapshot or dump, or a result file."),
    ],
    what_if: WhatIf,
    as_json: Annotated[bool, typer.Option("--json", help="Print all judgements as JSON.")] = False,
    questions: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="What if, asked of a snapshot in JSON lines, each answered by one; - is standard"
            " input.",
        ),
    ] = None,
    html: Html = None,
) -> None:
    """Judge saved decisions again, without a cluster; or say what would fit if.

    Exit code: 0 all decisions follow the rules, 1 one breaks a rule, 3 one could not be judged or
    none was found. What if: 0 all that waits in the snapshot fits, 1 something does not.
    """
    if (file / RESULTS).exists():
        refuse_folder(file)
    given = GivenFiles()
    is_run = file.suffix == ".ndjson"
    if is_run and (questions is not None or what_if != WhatIf()):
        raise UsageError(
            f"{file}: what would fit is asked of a snapshot; a failed scenario's is in its folder"
            " below diagnostics, `dra-conformance capture` writes one of a cluster"
        )
    if questions is not None:
        lines = None if str(questions) == "-" else questions
        answer_lines(lines, make_answerer(file, what_if, given.read))
        raise typer.Exit(given.conclude(ExitCode.CONFORMANT))
    if what_if != WhatIf():
        raise typer.Exit(
            given.conclude(_tell_what_fits(given, file, what_if, html, as_json=as_json))
        )
    if is_run:
        if html is not None:
            raise UsageError("--html: a run's page is made by `dra-conformance render`")
        run = replay_results(file)
        code = _print_comparisons(run.compared, as_json=as_json)
        for scenario, issues in () if as_json else run.known.items():
            typer.echo(printable(f"{scenario}: {'; '.join(map(str, issues))}"))
        raise typer.Exit(code)
    raise typer.Exit(given.conclude(_judge_file(given, file, html, as_json=as_json)))


def _tell_what_fits(
    given: GivenFiles, file: Path, what_if: WhatIf, html: Path | None, *, as_json: bool
) -> ExitCode:
    """Print whether what waits in a snapshot fits once it is changed; return the exit code."""
    seen = ExplanationTrace()
    explanations = replay_if(file, what_if, seen, given.read)
    if html is not None:
        write_explanations(html, "What would fit if", explanations, seen)
    if as_json:
        typer.echo(json.dumps([asdict(item) for item in explanations], indent=2))
    else:
        typer.echo(printable("\n".join(item.text for item in explanations)))
    fits = all(item.fits for item in explanations)
    return ExitCode.CONFORMANT if fits else ExitCode.NOT_CONFORMANT


def _judge_file(given: GivenFiles, file: Path, html: Path | None, *, as_json: bool) -> ExitCode:
    """Judge the decision or the snapshot in a file; return the exit code."""
    document = given.read(file)
    judgements = replay(document, file)
    if html is not None:
        _write_judgements(html, document, judgements)
    comparisons = (ScenarioCompared(str(file), judgements),)
    if judgements:
        code = _print_comparisons(comparisons, as_json=as_json, with_reasons=True)
    else:
        typer.echo("pending is correct: the reference finds no allocation either")
        code = ExitCode.CONFORMANT
    if not (judgements and as_json):
        for fault in find_faults_met(document, judgements):
            typer.echo(printable(f"known fault of Kubernetes: {fault}"))
    return code


def _write_judgements(
    html: Path, document: Mapping[str, Any], judgements: Sequence[Judgement]
) -> None:
    """Write a page of a decision's or a snapshot's document with what was judged of it."""
    from conformance.report.clusterpage import render_cluster

    snapshot = document.get("snapshot") or document
    chosen = zip(document.get("claims", ()), document.get("allocations", ()), strict=False)
    title = "Judged again"
    write_page(html, lambda: render_cluster(title, snapshot, judgements=judgements, chosen=chosen))


def _print_comparisons(
    comparisons: Sequence[ScenarioCompared], *, as_json: bool, with_reasons: bool = False
) -> ExitCode:
    """Print what judging came to; return the exit code.

    ``with_reasons``: where there are no notes, print the reason of each judgement.
    """
    code = _conclude(comparisons)
    if as_json:
        document = TypeAdapter(tuple[ScenarioCompared, ...]).dump_python(
            tuple(comparisons), mode="json", by_alias=True
        )
        typer.echo(json.dumps(document, indent=2))
        return code
    counts = [f"{number} {name}" for name, number in count_verdicts(comparisons).items() if number]
    word = "nothing was judged" if not counts else VERDICTS[code][0]
    typer.echo(f"{word}; verdicts: {', '.join(counts) or 'none'}")
    for comparison in comparisons:
        reasons = [judgement.reason for judgement in comparison.judgements if with_reasons]
        for line in comparison.notes or reasons:
            typer.echo(printable(f"{comparison.scenario}: {line}"))
    return code


def _conclude(comparisons: Sequence[ScenarioCompared]) -> ExitCode:
    """Return what judging again came to; nothing judged is never conformant."""
    if not all(comparison.conformant for comparison in comparisons):
        return ExitCode.NOT_CONFORMANT
    judged = any(comparison.judgements for comparison in comparisons)
    if not judged or any(comparison.problems for comparison in comparisons):
        return ExitCode.INCONCLUSIVE
    return ExitCode.CONFORMANT
