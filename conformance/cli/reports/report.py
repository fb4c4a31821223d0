"""Commands about result files: a conformance report from one, judging again."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer
from pydantic import TypeAdapter

from conformance.certify.build import build_report
from conformance.certify.driverchecked import DriverChecked, read_driver_check
from conformance.certify.model import ConformanceReport
from conformance.certify.profiles import CORE, Profile, load_profiles
from conformance.certify.values import Implementation, implementation
from conformance.cli.diagnosis import Html, write_page
from conformance.cli.oracle import answer_lines
from conformance.cli.output import printable, write_named
from conformance.compare.explain import Seen
from conformance.compare.replay import WhatIf, answering, replay_if, replay_results
from conformance.compare.replay import replay as judge_again
from conformance.engine.events.comparison import ScenarioCompared
from conformance.engine.events.result import count_verdicts
from conformance.engine.events.scenario import PlannedScenario
from conformance.engine.setup import planned
from conformance.errors import ExitCode, UsageError
from conformance.report.folder import RESULTS
from conformance.report.summary import VERDICTS
from conformance.resultfile.read import load_results
from conformance.scenario.selection import select
from conformance.strictjson import read_object
from kube.base.commandline import add_options
from kube.base.options import option_field

Results = Annotated[
    Path, typer.Argument(metavar="RESULTS", help="Result file of a run (results.ndjson).")
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Certified:
    """The options that describe a report: the implementation, its owner, the profiles."""

    organization: str = option_field(..., "Organization that submits the report.", metavar="NAME")
    project: str = option_field(..., "Driver or distribution under test.", metavar="NAME")
    url: str = option_field(..., "Home page of the project.", metavar="URL")
    version: str = option_field(..., "Version of the project.", metavar="VERSION")
    contact: tuple[str, ...] = option_field(
        (), "Contact for questions (repeatable).", metavar="TEXT"
    )
    image: str | None = option_field(None, "Image of the driver.", metavar="NAME@sha256:HEX")
    ci_run: str | None = option_field(None, "URL of the CI job.", metavar="URL")
    profile: tuple[str, ...] = option_field(
        (), f"Conformance profile (repeatable). [default: {', '.join(CORE)}]", metavar="NAME"
    )
    driver_check: Path | None = option_field(
        None, "Result of driver-check for this driver; dra-core-driver needs it.", metavar="FILE"
    )

    @property
    def implementation(self) -> Implementation:
        """Who made what. Raises UsageError: one of the options is malformed."""
        return implementation(
            **{
                name: value
                for name, value in asdict(self).items()
                if name not in {"profile", "driver_check"}
            }
        )

    @property
    def checked(self) -> DriverChecked | None:
        """The result of driver-check, if one was given. Raises UsageError: it is none."""
        return None if self.driver_check is None else read_driver_check(self.driver_check)

    @property
    def profiles(self) -> tuple[Profile, ...]:
        """The requested profiles; without a request, those of the core. Raises UsageError."""
        return load_profiles().named(dict.fromkeys(self.profile or CORE))


def summary(made: ConformanceReport) -> Iterator[str]:
    """The result of each profile, and what it is worth."""
    for item in made.profiles:
        yield f"{item.name}: {item.result}"
        if item.driver_check == "missing":
            yield "  without a result of driver-check; give it by --driver-check FILE"
        elif item.driver_check is not None and item.driver_check is not item.result:
            yield f"  driver-check: {item.driver_check}"
        for one in item.without:
            yield f"  without {one.scenario}: {one.reason}"
    yield f"hardware: {made.hardware}"
    for reason in made.uncertified:
        yield f"certifies nothing: {reason}"


def no_folder(results: Path) -> None:
    """Refuse the folder of reports in place of the result file in it."""
    if results.is_dir():
        raise UsageError(f"{results}: is a folder; give the result file in it, {RESULTS}")


def catalogue() -> list[PlannedScenario]:
    """Every scenario that the suite ships."""
    return [planned(item) for item in select()]


@add_options("about", Certified)
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
    made = build_report(load_results(results), implementation, profiles, catalogue(), about.checked)
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


@add_options("what_if", WhatIf)
def replay(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="Decision or snapshot (JSON), or a result file.")
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
    no_folder(file)
    if file.suffix == ".ndjson" and (questions is not None or what_if != WhatIf()):
        raise UsageError(
            f"{file}: what would fit is asked of a snapshot; a failed scenario's is in its folder"
            " below diagnostics, `dra-conformance capture` writes one of a cluster"
        )
    if questions is not None:
        asked = None if str(questions) == "-" else questions
        answer_lines(asked, answering(file, what_if))
        return
    if what_if != WhatIf():
        seen = Seen()
        told = replay_if(file, what_if, seen)
        if html is not None:
            write_page(html, "What would fit if", told=told, seen=seen)
        if as_json:
            typer.echo(json.dumps([asdict(item) for item in told], indent=2))
        else:
            typer.echo(printable("\n".join(item.text for item in told)))
        fits = all(item.fits for item in told)
        raise typer.Exit(ExitCode.CONFORMANT if fits else ExitCode.NOT_CONFORMANT)
    if file.suffix == ".ndjson" and html is not None:
        raise UsageError("--html: a run's page is made by `dra-conformance render`")
    if file.suffix == ".ndjson":
        compared = replay_results(file)
    else:
        judgements = judge_again(file)
        if html is not None:
            document = read_object(file)
            chosen = zip(document.get("claims", ()), document.get("allocations", ()), strict=False)
            shown = document.get("snapshot") or document
            write_page(html, "Judged again", document=shown, judgements=judgements, chosen=chosen)
        if not judgements:
            typer.echo("pending is correct: the reference finds no allocation either")
            return
        compared = (ScenarioCompared(str(file), judgements),)
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
