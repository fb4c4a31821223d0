"""``dra-conformance page``: a folder of submissions as a static site."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Annotated

import typer

from conformance.certify.page import INDEX, Entry, find_clashes, render_pages, write_pages
from conformance.certify.profiles import load_profiles
from conformance.certify.submission import check_folder, find_submissions
from conformance.cli.certifying import list_shipped_scenarios
from conformance.cli.output import printable
from kube.base.errors import ConformanceError, ExitCode, UsageError
from kube.base.text import counted


def page_command(
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

    Submissions that fail verification, or share name and minor with another one, are listed and
    left out; the exit code is then 1.
    """
    profiles, shipped = load_profiles(), cache(list_shipped_scenarios)
    entries: list[Entry] = []
    refused: list[str] = []
    for folder in find_submissions(reports):
        try:
            checked = check_folder(folder, profiles, shipped, signers)
            problems = [str(item) for item in checked.verification.discrepancies]
        except ConformanceError as error:
            problems = [str(error)]
        if problems:
            refused.append(f"{folder}: {problems[0]}")
            continue
        signature, verification = checked.signature, checked.verification
        signer = "" if signature is None else signature.identity or f"the key {signature.key}"
        entries.append(Entry(folder, verification.report, signer, verification.departures))
    clashes = find_clashes(entries)
    for folder, namesakes in clashes.items():
        refused.append(
            f"{folder}: {', '.join(map(str, namesakes))} would have the same badges; keep one of"
            " them, or give them other names"
        )
    for text in refused:
        typer.echo(printable(f"left out: {text}"), err=True)
    entries = [entry for entry in entries if entry.folder not in clashes]
    try:
        write_pages(output, render_pages(entries))
    except OSError as error:
        raise UsageError(f"{output}: cannot be written: {error.strerror}") from None
    typer.echo(printable(f"{counted(len(entries), 'submission')} in {output / INDEX}"))
    raise typer.Exit(ExitCode.NOT_CONFORMANT if refused else ExitCode.CONFORMANT)
