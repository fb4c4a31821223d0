"""Commands about scenario files: list, lint, schema."""

from __future__ import annotations

import json
import sys
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from pydantic import BaseModel

from conformance.cli.coverage import coverage
from conformance.cli.options import takes
from conformance.cli.printable import printable
from conformance.data import scenarios_dir
from conformance.errors import ConformanceError, ExitCode, UsageError
from conformance.scenario.behaviours import load_behaviours
from conformance.scenario.lint.files import OWN_KINDS, LintLine, lint_documents
from conformance.scenario.loader import LoadedScenario, check_path
from conformance.scenario.profile import DriverProfile, load_profile
from conformance.scenario.registry import load_registry
from conformance.scenario.schema import schema_text
from conformance.scenario.selection import Selection, select
from conformance.scenario.validate import is_own
from conformance.scenario.yamlfile import (
    MAX_BYTES,
    YAML,
    Document,
    decoded,
    read_documents,
    yaml_files,
)
from conformance.text import addresses_first, counted, visible

_STDIN = Path("-")


@takes("selection", Selection)
def list_scenarios(
    selection: Selection,
    paths: Annotated[
        list[Path] | None, typer.Argument(help="Scenario files or folders; default: all shipped.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="As a page with links.")] = False,
    as_coverage: Annotated[
        bool, typer.Option("--coverage", help="What they show of DRA instead, as a page.")
    ] = False,
    features: Annotated[
        bool, typer.Option("--features", help="The features that scenarios can name instead.")
    ] = False,
    drivers: Annotated[
        bool, typer.Option("--drivers", help="The shipped driver profiles instead.")
    ] = False,
) -> None:
    """List scenarios with what each shows."""
    if as_json + markdown + as_coverage + features + drivers > 1:
        said = "--json, --markdown, --coverage, --features and --drivers"
        raise UsageError(f"{said} exclude each other")
    if features or drivers:
        for line in _features() if features else _drivers():
            typer.echo(visible(line))
        return
    found = select(paths or [], selection)
    if as_json:
        rows = [
            {"id": item.id, "digest": item.digest}
            | item.scenario.spec.model_dump(
                include={"summary", "level", "feature", "tier", "covers"}
            )
            | {"references": addresses_first(item.scenario.spec.references)}
            for item in found
        ]
        typer.echo(json.dumps(rows, indent=2))
        return
    if markdown:
        typer.echo(catalogue(found), nl=False)
        return
    if as_coverage:
        typer.echo(coverage(found, load_behaviours(), load_registry()), nl=False)
        return
    for item in found:
        spec = item.scenario.spec
        typer.echo(visible(f"{item.id}  ({spec.tier}, {spec.feature})"))
        typer.echo(_indented(visible(spec.summary)))
    where = scenarios_dir() if not paths else "the paths given"
    typer.echo(f"{counted(len(found), 'scenario')} below {where}")


def _features() -> Iterator[str]:
    scenarios = Counter(item.scenario.spec.feature for item in select())
    for name, feature in load_registry().features.items():
        gate = f", gate {feature.gate}" if feature.gate else ""
        yield f"{name}  ({counted(scenarios[name], 'scenario')}{gate})"
        yield _indented(feature.summary)


def _drivers() -> Iterator[str]:
    for file in sorted((scenarios_dir() / "drivers").glob("*.yaml")):
        yield f"{file.stem}  ({file})"
        yield _indented(load_profile(file.stem, file.parent).spec.description)


def _indented(text: str) -> str:
    return textwrap.fill(text, 78, initial_indent="    ", subsequent_indent="    ")


def lint(
    files: Annotated[
        list[Path],
        typer.Argument(
            help="Scenarios, driver profiles, Kubernetes manifests: files, folders, - for stdin."
        ),
    ],
    driver: Annotated[
        str,
        typer.Option(help="Driver profile that scenarios are for: a shipped name or a file."),
    ] = "",
    exclude: Annotated[
        list[str] | None,
        typer.Option(help="Glob over paths below a folder, or names in it (repeatable)."),
    ] = None,
) -> None:
    """Check files: scenarios and profiles against their model, manifests for what DRA retired.

    Says file, line, path and what to write instead. Exit code 2 if there is something to mend. In a
    folder hidden folders and documents of other tools are left out, and counted.
    """
    from conformance.certify.model import ConformanceReport
    from conformance.certify.profiles import ProfileSet

    profile = load_profile(driver, scenarios_dir() / "drivers") if driver else None
    linter = _Linter(
        {**OWN_KINDS, "ConformanceReport": ConformanceReport, "ProfileSet": ProfileSet}, profile
    )
    for given in files:
        linter.take(given, exclude or ())
    if not linter.checked and not linter.skipped:
        raise UsageError(f"no YAML or JSON files below {', '.join(map(str, files))}")
    for line in linter.found:
        typer.echo(printable(line.text))
    errors = sum(line.error for line in linter.found)
    typer.echo(
        f"{counted(linter.checked, 'file')} checked, {counted(errors, 'error')}, "
        f"{counted(len(linter.found) - errors, 'warning')}"
        + (f"; {counted(linter.skipped, 'file')} of other tools left out" if linter.skipped else "")
    )
    if errors:
        raise typer.Exit(ExitCode.USAGE)


class _Linter:
    """What was checked so far, and what was found."""

    def __init__(self, models: Mapping[str, type[BaseModel]], driver: DriverProfile | None) -> None:
        self.models = models
        self.driver = driver
        self.found: list[LintLine] = []
        self.checked = 0
        self.skipped = 0

    def take(self, given: Path, exclude: Sequence[str]) -> None:
        """Check a file, all files below a folder, or standard input."""
        try:
            if given == _STDIN:
                data = sys.stdin.buffer.read(MAX_BYTES + 1)
                self._check(decoded(data, Path("<stdin>")))
                return
            check_path(given)
            folder = given.is_dir()
            inside = yaml_files(given, (*YAML, ".json"), exclude) if folder else [given]
        except ConformanceError as error:
            self._refuse(error)
            return
        for file in inside:
            try:
                documents = read_documents(file)
            except ConformanceError as error:
                if folder and _is_template(file):
                    text = "is a template, which is not checked; check what it renders (`lint -`)"
                    self.found.append(LintLine(f"{file}: warning: {text}", error=False))
                    self.skipped += 1
                else:
                    self._refuse(error)
                continue
            if folder and not any(map(_is_object, documents)):
                self.skipped += 1
            else:
                self._check(documents)

    def _check(self, documents: Sequence[Document]) -> None:
        self.checked += 1
        self.found += lint_documents(documents, self.models, self.driver)

    def _refuse(self, error: ConformanceError) -> None:
        self.checked += 1
        self.found += map(LintLine, str(error).splitlines())


def _is_object(document: Document) -> bool:
    """Whether a document is a Kubernetes object or one of ours, rightly written or not."""
    data = document.data
    return is_own(document) or (isinstance(data, dict) and "apiVersion" in data)


def _is_template(file: Path) -> bool:
    return b"{{" in file.read_bytes()


SchemaName = Literal[
    "behaviours",
    "features",
    "known-issues",
    "manifests",
    "profile",
    "report",
    "results",
    "scenario",
    "shape",
]


def schema(
    which: Annotated[SchemaName, typer.Argument(help="Whose schema.")] = "scenario",
    example: Annotated[
        bool, typer.Option("--example", help="A shipped document of that kind instead.")
    ] = False,
) -> None:
    """Print the JSON Schema of a kind of document, generated from its model."""
    if example:
        typer.echo(_example(which).read_text(encoding="utf-8"), nl=False)
    else:
        typer.echo(schema_text(schema_of(which)), nl=False)


def _example(which: SchemaName) -> Path:
    files = {
        "behaviours": "behaviours.yaml",
        "features": "features.yaml",
        "known-issues": "known-issues.yaml",
        "manifests": "manifests.yaml",
        "profile": "drivers/gpu.example.com.yaml",
        "scenario": "core/two-requests-two-devices.yaml",
        "shape": "shapes/one-gpu-held.yaml",
    }
    if which not in files:
        raise UsageError(f"there is no example of {which}; there are of {', '.join(files)}")
    return scenarios_dir() / files[which]


def schema_of(which: SchemaName) -> dict[str, Any]:
    """The schema by its name."""
    from conformance.certify.model import ConformanceReport
    from conformance.resultfile.lines import result_schema
    from conformance.scenario.schema import json_schema, published

    match which:
        case "report":
            return published(which, ConformanceReport.model_json_schema(by_alias=True))
        case "results":
            return published(which, result_schema())
        case _:
            return json_schema(which)


def catalogue(found: Sequence[LoadedScenario]) -> str:
    """The scenarios as a Markdown page, by folder."""
    lines = [
        "# Scenario catalogue",
        "",
        "Generated: `dra-conformance list --markdown > docs/scenarios.md`. How to write one:",
        "[writing-scenarios.md](writing-scenarios.md). What a scenario needs that not every",
        "cluster has is in the last column ([clusters.md](clusters.md#what-cannot-be-seen)).",
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
                "| scenario | tier | feature | shows | needs |",
                "|---|---|---|---|---|",
            ]
        spec = item.scenario.spec
        link = f"[{leaf}](../scenarios/{item.id}.yaml)"
        needs = ", ".join(spec.requires.abilities)
        lines.append(f"| {link} | {spec.tier} | {spec.feature} | {spec.summary} | {needs} |")
    return "\n".join(lines) + "\n"
