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
    first = load_profile(driver or OWN_PROFILE, scenarios_dir() / "drivers")
    profiles = (first, *(() if driver else shipped_profiles()))
    variables, steps = _bound(found, profiles, image)
    typer.echo(visible("\n".join(_page(found, variables, steps))))


def _bound(
    found: LoadedScenario, profiles: Sequence[DriverProfile], image: str
) -> tuple[Variables, Sequence[dict[str, Any]]]:
    """The steps with the first profile that has what they name.

    Raises UsageError: none has; says what the first one lacks.
    """
    spec, problems = found.scenario.spec, list[UsageError]()
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
            return variables, found.bind_document(variables).data["spec"]["steps"]
        except UsageError as error:
            problems.append(error)
    raise problems[0]


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
    spec, namespace = found.scenario.spec, variables.look_up("namespace")
    yield f"# {found.id}"
    yield f"# {spec.summary}"
    yield f"# kubectl create namespace {namespace}; kubectl apply -n {namespace} -f THIS"
    if spec.nodes:
        nodes = ", ".join(variables.look_up(f"node.{node}") for node in spec.nodes)
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
