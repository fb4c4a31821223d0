"""Evaluate expectations on what containers see: devices, a driver's configuration, CDI specs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from conformance.engine.context import Context, Seen
from conformance.scenario.expectations import (
    AllocatedTo,
    CdiExpectation,
    Devices,
    DevicesExpectation,
    EnvironmentExpectation,
)
from conformance.targets.base import ContainerView, Obj

Views = dict[str, frozenset[str]]
"""``pod/container`` -> names of the devices that it sees."""


def check_devices(expectation: DevicesExpectation, context: Context) -> Seen:
    """The containers see devices as described."""
    wanted = expectation.devices
    if wanted.pods is not None:
        names = [pod["metadata"]["name"] for pod in context.pods(wanted.pods)]
        if not names:
            return Seen(False, "no such pods", {"devices": []})
        groups = [[f"{name}/{container}" for container in wanted.containers] for name in names]
    else:
        groups = [list(wanted.seen_by)]
    wrong: list[str] = []
    patterns = []
    for group in groups:
        views = _views(group, context)
        if isinstance(views, str):
            return Seen(False, views, {"devices": []})
        wrong += _wrong(wanted, views, context)
        patterns.append(_pattern(views, anonymous=wanted.pods is not None))
    observed = {"devices": sorted(patterns, key=str)}
    return Seen(not wrong, "; ".join(wrong) or "as described", observed)


def check_environment(expectation: EnvironmentExpectation, context: Context) -> Seen:
    """The driver's configuration shows in each container's environment."""
    wanted = expectation.environment
    variables = (
        context.profile.spec.probe.config_env.get(wanted.config) if context.profile else None
    )
    if variables is None:
        found = f"the driver profile has no probe.configEnv.{wanted.config}"
        return Seen(False, found, {"environment": wanted.config})
    wrong = []
    for entry in wanted.seen_by:
        view = _view(entry, context)
        if view is None:
            return Seen(False, f"{entry} has shown nothing yet", {"environment": wanted.config})
        for pattern, value in variables.items():
            values = {
                name: found
                for name, found in view.environment.items()
                if re.fullmatch(pattern.removeprefix("^").removesuffix("$"), name)
            }
            if not values or any(found != value for found in values.values()):
                wrong.append(
                    f"{entry} has {values or 'nothing'} for {pattern} (expected {value!r})"
                )
    observed = {"environment": wanted.config, "fits": not wrong}
    return Seen(not wrong, "; ".join(wrong) or "as described", observed)


def check_cdi(expectation: CdiExpectation, context: Context) -> Seen:
    """The claim's CDI spec is there, or is gone."""
    wanted = expectation.cdi
    observed: dict[str, Any] = {"cdi": f"{wanted.pod}/{wanted.claim}"}
    context.claim_of(wanted.pod, wanted.claim)
    uid = context.claim_uids.get((wanted.pod, wanted.claim))
    if uid is None:
        return Seen(False, f"claim {wanted.claim} of pod {wanted.pod} was never seen", observed)
    files = list(context.scope.cdi_claims().get(uid, ()))
    observed["present"] = bool(files)
    found = f"CDI specs for it: {', '.join(files) or 'none'}"
    return Seen(bool(files) == wanted.present, found, observed)


def describe_devices(wanted: Devices) -> str:
    """The expectation in a line."""
    if wanted.pods is not None:
        who = f"containers {', '.join(wanted.containers)} of each pod"
    else:
        who = ", ".join(wanted.seen_by)
    parts = []
    if wanted.count is not None:
        parts.append(f"{wanted.count} device{'' if wanted.count == 1 else 's'} each")
    if wanted.relation == "same":
        parts.append("the same devices")
    if wanted.relation == "different":
        parts.append("no device in common")
    if wanted.allocated_to is not None:
        target = wanted.allocated_to
        request = f" request {target.request}" if target.request else ""
        parts.append(f"the devices allocated to {target.claim or target.pod_claim}{request}")
    return f"{who} see {' and '.join(parts)}"


def _views(entries: Sequence[str], context: Context) -> Views | str:
    views: Views = {}
    for entry in entries:
        view = _view(entry, context)
        if view is None:
            return f"{entry} has shown nothing yet{_why(entry, context)}"
        assert context.profile is not None, "scenarios with devices run with a driver profile"
        views[entry] = context.profile.spec.probe.devices(dict(view.environment), view.device_nodes)
    return views


def _view(entry: str, context: Context) -> ContainerView | None:
    pod, _, container = entry.partition("/")
    return context.scope.observe(pod, container)


def _why(entry: str, context: Context) -> str:
    pod = context.get("Pod", entry.partition("/")[0])
    return f" (pod phase {pod.get('status', {}).get('phase')})" if pod else " (no such pod)"


def _wrong(wanted: Devices, views: Views, context: Context) -> list[str]:
    wrong = []
    total = sum(len(seen) for seen in views.values())
    distinct = len(frozenset[str]().union(*views.values()))
    as_described = (
        (wanted.count is None or all(len(seen) == wanted.count for seen in views.values()))
        and (wanted.relation != "same" or len(set(views.values())) == 1)
        and (wanted.relation != "different" or distinct == total)
    )
    if not as_described:
        seen_by = (f"{entry} sees {_names(devices)}" for entry, devices in views.items())
        wrong.append(", ".join(seen_by))
    if wanted.allocated_to is not None:
        for entry, seen in views.items():
            allocated = _allocated(entry.partition("/")[0], wanted.allocated_to, context)
            if seen != allocated:
                names = "no claim" if allocated is None else _names(allocated)
                wrong.append(f"{entry} sees {_names(seen)}, allocated is {names}")
    return wrong


def _allocated(pod: str, target: AllocatedTo, context: Context) -> frozenset[str] | None:
    claim: Obj | None
    if target.claim is not None:
        claim = context.get("ResourceClaim", target.claim)
    else:
        claim = context.claim_of(pod, str(target.pod_claim))
    if claim is None:
        return None
    results = claim.get("status", {}).get("allocation", {}).get("devices", {}).get("results", ())
    return frozenset(
        result["device"]
        for result in results
        if target.request is None or result["request"].partition("/")[0] == target.request
    )


def _names(devices: frozenset[str]) -> str:
    return ", ".join(sorted(devices)) or "none"


def _pattern(views: Views, *, anonymous: bool) -> list[list[Any]]:
    """How many devices are seen by exactly which containers: the same for any choice of devices."""
    viewers: dict[str, list[str]] = {}
    for entry, devices in sorted(views.items()):
        for device in devices:
            viewers.setdefault(device, []).append(entry.partition("/")[2] if anonymous else entry)
    groups: dict[tuple[str, ...], int] = {}
    for names in viewers.values():
        groups[tuple(names)] = groups.get(tuple(names), 0) + 1
    return [[list(names), number] for names, number in sorted(groups.items())]
