"""Commands about scenario files: list, lint, schema."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import BaseModel

from conformance.cli.selection import Level, Tier, check_path, select
from conformance.cli.shown import shown
from conformance.data import scenarios_dir
from conformance.errors import ConformanceError, ExitCode, UsageError
from conformance.scenario.lint.files import OWN_KINDS, LintLine, lint_file
from conformance.scenario.loader import LoadedScenario
from conformance.scenario.schema import schema_text
from conformance.scenario.yamlfile import yaml_files
from conformance.text import visible

Paths = Annotated[
    list[Path] | None, typer.Argument(help="Scenario files or folders; default: all shipped.")
]


def list_scenarios(
    paths: Paths = None,
    tier: Annotated[list[Tier] | None, typer.Option(help="Only this tier.")] = None,
    level: Annotated[list[Level] | None, typer.Option(help="Only this level.")] = None,
    feature: Annotated[list[str] | None, typer.Option(help="Only this feature.")] = None,
    name: Annotated[list[str] | None, typer.Option("-k", help="Only ids like this glob.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="As a page with links.")] = False,
) -> None:
    """List scenarios with what each shows."""
    found = select(paths or [], tier, level, feature, name)
    if as_json:
        rows = [
            {"id": item.id, "digest": item.digest}
            | item.scenario.spec.model_dump(
                include={"summary", "level", "feature", "tier", "references"}
            )
            for item in found
        ]
        typer.echo(json.dumps(rows, indent=2))
        return
    if markdown:
        typer.echo(catalogue(found), nl=False)
        return
    for item in found:
        spec = item.scenario.spec
        typer.echo(visible(f"{item.id}  ({spec.tier}, {spec.feature})"))
        summary = visible(spec.summary)
        typer.echo(textwrap.fill(summary, 78, initial_indent="    ", subsequent_indent="    "))
    typer.echo(
        f"{len(found)} scenarios below {scenarios_dir() if not paths else 'the paths given'}"
    )


def lint(
    files: Annotated[
        list[Path], typer.Argument(help="Scenarios, driver profiles, Kubernetes manifests.")
    ],
) -> None:
    """Check files: scenarios and profiles against their model, manifests for what DRA retired.

    Says file, line, path and what to write instead. Exit code 2 if there is something to mend.
    """
    from conformance.certify.model import ConformanceReport
    from conformance.certify.profiles import ProfileSet

    models: dict[str, type[BaseModel]] = {
        **OWN_KINDS,
        "ConformanceReport": ConformanceReport,
        "ProfileSet": ProfileSet,
    }
    found: list[LintLine] = []
    checked = 0
    for given in files:
        try:
            inside = _files(given)
        except UsageError as error:
            found.append(LintLine(str(error)))
            checked += 1
            continue
        checked += len(inside)
        for file in inside:
            try:
                found += lint_file(file, models)
            except ConformanceError as error:
                found += map(LintLine, str(error).splitlines())
    if not checked:
        raise UsageError(f"no YAML files below {', '.join(map(str, files))}")
    for line in found:
        typer.echo(shown(line))
    errors = sum(line.error for line in found)
    typer.echo(f"{checked} files checked, {errors} errors, {len(found) - errors} warnings")
    if errors:
        raise typer.Exit(ExitCode.USAGE)


def _files(given: Path) -> list[Path]:
    """The YAML files of a folder, or the file itself."""
    check_path(given)
    if not given.is_dir():
        return [given]
    return yaml_files(given, (".yaml", ".yml"))


class SchemaName(StrEnum):
    """The kinds of documents that have a schema."""

    FEATURES = "features"
    PROFILE = "profile"
    REPORT = "report"
    RESULTS = "results"
    SCENARIO = "scenario"


def schema(
    which: Annotated[SchemaName, typer.Argument(help="Whose schema.")] = SchemaName.SCENARIO,
) -> None:
    """Print the JSON Schema of a kind of document, generated from its model."""
    typer.echo(schema_text(schema_of(which)), nl=False)


def schema_of(which: SchemaName) -> dict[str, Any]:
    """The schema by its name."""
    from conformance.certify.model import report_schema
    from conformance.resultfile.lines import result_schema
    from conformance.scenario.schema import json_schema, published

    match which:
        case SchemaName.REPORT:
            return published(which, report_schema())
        case SchemaName.RESULTS:
            return published(which, result_schema())
        case _:
            return json_schema(which)


def catalogue(found: Sequence[LoadedScenario]) -> str:
    """The scenarios as a Markdown page, by folder."""
    lines = [
        "# Scenario catalogue",
        "",
        "Generated: `dra-conformance list --markdown > docs/scenarios.md`. How to write one:",
        "[writing-scenarios.md](writing-scenarios.md).",
    ]
    folder = None
    for item in found:
        head, _, leaf = item.id.rpartition("/")
        if head != folder:
            folder = head
            lines += [
                "",
                f"## {head}",
                "",
                "| scenario | tier | feature | shows |",
                "|---|---|---|---|",
            ]
        spec = item.scenario.spec
        link = f"[{leaf}](../scenarios/{item.id}.yaml)"
        lines.append(f"| {link} | {spec.tier} | {spec.feature} | {spec.summary} |")
    return "\n".join(lines) + "\n"
