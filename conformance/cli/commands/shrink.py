"""``dra-conformance shrink``: the smallest snapshot that shows the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from conformance.cli.output import printable, write_named
from conformance.cli.snapshots import GivenFiles
from kube.base.errors import ExitCode, UsageError


def shrink_command(
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="A snapshot, a dump, a decision, or results.ndjson."),
    ],
    subject: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="NAMESPACE/NAME of a pod or claim in a snapshot; of a result file, a scenario.",
        ),
    ] = "",
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="[default: FILE with .small.json at its end]"
        ),
    ] = None,
) -> None:
    """Make a snapshot small: the same rules keep the pod waiting, or the same rules are broken.

    Needs no cluster. `explain` and `replay` read what is written.

    Exit code: 0 written, 2 usage error, or there is nothing that waits or breaks a rule.
    """
    from conformance.fuzz.shrink_evidence import shrink_file

    given = GivenFiles()
    verdict, document = shrink_file(file, subject, given.read)
    data = json.dumps(document, indent=1).encode()
    if output is None and str(file) == "-":
        raise UsageError("-: name the file to write: -o FILE")
    small_file = output or file.with_name(f"{file.name.removesuffix('.gz')}.small.json")
    write_named(small_file, data)
    typer.echo(printable(f"{small_file}: {len(data)} bytes; {', '.join(verdict)}"))
    raise typer.Exit(given.conclude(ExitCode.CONFORMANT))
