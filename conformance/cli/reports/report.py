"""Commands about result files: a conformance report from one, judging again."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from pydantic import TypeAdapter

from conformance.certify.build import build_report
from conformance.cli.options import takes
from conformance.cli.output import printable, write_named
from conformance.cli.reports.certified import Certified, Results, catalogue, no_folder, summary
from conformance.compare.replay import replay as judge_again
from conformance.compare.replay import replay_results
from conformance.engine.result import count_verdicts
from conformance.engine.verdicts import ScenarioCompared
from conformance.errors import ExitCode, UsageError
from conformance.report.summary import VERDICTS
from conformance.resultfile.read import load_results


@takes("about", Certified)
def report(
    results: Results,
    about: Certified,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="File to write. [default: standard output]"
        ),
    ] = None,
) -> None:
    """Turn a result file into a conformance report (YAML).

    Exit code: that of the worst profile. No report is written if the evidence contradicts itself.
    """
    profiles, implementation = about.profiles, about.implementation
    no_folder(results)
    _keep_evidence(output, results)
    made = build_report(load_results(results), implementation, profiles, catalogue())
    text = made.to_yaml()
    if output is None:
        typer.echo(text, nl=False)
    else:
        write_named(output, text.encode())
    for line in summary(made):
        typer.echo(printable(line), err=output is None)
    if output is not None:
        typer.echo(printable(f"report in {output}"))
    raise typer.Exit(made.exit_code)


def replay(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="Decision or snapshot (JSON), or a result file.")
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print all judgements as JSON.")] = False,
) -> None:
    """Judge saved decisions again, without a cluster.

    Exit code: 0 all decisions follow the rules, 1 one breaks a rule, 3 one could not be judged or
    none was found.
    """
    no_folder(file)
    if file.suffix == ".ndjson":
        compared = replay_results(file)
    else:
        judgement = judge_again(file)
        if judgement is None:
            typer.echo("pending is correct: the reference finds no allocation either")
            return
        compared = (ScenarioCompared(str(file), (judgement,)),)
    code = _code(compared)
    counts = [f"{number} {name}" for name, number in count_verdicts(compared).items() if number]
    if as_json:
        document = TypeAdapter(tuple[ScenarioCompared, ...]).dump_python(
            compared, mode="json", by_alias=True
        )
        typer.echo(json.dumps(document, indent=2))
        raise typer.Exit(code)
    word = "nothing was judged" if not counts else VERDICTS[code][0]
    typer.echo(f"{word}; verdicts: {', '.join(counts) or 'none'}")
    for item in compared:
        reasons = () if file.suffix == ".ndjson" else [one.reason for one in item.judgements]
        for line in item.notes or reasons:
            typer.echo(printable(f"{item.scenario}: {line}"))
    raise typer.Exit(code)


def _code(compared: Sequence[ScenarioCompared]) -> ExitCode:
    """What judging again came to; nothing judged is never conformant."""
    if not all(item.conformant for item in compared):
        return ExitCode.NOT_CONFORMANT
    judged = any(item.judgements for item in compared)
    if not judged or any(item.problems for item in compared):
        return ExitCode.INCONCLUSIVE
    return ExitCode.CONFORMANT


def _keep_evidence(output: Path | None, results: Path) -> None:
    """Refuse to overwrite the result file with the report. Raises UsageError."""
    try:
        same = output is not None and output.exists() and output.samefile(results)
    except OSError:
        return  # it cannot be read or written; that is said where it is tried
    if same:
        raise UsageError(
            f"--output {output}: is the result file itself, the evidence for the report; choose"
            " another file"
        )
