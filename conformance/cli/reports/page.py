"""``page``: a static site of all submissions that verify."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from conformance.certify.page import INDEX, Entry, pages, write_pages
from conformance.certify.profiles import load_profiles
from conformance.certify.submission import check_folder, submissions
from conformance.cli.output import printable
from conformance.cli.reports.certified import catalogue
from conformance.errors import ConformanceError, ExitCode, UsageError
from conformance.text import counted


def page(
    reports: Annotated[Path, typer.Argument(metavar="FOLDER", help="Folder of submissions.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FOLDER", help="Folder of the site.")
    ],
    signers: Annotated[
        Path | None,
        typer.Option(metavar="ALLOWED_SIGNERS", help="ssh-keygen allowed signers file."),
    ] = None,
) -> None:
    """Write a static site: drivers and features for each Kubernetes minor, and badges.

    Submissions that fail verification are listed and left out; the exit code is then 1.
    """
    profiles, shipped = load_profiles(), catalogue()
    entries = []
    refused = 0
    for folder in submissions(reports):
        try:
            checked = check_folder(folder, profiles, shipped, signers)
            wrong = [str(item) for item in checked.verification.discrepancies]
        except ConformanceError as error:
            wrong = [str(error)]
        if wrong:
            typer.echo(printable(f"left out: {folder}: {wrong[0]}"), err=True)
            refused += 1
            continue
        of = checked.signature
        signed = "" if of is None else of.identity or f"the key {of.key}"
        found = checked.verification
        entries.append(Entry(found.report, signed, found.departures))
    try:
        write_pages(output, pages(entries))
    except OSError as error:
        raise UsageError(f"{output}: cannot be written: {error.strerror}") from None
    typer.echo(printable(f"{counted(len(entries), 'submission')} in {output / INDEX}"))
    raise typer.Exit(ExitCode.NOT_CONFORMANT if refused else ExitCode.CONFORMANT)
