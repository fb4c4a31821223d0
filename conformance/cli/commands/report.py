"""``dra-conformance report``: a conformance report of a result file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from conformance.certify.build import build_report
from conformance.cli.certifying import (
    CertifiedOptions,
    list_shipped_scenarios,
    refuse_folder,
    summarize_report,
)
from conformance.cli.options import Results
from conformance.cli.output import printable, write_named
from conformance.results.read import load_results
from kube.base.commandline import add_options
from kube.base.errors import UsageError


@add_options("certified", CertifiedOptions)
def report_command(
    results: Results,
    certified: CertifiedOptions,
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
    profiles, implementation = certified.profiles, certified.implementation
    refuse_folder(results)
    _keep_evidence(output, results)
    report = build_report(
        load_results(results),
        implementation,
        profiles,
        list_shipped_scenarios(),
        certified.checked_driver,
    )
    text = report.to_yaml()
    if output is None:
        typer.echo(text, nl=False)
    else:
        write_named(output, text.encode())
    for line in summarize_report(report):
        typer.echo(printable(line), err=output is None)
    if output is not None:
        typer.echo(printable(f"report in {output}"))
    raise typer.Exit(report.exit_code)


def _keep_evidence(output: Path | None, results: Path) -> None:
    """Raise UsageError if the report would overwrite the result file."""
    try:
        same = output is not None and output.exists() and output.samefile(results)
    except OSError:
        return  # it cannot be read or written; that is said where it is tried
    if same:
        raise UsageError(
            f"--output {output}: is the result file itself, the evidence for the report; choose"
            " another file"
        )
