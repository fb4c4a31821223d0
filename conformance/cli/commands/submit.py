"""``dra-conformance submit``: a submission, with all that verifies it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from conformance.certify.build import build_report
from conformance.certify.profiles import load_profiles
from conformance.certify.submission import EVIDENCE, folder_of, write_submission
from conformance.cli.certifying import (
    CertifiedOptions,
    list_shipped_scenarios,
    refuse_folder,
    summarize_report,
)
from conformance.cli.options import Results
from conformance.cli.output import printable
from conformance.results.read import load_results
from kube.base.commandline import add_options


@add_options("certified", CertifiedOptions)
def submit_command(
    results: Results,
    certified: CertifiedOptions,
    into: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder of all submissions.")] = Path(
        "reports"
    ),
    sign: Annotated[Path | None, typer.Option(metavar="KEY", help="SSH key to sign with.")] = None,
    reproduce: Annotated[
        str, typer.Option(metavar="COMMANDS", help="How to reproduce the run, for the README.")
    ] = "",
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace the submission of another run.")
    ] = False,
) -> None:
    """Write a submission: report, evidence in one file, README, signature.

    Writes to MINOR/ORGANIZATION-PROJECT below --into. Exit code: as for `report`.
    """
    profiles, implementation = certified.profiles, certified.implementation
    refuse_folder(results)
    result, shipped = load_results(results), list_shipped_scenarios()
    checked_driver = certified.checked_driver
    report = build_report(result, implementation, profiles, shipped, checked_driver)
    folder = into / folder_of(report)
    overwritten = write_submission(
        folder,
        report,
        result,
        load_profiles(),
        shipped,
        checked=checked_driver,
        key=sign,
        reproduce=reproduce,
        overwrite=replace,
    )
    for line in summarize_report(report):
        typer.echo(printable(line))
    size = (folder / EVIDENCE).stat().st_size
    replacing = ", replacing that of another run" if overwritten else ""
    typer.echo(printable(f"submission in {folder}{replacing} (evidence: {size / 1024:.0f} KiB)"))
    raise typer.Exit(report.exit_code)
