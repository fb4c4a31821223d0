"""``dra-conformance show``: a scenario as the suite runs it, with all defaults filled in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml

from conformance.clusters.base import DEFAULT_IMAGE
from conformance.data import scenarios_dir
from conformance.errors import UsageError
from conformance.scenario.driver.profile import load_profile
from conformance.scenario.driver.variables import Variables
from conformance.scenario.loader import LoadedScenario
from conformance.scenario.selection import Selection, select
from conformance.targets.opening.options import OTHER_PROFILE, OWN_PROFILE
from conformance.text import visible

_WIDTH = 80
_WORKER = "node-with-devices"


def show(
    scenario: Annotated[
        str,
        typer.Argument(
            metavar="ID|FILE", help="Scenario id, an unambiguous part of one, or a file."
        ),
    ],
    driver: Annotated[
        str,
        typer.Option(
            metavar="PROFILE",
            help="Driver profile: a shipped name or a file. [default: nvml-dra-driver, or a "
            "shipped one that has what the scenario names]",
            show_default=False,
        ),
    ] = "",
    image: Annotated[
        str, typer.Option(metavar="IMAGE", help="Image for the pods.")
    ] = DEFAULT_IMAGE,
) -> None:
    """Print a scenario in full, as YAML for kubectl: objects in the order of the steps.

    Other steps (expectations, deletions) are printed as comments.
    """
    found = _one(scenario)
    variables = _variables(found, driver or _suitable(found), image)
    steps = found.bound(variables).data["spec"]["steps"]
    typer.echo(visible("\n".join(_page(found, variables, steps))))


def _variables(found: LoadedScenario, driver: str, image: str) -> Variables:
    spec = found.scenario.spec
    profile = load_profile(driver, scenarios_dir() / "drivers")
    return Variables(
        None if spec.tier == "allocation" else profile,
        "show",
        image,
        {_WORKER: spec.requires.devices_in_all},
        other=load_profile(OTHER_PROFILE, scenarios_dir() / "drivers"),
        hardware=spec.tier == "device",
    )


def _suitable(found: LoadedScenario) -> str:
    """Our own driver's profile, or another with the attributes that a scenario names."""
    shipped = sorted(file.stem for file in (scenarios_dir() / "drivers").glob("*.yaml"))
    for name in (OWN_PROFILE, *shipped):
        try:
            found.bound(_variables(found, name, DEFAULT_IMAGE))
        except UsageError:
            continue
        return name
    return OWN_PROFILE  # whose error says what it lacks


def _one(scenario: str) -> LoadedScenario:
    if Path(scenario).is_file() or scenario.endswith((".yaml", ".yml")):
        return select([Path(scenario)])[0]
    found = select([], Selection(only=(scenario,)))
    exact = [item for item in found if scenario in (item.id, item.id.rpartition("/")[2])]
    if len(exact or found) > 1:
        names = ", ".join(item.id for item in found[:6])
        raise UsageError(f"{scenario!r} matches {len(found)} ids; give one of them: {names}")
    return (exact or found)[0]


def _page(
    found: LoadedScenario, variables: Variables, steps: Sequence[dict[str, Any]]
) -> Iterator[str]:
    spec, namespace = found.scenario.spec, variables.value("namespace")
    yield f"# {found.id}"
    yield f"# {spec.summary}"
    yield f"# kubectl create namespace {namespace}; kubectl apply -n {namespace} -f THIS"
    if spec.nodes:
        nodes = ", ".join(variables.value(f"node.{node}") for node in spec.nodes)
        yield f"# Nodes that the suite creates: {nodes}"
    for number, step in enumerate(steps, 1):
        yield f"# Step {number}: {', '.join(step)}"
        if "apply" not in step:
            [first, *more] = step.values()
            yield from (f"#   {line}" for line in _yaml(step if more else first))
        for manifest in step.get("apply", ()):
            yield "---"
            yield from _yaml(manifest)


def _yaml(value: Any) -> list[str]:
    return yaml.dump(
        value, Dumper=_Dumper, sort_keys=False, width=_WIDTH, allow_unicode=True
    ).splitlines()


class _Dumper(yaml.SafeDumper):
    """Repeats what is in several places, where PyYAML would write an alias."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 -- PyYAML's signature
        return True
