"""Commands about result files: a conformance report from one, its verification, judging again."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer
from pydantic import TypeAdapter

from conformance.certify.build import build_report
from conformance.certify.model import ConformanceReport, implementation
from conformance.certify.profiles import load_profiles
from conformance.certify.verify import verify as check
from conformance.cli.printable import printable
from conformance.compare.replay import replay as judge_again
from conformance.compare.replay import replay_results
from conformance.engine.events import PlannedScenario
from conformance.engine.result import count_verdicts
from conformance.engine.scenario_run import planned
from conformance.engine.verdicts import ScenarioCompared
from conformance.errors import ExitCode, UsageError
from conformance.report.folder import RESULTS
from conformance.report.summary import VERDICTS
from conformance.resultfile.read import load_results
from conformance.scenario.selection import select

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
    _keep_evidence(output, results)
    made = build_report(load_results(results), about, chosen, _catalogue())
    if output is None:
        typer.echo(made.to_yaml(), nl=False)
    else:
        try:
            output.parent.mkdir(parents=True, exist_ok=True)
            output.write_text(made.to_yaml(), encoding="utf-8")
        except OSError as error:
            raise UsageError(f"{output}: cannot be written: {error.strerror}") from None
    for line in _summary(made):
        typer.echo(printable(line), err=output is None)
    if output is not None:
        typer.echo(printable(f"report in {output}"))
    raise typer.Exit(made.exit_code)


def verify(
    report_file: Annotated[Path, typer.Argument(metavar="REPORT", help="Conformance report.")],
    results: Results,
) -> None:
    """Check a conformance report against its result file; says every discrepancy."""
    _no_folder(results)
    verification = check(report_file, results, load_profiles(), _catalogue())
    for discrepancy in verification.discrepancies:
        typer.echo(printable(f"differs: {discrepancy}"))
    for note in verification.notes:
        typer.echo(printable(f"note: {note}"))
    for line in _summary(verification.report):
        typer.echo(printable(line))
    if verification.discrepancies:
        typer.echo("the report does not say what the result file says")
    else:
        typer.echo("the report says what the result file says")
    raise typer.Exit(verification.exit_code)


def replay(
    file: Annotated[Path, typer.Argument(help="Decision or snapshot (JSON), or a result file.")],
    as_json: Annotated[
        bool, typer.Option("--json", help="Print every judgement as JSON instead.")
    ] = False,
) -> None:
    """Judge saved decisions again, without a cluster.

    Exit code: 0 every decision keeps the rules, 1 one breaks a rule, 3 one could not be judged, or
    there was none.
    """
    _no_folder(file)
    if file.suffix == ".ndjson":
        compared = replay_results(file)
    else:
        judgement = judge_again(file)
        if judgement is None:
            typer.echo("pending is right: the reference finds no allocation either")
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


def _summary(made: ConformanceReport) -> Iterator[str]:
    """What each profile came to, and why none of them is a certificate, if so."""
    for item in made.profiles:
        yield f"{item.name}: {item.result}"
    for reason in made.uncertified:
        yield f"certifies nothing: {reason}"


def _keep_evidence(output: Path | None, results: Path) -> None:
    """Refuse to overwrite the result file with the report.

    Raises:
        UsageError: both are the same file, by whatever name.
    """
    try:
        same = output is not None and output.exists() and output.samefile(results)
    except OSError:
        return  # it cannot be read or written; that is said where it is tried
    if same:
        raise UsageError(
            f"--output {output}: is the result file itself, the evidence for the report; choose"
            " another file"
        )


def _no_folder(results: Path) -> None:
    """The folder of reports, given instead of the result file in it, is a usage error."""
    if results.is_dir():
        raise UsageError(f"{results}: is a folder; give the result file in it, {RESULTS}")


def _catalogue() -> list[PlannedScenario]:
    return [planned(item) for item in select()]
