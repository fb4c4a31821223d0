"""The header of a run."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from conformance import __version__
from conformance.digest import document_digest, set_digest
from conformance.engine.events.run import RunStarted, ShardPlan
from conformance.engine.setup import Setup, planned
from conformance.redaction import redact_json
from conformance.scenario.loader import LoadedScenario
from conformance.targets.opening.options import DEFAULT_SIMULATION, TABLE, TargetOptions


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
    place = options.cluster or options.target
    found: dict[str, Any] = {"target": options.target, "cluster": options.cluster}
    for option in TABLE:
        here = not option.given.places or place in option.given.places
        if here and option.name not in ("kubeconfig", "context", "keep"):
            found[option.name] = getattr(options, option.name)
    found["driver"] = options.profile_name
    if options.target == "reference":
        found["kubernetes_version"] = options.version
    if (scheduler := options.scheduler_profile()) is not None:
        found["scheduler"] = scheduler.name
    if options.scheduler_command:
        found["scheduler_command"] = shlex.join(options.scheduler_command)
    if options.driver_command:
        found |= {"driver_command": shlex.join(options.driver_command), "simulate": None}
    elif "simulate" in found:
        found["simulate"] = options.simulate or DEFAULT_SIMULATION
    return {_camel_case(name): value for name, value in found.items() if value}


def _camel_case(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(map(str.title, rest))
