"""``dra-conformance list``: scenarios, what they can name, and the generated pages in docs/."""

from __future__ import annotations

import json
import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Final

import typer
from packaging.specifiers import SpecifierSet

from conformance.cli.options import takes
from conformance.data import scenarios_dir
from conformance.engine.options import RunOptions
from conformance.engine.shards import shard_of
from conformance.errors import UsageError
from conformance.resultfile.merge import only_failed
from conformance.scenario.driver.profile import load_profile
from conformance.scenario.loader import LoadedScenario
from conformance.scenario.model import Spec
from conformance.scenario.registry import (
    Behaviour,
    BehaviourList,
    FeatureRegistry,
    load_behaviours,
    load_registry,
)
from conformance.scenario.selection import Selection, select
from conformance.text import addresses_first, counted, visible
from reference_allocator.gates import MINORS, gates_for_version

_HEAD: Final = """\
# Coverage

What Kubernetes promises of DRA, and which scenarios show it. {behaviours}: {covered} covered,
{partly} in part, {without} without a scenario. {tests} of Kubernetes {version} are about them.

Generated: `dra-conformance list --coverage > docs/coverage.md`, from
[behaviours.yaml](../scenarios/behaviours.yaml), which has the lines of upstream's tests, and from
`covers` in the scenarios.

- **upstream**: how many of upstream's tests and cases come down to this behaviour.
- **minors**: where a scenario runs; in brackets where something must be turned on for that.
- **targets**: what it needs: *API*, a control plane and no nodes; *driver*, nodes with devices;
  *local*, something that the suite's own cluster can do and not every other
  ([what](clusters.md#what-cannot-be-seen)).
"""
_COVERED: Final = """
## With scenarios

| behaviour | scenarios | upstream | minors | targets | what is missing |
|---|---|---|---|---|---|
"""
_WITHOUT: Final = """
## Without a scenario

| behaviour | upstream | why |
|---|---|---|
"""


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


def coverage(
    found: Sequence[LoadedScenario], known: BehaviourList, features: FeatureRegistry
) -> str:
    """The page docs/coverage.md.

    Args:
        found: the scenarios; each names behaviours that are ``known``.
        known: the behaviours, each of a feature that is in ``features``.
        features: for the enhancement behind each behaviour.
    """
    covered, without = [_COVERED], [_WITHOUT]
    partly = tests = 0
    for name, behaviour in known.behaviours.items():
        theirs = sum(map(len, behaviour.upstream.values()))
        tests += theirs
        head = _behaviour(name, behaviour, features)
        by = [item for item in found if name in item.scenario.spec.covers]
        missing = behaviour.missing or ""
        if not by:
            without.append(f"| {head} | {theirs or ''} | {missing} |\n")
            continue
        partly += bool(missing)
        specs = [item.scenario.spec for item in by]
        links = ", ".join(map(_link, by))
        targets = ", ".join(sorted(set(map(_target, specs))))
        cells = (head, links, str(theirs or ""), _minors(specs), targets, missing)
        covered.append(f"| {' | '.join(cells)} |\n")
    head = _HEAD.format(
        behaviours=counted(len(known.behaviours), "behaviour"),
        covered=len(covered) - 1 - partly,
        partly=partly,
        without=len(without) - 1,
        tests=counted(tests, "test"),
        version=known.version.removeprefix("v"),
    )
    return "".join((head, *covered, *without))


def _behaviour(name: str, behaviour: Behaviour, features: FeatureRegistry) -> str:
    kep = features.features[behaviour.feature].kep
    return f"**{name}** ([{kep.rpartition('/')[2]}]({kep})): {behaviour.summary}"


def _link(item: LoadedScenario) -> str:
    return f"[{item.id.rpartition('/')[2]}](../scenarios/{item.id}.yaml)"


def _minors(specs: Sequence[Spec]) -> str:
    """The minors in which one of the scenarios runs, by default or with what it needs turned on."""
    said = []
    for minor in MINORS:
        fits = [spec for spec in specs if _exists(spec, minor)]
        if any(_by_default(spec, minor) for spec in fits):
            said.append(minor)
        elif fits:
            said.append(f"({minor})")
    return ", ".join(said)


def _exists(spec: Spec, minor: str) -> bool:
    needs = spec.requires
    known = gates_for_version(minor)
    return f"{minor}.0" in SpecifierSet(needs.kubernetes) and known.keys() >= {*needs.feature_gates}


def _by_default(spec: Spec, minor: str) -> bool:
    """Whether all gates are on; of API versions only v1 is served unless one asks for others."""
    known = gates_for_version(minor)
    return not spec.requires.apis and all(
        known[gate].default for gate in spec.requires.feature_gates
    )


def _target(spec: Spec) -> str:
    if spec.requires.abilities:
        return "local"
    return "API" if spec.tier == "allocation" else "driver"


@takes("selection", Selection)
@takes("about", RunOptions, only=("shard",))
def list_scenarios(
    selection: Selection,
    about: RunOptions,
    paths: Annotated[
        list[Path] | None,
        typer.Argument(metavar="PATH", help="Scenario files or folders. [default: all shipped]"),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print a Markdown page with links.")
    ] = False,
    as_coverage: Annotated[
        bool, typer.Option("--coverage", help="Print a Markdown page of the behaviours they cover.")
    ] = False,
    features: Annotated[bool, typer.Option("--features", help="List features instead.")] = False,
    drivers: Annotated[
        bool, typer.Option("--drivers", help="List shipped driver profiles instead.")
    ] = False,
) -> None:
    """List scenarios, features, driver profiles or covered behaviours."""
    if as_json + markdown + as_coverage + features + drivers > 1:
        said = "--json, --markdown, --coverage, --features and --drivers"
        raise UsageError(f"{said} exclude each other")
    if features or drivers:
        for line in _features() if features else _drivers():
            typer.echo(visible(line))
        return
    found, _ = shard_of(select(paths or [], only_failed(selection)), about.shard)
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
        spec = load_profile(file.stem, file.parent).spec
        yield _indented(spec.description)
        for name, option in spec.options.items():
            yield _indented(f"--driver-option {name}: {option.description}")


def _indented(text: str) -> str:
    return textwrap.fill(text, 78, initial_indent="    ", subsequent_indent="    ")
