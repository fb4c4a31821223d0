"""Defects of what the driver publishes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nvml_driver.cluster.publish import Publisher
from nvml_driver.core import DriverCore
from tests.mutants.real_driver.putting import Json, both, instead


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


def _only_once(original: Callable[[Publisher], str | None], publisher: Publisher) -> str | None:
    return "" if publisher.published.is_set() else original(publisher)


def _wait(_original: Any, publisher: Publisher, *_: Any) -> None:
    publisher._stopping.wait(1.0)


once = both(
    instead(Publisher, "_synchronise", _only_once),
    instead(Publisher, "_wait_for_change", _wait),
)
twice = instead(DriverCore, "resource_slices", _twice)
