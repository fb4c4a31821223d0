"""Commands about result files: a conformance report from one, its verification, judging again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from conformance.certify.model import implementation
from conformance.certify.profiles import load_profiles
from conformance.certify.report import build_report
from conformance.certify.verify import verify as check
from conformance.cli.selection import select
from conformance.cli.shown import shown
from conformance.compare.replay import replay as judge_again
from conformance.compare.replay import replay_results
from conformance.engine.events import PlannedScenario
from conformance.engine.scenario_run import planned
from conformance.errors import ExitCode, UsageError
from conformance.report.folder import RESULTS
from conformance.resultfile.read import load_results

Results = Annotated[Path, typer.Argument(help="Result file of a run (results.ndjson).")]


def report(
    results: Results,
    organization: Annotated[str, typer.Option(help="Who submits it.")],
    project: Annotated[str, typer.Option(help="What is certified: a driver, a distribution.")],
    url: Annotated[str, typer.Option(help="Where that is found.")],
    version: Annotated[str, typer.Option(help="Its version.")],
    contact: Annotated[list[str] | None, typer.Option(help="Whom to ask.")] = None,
    profile: Annotated[list[str] | None, typer.Option(help="For what; default dra-core.")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File; default: standard output.")
    ] = None,
) -> None:
    """Turn a result file into a conformance report (YAML).

    Exit code: that of the worst profile; the report is written all the same, unless the evidence
    contradicts itself.
    """
    chosen = load_profiles().named(dict.fromkeys(profile or ["dra-core"]))
    _no_folder(results)
    about = implementation(
        organization=organization,
        project=project,
        url=url,
        version=version,
        contact=tuple(contact or ()),
    )
    made = build_report(load_results(results), about, chosen, _catalogue())
    text = made.to_yaml()
    if output is None:
        typer.echo(text, nl=False)
    else:
        try:
            output.parent.mkdir(parents=True, exist_ok=True)
            output.write_text(text, encoding="utf-8")
        except OSError as error:
            raise UsageError(f"{output}: cannot be written: {error.strerror}") from None
        for item in made.profiles:
            typer.echo(f"{item.name}: {item.result}")
        typer.echo(f"report in {output}")
    raise typer.Exit(made.exit_code)


def verify(
    report_file: Annotated[Path, typer.Argument(metavar="REPORT", help="Conformance report.")],
    results: Results,
) -> None:
    """Check a conformance report against its result file; says every discrepancy."""
    _no_folder(results)
    verification = check(report_file, results, load_profiles(), _catalogue())
    for discrepancy in verification.discrepancies:
        typer.echo(shown(f"differs: {discrepancy}"))
    for note in verification.notes:
        typer.echo(shown(f"note: {note}"))
    if not verification.discrepancies:
        typer.echo("the report says what the result file says")
    raise typer.Exit(verification.exit_code)


def replay(
    file: Annotated[Path, typer.Argument(help="Decision or snapshot (JSON), or a result file.")],
) -> None:
    """Judge saved decisions again, without a cluster."""
    _no_folder(file)
    if file.suffix == ".ndjson":
        comparison = replay_results(file)
        typer.echo(json.dumps(comparison.to_json(), indent=2))
        raise typer.Exit(ExitCode.CONFORMANT if comparison.conformant else ExitCode.NOT_CONFORMANT)
    judgement = judge_again(file)
    if judgement is None:
        typer.echo("pending is right: the reference finds no allocation either")
        return
    typer.echo(json.dumps(judgement.to_json(), indent=2))
    raise typer.Exit(
        ExitCode.CONFORMANT if judgement.verdict.conformant else ExitCode.NOT_CONFORMANT
    )


def _no_folder(results: Path) -> None:
    """A folder of reports is easily given for the result file in it; that is no discrepancy."""
    if results.is_dir():
        raise UsageError(f"{results}: is a folder; give the result file in it, {RESULTS}")


def _catalogue() -> list[PlannedScenario]:
    return [planned(item) for item in select([])]
