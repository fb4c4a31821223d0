"""Defects of what the driver publishes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nvml_driver.core import DriverCore
from tests.mutants.real_driver.putting import Json, instead


def _twice(original: Callable[..., list[Json]], *args: Any, **named: Any) -> list[Json]:
    found = original(*args, **named)
    again = []
    for one in found:
        pool = {**one["spec"]["pool"], "name": f"{one['spec']['pool']['name']}-again"}
        name = f"again-{one['metadata']['name']}"
        again.append(
            {
                **one,
                "metadata": {**one["metadata"], "name": name},
                "spec": {**one["spec"], "pool": pool},
            }
        )
    return [*again, *found]


twice = instead(DriverCore, "resource_slices", _twice)
