"""``dra-conformance list``: scenarios, what they can name, and the generated page of them."""

from __future__ import annotations

import json
import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Annotated

import typer

from conformance.cli.options import Paths
from conformance.data import scenarios_dir
from conformance.engine.options import RunOptions
from conformance.engine.plan import shard_of
from conformance.results.merge import only_failed
from conformance.scenario.driver.profile import load_profile
from conformance.scenario.loader import LoadedScenario
from conformance.scenario.registry import load_registry
from conformance.scenario.selection import Selection, select
from kube.base.commandline import add_options
from kube.base.errors import UsageError
from kube.base.text import addresses_first, counted, visible


def render_catalogue(scenarios: Sequence[LoadedScenario]) -> str:
    """Render scenarios as a Markdown page, by folder."""
    lines = [
        "# Scenario catalogue",
        "",
        "Written by `dra-conformance list --markdown`. How to write one:",
        "[writing-scenarios.md](writing-scenarios.md). What a scenario needs that not every",
        "cluster has is in the last column ([clusters.md](clusters.md#what-cannot-be-seen)).",
    ]
    folder = None
    for loaded in scenarios:
        head, _, leaf = loaded.id.rpartition("/")
        if head != folder:
            folder = head
            lines += [
                "",
                f"## {head}",
                "",
                "| scenario | tier | feature | shows | needs |",
                "|---|---|---|---|---|",
            ]
        spec = loaded.scenario.spec
        link = f"[{leaf}](../scenarios/{loaded.id}.yaml)"
        needs = ", ".join(spec.requires.abilities)
        lines.append(f"| {link} | {spec.tier} | {spec.feature} | {spec.summary} | {needs} |")
    return "\n".join(lines) + "\n"


@add_options("selection", Selection)
@add_options("run_options", RunOptions, only=("shard",))
def list_command(
    selection: Selection,
    run_options: RunOptions,
    paths: Paths = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print a Markdown page with links.")
    ] = False,
    features: Annotated[bool, typer.Option("--features", help="List features instead.")] = False,
    drivers: Annotated[
        bool, typer.Option("--drivers", help="List shipped driver profiles instead.")
    ] = False,
) -> None:
    """List scenarios, features or driver profiles."""
    if as_json + markdown + features + drivers > 1:
        raise UsageError("--json, --markdown, --features and --drivers exclude each other")
    if features or drivers:
        for line in _list_features() if features else _list_drivers():
            typer.echo(visible(line))
        return
    scenarios, _ = shard_of(select(paths or [], only_failed(selection)), run_options.shard)
    if as_json:
        rows = [
            {"id": loaded.id, "digest": loaded.digest}
            | loaded.scenario.spec.model_dump(include={"summary", "level", "feature", "tier"})
            | {"references": addresses_first(loaded.scenario.spec.references)}
            for loaded in scenarios
        ]
        typer.echo(json.dumps(rows, indent=2))
        return
    if markdown:
        typer.echo(render_catalogue(scenarios), nl=False)
        return
    for loaded in scenarios:
        spec = loaded.scenario.spec
        typer.echo(visible(f"{loaded.id}  ({spec.tier}, {spec.feature})"))
        typer.echo(_indent(visible(spec.summary)))
    where = scenarios_dir() if not paths else "the paths given"
    typer.echo(f"{counted(len(scenarios), 'scenario')} below {where}")


def _list_features() -> Iterator[str]:
    counts = Counter(loaded.scenario.spec.feature for loaded in select())
    for name, feature in load_registry().features.items():
        gate = f", gate {feature.gate}" if feature.gate else ""
        yield f"{name}  ({counted(counts[name], 'scenario')}{gate})"
        yield _indent(feature.summary)


def _list_drivers() -> Iterator[str]:
    for file in sorted((scenarios_dir() / "drivers").glob("*.yaml")):
        yield f"{file.stem}  ({file})"
        spec = load_profile(file.stem, file.parent).spec
        yield _indent(spec.description)
        for name, option in spec.options.items():
            yield _indent(f"--driver-option {name}: {option.description}")


def _indent(text: str) -> str:
    return textwrap.fill(text, 78, initial_indent="    ", subsequent_indent="    ")
