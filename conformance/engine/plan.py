"""What a run will do: its shard of the scenarios, its header, and what it would make."""

from __future__ import annotations

import heapq
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from conformance import __version__
from conformance.digest import document_digest, set_digest
from conformance.engine.options import Shard
from conformance.engine.schedule.needs import least_seconds
from conformance.engine.setup import Setup, planned
from conformance.results.events.run import RunStarted, ShardPlan
from conformance.scenario.loader import LoadedScenario
from conformance.scenario.model import Spec
from conformance.targets.opening.options import DEFAULT_SIMULATION, TABLE, TargetOptions
from kube.base.errors import UsageError
from kube.base.redaction import redact_json
from kube.base.text import counted

EACH_SECONDS = 1.0
"""About what a scenario takes beside the known times: a namespace, its cleanup."""


def shard_of(
    scenarios: Sequence[LoadedScenario], shard: Shard | None
) -> tuple[list[LoadedScenario], ShardPlan | None]:
    """The scenarios of a shard in the order given, and the plan for the header.

    The longest come first, each to the shard with the least so far. The same scenarios give the
    same shards, whatever their order.
    Raises UsageError: there are fewer scenarios than shards.
    """
    if shard is None:
        return list(scenarios), None
    if len(scenarios) < shard.count:
        raise UsageError(
            f"--shard {shard}: {counted(len(scenarios), 'scenario')} cannot be dealt to"
            f" {shard.count} shards; ask for fewer shards or more scenarios"
        )
    seconds = {item.id: EACH_SECONDS + least_seconds(item.scenario.spec) for item in scenarios}
    loads = [(0.0, index) for index in range(1, shard.count + 1)]
    dealt: dict[str, int] = {}
    for name in sorted(seconds, key=lambda name: (-seconds[name], name)):
        load, index = loads[0]
        dealt[name] = index
        heapq.heapreplace(loads, (load + seconds[name], index))
    mine = [item for item in scenarios if dealt[item.id] == shard.index]
    planned_elsewhere = [planned(item) for item in scenarios if dealt[item.id] != shard.index]
    planned_elsewhere.sort(key=lambda item: item.id)
    return mine, ShardPlan(shard.index, shard.count, tuple(planned_elsewhere))


def header(
    scenarios: Sequence[LoadedScenario],
    setup: Setup,
    options: Mapping[str, Any],
    shard: ShardPlan | None = None,
) -> RunStarted:
    """The header.

    Args:
        options: what the user asked for beside the target.
        shard: which shard of a plan the scenarios are.
    """
    capabilities, profile = setup.opened.capabilities, setup.opened.profile
    document = redact_json(profile.model_dump(mode="json", by_alias=True)) if profile else None
    return RunStarted(
        run=setup.run,
        target=setup.opened.target.name,
        planned=tuple(planned(loaded) for loaded in scenarios),
        kubernetes_version=capabilities.kubernetes_version,
        driver=capabilities.driver,
        simulated=capabilities.simulated,
        versions=dict(sorted(capabilities.versions.items())),
        suite_version=__version__,
        scenario_set_digest=set_digest(scenarios),
        started_at=now(),
        feature_gates=dict(sorted(capabilities.feature_gates.items())),
        driver_profile=document,
        driver_profile_digest=None if document is None else document_digest(document),
        image=setup.opened.image,
        compared=setup.opened.options.record,
        options={**recorded_options(setup.opened.options), **options},
        time_factor=setup.time_factor,
        shard=shard,
    )


def now() -> str:
    """The time as in header and footer: RFC 3339 in UTC, in seconds."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def recorded_options(options: TargetOptions) -> dict[str, Any]:
    """Target options as the result file keeps them: name in camelCase -> value.

    Without those that had no effect or identify the cluster.
    """
    target = options.cluster or options.target
    recorded: dict[str, Any] = {"target": options.target, "cluster": options.cluster}
    for option in TABLE:
        here = not option.spec.places or target in option.spec.places
        if here and option.name not in ("kubeconfig", "context", "keep"):
            recorded[option.name] = getattr(options, option.name)
    recorded["driver"] = options.profile_name
    if "nodes" in recorded:
        recorded["nodes"] = options.node_count
    if options.target == "reference":
        recorded["kubernetes_version"] = options.version
    if (scheduler := options.scheduler_profile()) is not None:
        recorded["scheduler"] = scheduler.name
    if options.scheduler_command:
        recorded["scheduler_command"] = shlex.join(options.scheduler_command)
    if options.driver_command:
        recorded |= {"driver_command": shlex.join(options.driver_command), "simulate": None}
    elif "simulate" in recorded:
        recorded["simulate"] = options.simulate or DEFAULT_SIMULATION
    return {_camel_case(name): value for name, value in recorded.items() if value}


def _camel_case(name: str) -> str:
    first, *words = name.split("_")
    return first + "".join(map(str.title, words))


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run would do with one scenario.

    Attributes:
        skipped: why it would be skipped, "" if it would run.
        objects: kind -> number; controllers may add pods and claims.
        disturbed: what it does to components and devices, in words.
    """

    id: str
    skipped: str
    objects: Counter[str]
    disturbed: tuple[str, ...]


def plan(scenarios: Sequence[LoadedScenario], setup: Setup) -> tuple[Plan, ...]:
    """What a run would do with each scenario; raises UsageError as a run does."""
    setup.check_bindings(scenarios)
    plans = []
    for loaded in scenarios:
        spec = loaded.scenario.spec
        skipped = setup.explain_skip(loaded) or ""
        disturbances = (step.fault or step.stimulate for step in spec.steps)
        faults = (item.describe() for item in disturbances if item is not None)
        object_counts = Counter[str]() if skipped else _made(spec)
        plans.append(Plan(loaded.id, skipped, object_counts, () if skipped else tuple(faults)))
    return tuple(plans)


def _made(spec: Spec) -> Counter[str]:
    kinds = Counter(["Namespace"] + ["Node"] * len(spec.nodes))
    for step in spec.steps:
        kinds.update(str(manifest.get("kind")) for manifest in step.apply or ())
        if step.churn is not None:  # at once at most, in each of its namespaces
            places = max(1, len(step.churn.namespaces))
            for kind in (str(manifest.get("kind")) for manifest in step.churn.objects):
                copies = step.churn.copies if kind in {"Pod", "ResourceClaim"} else 1
                kinds[kind] += copies * (1 if kind == "ResourceSlice" else places)
    return kinds
