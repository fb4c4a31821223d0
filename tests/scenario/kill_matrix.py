"""Which scenarios notice which deliberate defect of the reference, and the page that says so.

`python -m tests.scenario.kill_matrix` meets each mutant with every shipped scenario and writes what
came of it into `kills.yaml`, which tests read and the page is made from. With names of defects or
scenarios it meets only these with all of the others, and keeps what was written of the rest.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence, Set
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from itertools import repeat
from pathlib import Path
from typing import Any, Final

import yaml
from packaging.specifiers import SpecifierSet

from conformance.engine.setup import Setup
from conformance.engine.suite import run_suite
from conformance.results.events.scenario import Outcome, ScenarioFinished
from conformance.scenario.driver.profile import DriverProfile, load_profile
from conformance.scenario.loader import LoadedScenario
from conformance.scenario.shape import ShapeNode
from conformance.seam.abilities import Ability
from conformance.targets.opening.inventory import choose_other_source
from conformance.targets.opening.options import OTHER_PROFILE, TargetOptions
from conformance.targets.opening.target import Opened
from conformance.targets.reference.device_source import SimulatedGpus
from reference_allocator.gates import LATEST, MINORS
from tests.mutants import DEFECTS, mutant
from tests.scenario.shipped import ROOT, on_reference
from tests.statements import wrongs

COMMAND: Final = "python -m tests.scenario.kill_matrix"
KILLS: Final = Path(__file__).with_name("kills.yaml")

GATES: Final = {
    "DRADerivedAttributes": True,
    "DRADeviceCompatibilityGroups": True,
    "DRAFractionalCapacityRange": True,
    "DRAListTypeAttributes": True,
    "DRANodeAllocatableResources": True,
    "DRAOptionalNodeOperations": True,
    "DRAPartitionableDevicesType": True,
    "DRAResourcePoolStatus": True,
    "DRAWorkloadResourceClaims": True,
    "GenericWorkload": True,
}
"""Gates of the reference beside its defaults: what scenarios about features that are off need."""

NODES: Final[Mapping[str, tuple[str, Mapping[str, Any]]]] = {
    Ability.SHARED_DEVICES: (
        "nvml-dra-driver",
        {"nodes": [ShapeNode(name="reference-node-0", gpus="t4x2", shares=3)]},
    ),
    Ability.PARTITIONS: (
        "gpu.nvidia.com-mig",
        {"devices": SimulatedGpus("a30x4", dynamic_mig=True)},
    ),
    Ability.ANOTHER_SCHEDULER: ("nvml-dra-driver", {"scheduler": "another"}),
}
"""Ability -> the profile of devices that have it, and what else the reference has then."""

_REASON: Final = "not alone"
_KILLS_HEAD: Final = f"""\
# Which defects a scenario notices. Written by {COMMAND}, and a row by
# `make scenario`; where it alone notices none, `not alone` says by hand why it is there.
"""

Kills = Mapping[str, Sequence[str]]
"""Title of a defect -> ids of the scenarios that notice it."""


@cache
def driver_profile(name: str) -> DriverProfile:
    return load_profile(name, ROOT / "drivers")


def run_on_reference(
    scenarios: Sequence[LoadedScenario], *faults: str
) -> dict[str, ScenarioFinished]:
    """Scenario -> how it ended on a reference with these faults."""
    finished: dict[str, ScenarioFinished] = {}
    for needs in {_needs(each) for each in scenarios}:
        off, kind, minor = needs
        those = [each for each in scenarios if _needs(each) == needs]
        gates = {**GATES, **dict.fromkeys(off, False)}
        finished |= _on_nodes(kind, minor, gates, those, faults)
    return finished


def outcomes(scenarios: Sequence[LoadedScenario], *faults: str) -> dict[str, Outcome]:
    """Scenario -> what became of it on a reference with these faults."""
    return {name: _own(item) for name, item in run_on_reference(scenarios, *faults).items()}


def _needs(each: LoadedScenario) -> tuple[frozenset[str], str, str]:
    """Gates that must be off, the ability that the usual reference has not, and the minor.

    The minor is the usual one, or else the latest that the scenario is about.
    """
    needs = each.scenario.spec.requires
    kind = next((name for name in NODES if name in needs.abilities), "")
    fitting = [*SpecifierSet(needs.versions).filter(MINORS)]
    minor = fitting[-1] if fitting and LATEST not in fitting else LATEST
    return frozenset(needs.feature_gates_off), kind, minor


def _on_nodes(
    kind: str,
    minor: str,
    gates: Mapping[str, bool],
    scenarios: Sequence[LoadedScenario],
    faults: Sequence[str],
) -> dict[str, ScenarioFinished]:
    name, nodes = NODES.get(kind, ("nvml-dra-driver", {}))
    profile, other = (driver_profile(name) for name in (name, OTHER_PROFILE))
    beside = choose_other_source(TargetOptions(), other, None)
    version = {} if minor == LATEST else {"kubernetes_version": f"{minor}.0"}
    with mutant(*faults, feature_gates=dict(gates), other=beside, **version, **nodes) as target:
        options = TargetOptions(scheduler=nodes.get("scheduler", ""))
        setup = Setup("kill", Opened.of(target, profile, "image", options, other))
        result = run_suite(scenarios, setup, ())
    return {item.scenario.id: item for item in result.finished}


def _own(finished: ScenarioFinished) -> Outcome:
    """What a scenario's own steps came to: devices in two claims are looked for in every run."""
    steps = {step.outcome for step in finished.steps}
    if finished.overlaps and steps == {Outcome.PASSED} and finished.cleanup is Outcome.PASSED:
        return Outcome.PASSED
    return finished.outcome


def failing(scenarios: Sequence[LoadedScenario], fault: str) -> set[str]:
    """The scenarios that fail with a fault, one after the other on one reference."""
    found = outcomes(scenarios, fault)
    if len(scenarios) > 1:  # a driver that is lost in one is lost for the next
        for each in scenarios:
            if found[each.id] is Outcome.ERROR:
                found |= outcomes([each], fault)
    unclear = {name: o for name, o in found.items() if o not in {Outcome.PASSED, Outcome.FAILED}}
    assert not unclear, f"{fault} is taken for something else than a failure: {unclear}"
    return {name for name, outcome in found.items() if outcome is Outcome.FAILED}


def noticing(fault: str, among: Sequence[LoadedScenario]) -> list[str]:
    """The scenarios that notice a fault.

    What fails is run again on a reference of its own: what another scenario had to leave behind is
    not its merit.
    """
    suspects = failing(among, fault)
    return [each.id for each in among if each.id in suspects and failing([each], fault)]


@cache
def _rows() -> Mapping[str, Mapping[str, Any]]:
    rows: Mapping[str, Mapping[str, Any]] = yaml.safe_load(KILLS.read_text(encoding="utf-8"))
    return rows


@cache
def read_kills() -> Kills:
    """What was found when they met last."""
    kills: dict[str, list[str]] = {}
    for name, row in sorted(_rows().items()):
        for title in row["notices"]:
            kills.setdefault(title, []).append(name)
    return dict(sorted(kills.items()))


@cache
def read_not_alone() -> Mapping[str, str]:
    """Scenario -> why there is no defect that it alone notices."""
    return {name: row[_REASON] for name, row in _rows().items() if _REASON in row}


def write_kills(kills: Kills, reasons: Mapping[str, str]) -> None:
    """Write a row for each scenario: what it notices, and the reason if it has one."""
    rows: dict[str, dict[str, Any]] = {
        name: {_REASON: reasons[name]} if name in reasons else {}
        for name in sorted({*reasons, *(name for names in kills.values() for name in names)})
    }
    for name, row in rows.items():
        row["notices"] = sorted(title for title, names in kills.items() if name in names)
    text = yaml.safe_dump(rows, sort_keys=False, width=100, default_flow_style=None)
    KILLS.write_text(f"{_KILLS_HEAD}{text}", encoding="utf-8")


def own(kills: Kills) -> dict[str, list[str]]:
    """Scenario -> the defects that it alone notices."""
    found: dict[str, list[str]] = {}
    for title, (first, *others) in kills.items():
        if not others:
            found.setdefault(first, []).append(title)
    return found


_HEAD: Final = f"""\
# Kill matrix

A suite that passes everything is worthless, so the suite itself is tested: a reference is given one
deliberate defect (a mutant, [decision 0020](decisions/0020-mutants-live-in-tests.md)), and some
scenario must fail. {{count}} defects are noticed by {{scenarios}} scenarios.

Measured by `{COMMAND}`, which meets each mutant with every scenario
(an hour of computing); with names it meets only these. Most of those that were written from
Kubernetes' sources met at first the scenarios of their subject, and what was new, alone:
others may notice them, too. `tests/scenario/test_kill_matrix.py` meets each with those named here.
"""

_SCENARIOS: Final = """
## By scenario

Which defects a scenario alone notices: without it, they would go unseen.

| scenario | defects that it alone notices, or why there is none |
|---|---|
"""

_DEFECTS: Final = """
## By defect

| defect | what goes wrong | scenarios that notice |
|---|---|---|
"""


def page(kills: Kills, reasons: Mapping[str, str]) -> str:
    """The page kill-matrix.md."""
    names = sorted({*(name for found in kills.values() for name in found), *reasons})
    alone = own(kills)
    lines = [_HEAD.format(count=len(kills), scenarios=len(names)), _SCENARIOS]
    for name in names:
        said = ", ".join(alone.get(name, [])) or f"none: {reasons.get(name, '')}"
        lines.append(f"| {link(name)} | {said} |\n")
    lines.append(_DEFECTS)
    for title, found in kills.items():
        links = ", ".join(map(link, found))
        lines.append(f"| {title} | {wrongs()[title]} | {links} |\n")
    return "".join(lines)


def link(name: str) -> str:
    return f"[{name.rpartition('/')[2]}](../scenarios/{name}.yaml)"


def measured(fault: str, named: Set[str], known: Kills) -> list[str]:
    """The scenarios that notice a fault; with names, only what these may have changed."""
    again = [
        each
        for each in on_reference()
        if not named or fault in named or each.id in named or fault not in known
    ]
    met = {each.id for each in again}
    kept = {each.id for each in on_reference() if each.id not in met}
    kept &= {*known.get(fault, ())}
    return sorted({*kept, *(noticing(fault, again) if again else ())})


def main(named: Set[str]) -> None:
    wrong = named - {each.id for each in on_reference()} - DEFECTS.keys()
    if wrong:
        raise SystemExit(f"neither a defect nor a scenario: {', '.join(sorted(wrong))}")
    faults = sorted(DEFECTS)
    with ProcessPoolExecutor() as pool:
        found = list(pool.map(measured, faults, repeat(named), repeat(read_kills())))
    kills = {title: names for title, names in zip(faults, found, strict=True) if names}
    reasons = read_not_alone()
    write_kills(kills, reasons)
    alone = own(kills).keys()
    for name in sorted({each.id for each in on_reference()} - alone - reasons.keys()):
        print(f"{name}: no defect of its own, and no reason in {KILLS.name}")
    for name in sorted(alone & reasons.keys()):
        print(f"{name}: has a defect of its own, the reason in {KILLS.name} can go")
    if unseen := DEFECTS.keys() - kills.keys():
        raise SystemExit(f"no scenario notices: {', '.join(sorted(unseen))}")


if __name__ == "__main__":
    main(set(sys.argv[1:]))
