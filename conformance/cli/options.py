"""Arguments and options that several commands share, besides those that are made of tables."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

Paths = Annotated[
    list[Path] | None,
    typer.Argument(metavar="PATH", help="Scenario files or folders. [default: all shipped]"),
]
Results = Annotated[
    Path, typer.Argument(metavar="RESULTS", help="Result file of a run (results.ndjson).")
]
TextOrJson = Annotated[
    Literal["text", "json"], typer.Option("--output", "-o", help="What to print.")
]
Html = Annotated[
    Path | None,
    typer.Option("--html", metavar="FILE", help="Also write an HTML page of nodes and devices."),
]
