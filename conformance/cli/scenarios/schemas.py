"""``dra-conformance schema``: JSON Schemas and examples of the suite's documents."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import typer

from conformance.data import scenarios_dir
from conformance.errors import UsageError
from conformance.scenario.schema import schema_text

SchemaName = Literal[
    "driver-check",
    "features",
    "known-issues",
    "manifests",
    "profile",
    "report",
    "results",
    "scenario",
    "scheduler",
    "shape",
    "summary",
]


def schema(
    which: Annotated[
        SchemaName,
        typer.Argument(metavar="KIND", help=f"One of {', '.join(get_args(SchemaName))}."),
    ] = "scenario",
    example: Annotated[
        bool, typer.Option("--example", help="Print a shipped document of that kind instead.")
    ] = False,
) -> None:
    """Print the JSON Schema of a kind of document, generated from its model."""
    if example:
        typer.echo(_example(which).read_text(encoding="utf-8"), nl=False)
    else:
        typer.echo(schema_text(schema_of(which)), nl=False)


def _example(which: SchemaName) -> Path:
    files = {
        "features": "features.yaml",
        "known-issues": "known-issues.yaml",
        "manifests": "manifests.yaml",
        "profile": "drivers/gpu.example.com.yaml",
        "scenario": "core/two-requests-two-devices.yaml",
        "scheduler": "schedulers/volcano.yaml",
        "shape": "shapes/one-gpu-held.yaml",
    }
    if which not in files:
        raise UsageError(f"there is no example of {which}; examples exist for {', '.join(files)}")
    return scenarios_dir() / files[which]


def schema_of(which: SchemaName) -> dict[str, Any]:
    """The schema by its name."""
    from conformance.certify.model import ConformanceReport
    from conformance.resultfile.write import result_schema
    from conformance.scenario.schema import json_schema, published

    match which:
        case "driver-check":
            from conformance.drivercheck.result import DriverCheckResult

            schema = DriverCheckResult.model_json_schema(by_alias=True, mode="serialization")
            return published(which, schema)
        case "report":
            return published(which, ConformanceReport.model_json_schema(by_alias=True))
        case "results":
            return published(which, result_schema())
        case "summary":
            from conformance.report.jsonsummary import summary_schema

            return published(which, summary_schema())
        case _:
            return json_schema(which)
