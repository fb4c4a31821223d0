"""What the result file keeps of what a user asked for."""

from __future__ import annotations

import shlex
from typing import Any

from conformance.targets.options import DEFAULT_SIMULATION, TABLE, TargetOptions


def recorded_options(options: TargetOptions) -> dict[str, Any]:
    """What was asked for, as the result file keeps it: name in camelCase -> value.

    Options that had no effect are left out, and whatever says whose cluster it was.
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
    if options.driver_command:
        found |= {"driver_command": shlex.join(options.driver_command), "simulate": None}
    elif "simulate" in found:
        found["simulate"] = options.simulate or DEFAULT_SIMULATION
    return {_camel_case(name): value for name, value in found.items() if value}


def _camel_case(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(map(str.title, rest))
