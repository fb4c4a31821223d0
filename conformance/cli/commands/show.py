"""``dra-conformance show``: a scenario as the suite runs it, with all defaults filled in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml

from conformance.data import scenarios_dir
from conformance.scenario.driver.profile import DriverProfile, load_profile, shipped_profiles
from conformance.scenario.driver.variables import Variables
from conformance.scenario.loader import LoadedScenario
from conformance.scenario.selection import Selection, select
from conformance.targets.opening.options import OTHER_PROFILE, OWN_PROFILE
from kube.base.errors import UsageError
from kube.base.text import visible
from localkube.base import DEFAULT_IMAGE

_WIDTH = 80
_WORKER = "node-with-devices"


def show_command(
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
    loaded = _find_scenario(scenario)
    first = load_profile(driver or OWN_PROFILE, scenarios_dir() / "drivers")
    profiles = (first, *(() if driver else shipped_profiles()))
    variables, steps = _bind_steps(loaded, profiles, image)
    typer.echo(visible("\n".join(_render_lines(loaded, variables, steps))))


def _bind_steps(
    loaded: LoadedScenario, profiles: Sequence[DriverProfile], image: str
) -> tuple[Variables, Sequence[dict[str, Any]]]:
    """Bind the steps to the first profile that has what they name.

    Raises UsageError: none has; says what the first one lacks.
    """
    spec, problems = loaded.scenario.spec, list[UsageError]()
    for profile in profiles:
        variables = Variables(
            None if spec.tier == "allocation" else profile,
            "show",
            image,
            {_WORKER: spec.requires.devices_in_all},
            other=load_profile(OTHER_PROFILE, scenarios_dir() / "drivers"),
            hardware=spec.tier == "device",
        )
        try:
            return variables, loaded.bind_document(variables).data["spec"]["steps"]
        except UsageError as error:
            problems.append(error)
    raise problems[0]


def _find_scenario(name: str) -> LoadedScenario:
    """Find a scenario by its file, its id, or a part of its id that no other has."""
    if Path(name).is_file() or name.endswith((".yaml", ".yml")):
        return select([Path(name)])[0]
    matching = select([], Selection(only=(name,)))
    exact = [loaded for loaded in matching if name in (loaded.id, loaded.id.rpartition("/")[2])]
    if len(exact or matching) > 1:
        names = ", ".join(loaded.id for loaded in matching[:6])
        raise UsageError(f"{name!r} matches {len(matching)} ids; give one of them: {names}")
    return (exact or matching)[0]


def _render_lines(
    loaded: LoadedScenario, variables: Variables, steps: Sequence[dict[str, Any]]
) -> Iterator[str]:
    """Render a scenario as the lines of a YAML file for kubectl."""
    spec, namespace = loaded.scenario.spec, variables.look_up("namespace")
    yield f"# {loaded.id}"
    yield f"# {spec.summary}"
    yield f"# kubectl create namespace {namespace}; kubectl apply -n {namespace} -f THIS"
    if spec.nodes:
        nodes = ", ".join(variables.look_up(f"node.{node}") for node in spec.nodes)
        yield f"# Nodes that the suite creates: {nodes}"
    for number, step in enumerate(steps, 1):
        yield f"# Step {number}: {', '.join(step)}"
        if "apply" not in step:
            content = step if len(step) > 1 else next(iter(step.values()))
            yield from (f"#   {line}" for line in _dump_lines(content))
        for manifest in step.get("apply", ()):
            yield "---"
            yield from _dump_lines(manifest)


def _dump_lines(value: Any) -> list[str]:
    return yaml.dump(
        value, Dumper=_Dumper, sort_keys=False, width=_WIDTH, allow_unicode=True
    ).splitlines()


class _Dumper(yaml.SafeDumper):
    """Repeats what is in several places, where PyYAML would write an alias."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 -- PyYAML's signature
        return True
