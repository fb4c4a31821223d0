"""Defects of what the driver publishes."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from nvml_driver.cluster.kube import KubeClient, SliceWatch
from nvml_driver.cluster.publish import Publisher
from nvml_driver.core import DriverCore
from nvml_driver.errors import DriverError, KubeError
from tests.mutants.real_driver.replacement import Json, OfTheContract, PutIn, both, instead


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
    if hasattr(publisher, "done"):
        return ""
    found = original(publisher)
    publisher.done = True  # type: ignore[attr-defined]
    return found


def _gives_up(status: int) -> PutIn:
    def synchronise(
        original: Callable[[Publisher], str | None], publisher: Publisher
    ) -> str | None:
        if hasattr(publisher, "done"):
            return ""
        try:
            return original(publisher)
        except KubeError as error:
            if error.status != status:
                raise
            publisher.done = True  # type: ignore[attr-defined]
            return ""

    return both(
        instead(Publisher._synchronise, synchronise),
        instead(Publisher._wait_for_change, _wait),
    )


def _wait(_original: Any, publisher: Publisher, *_: Any) -> None:
    publisher._stopping.wait(1.0)


once = both(
    instead(Publisher._synchronise, _only_once),
    instead(Publisher._wait_for_change, _wait),
)
twice = instead(DriverCore.resource_slices, _twice)


def _slices(change: Callable[[list[Json]], list[Json]]) -> PutIn:
    """Publish something else."""
    return instead(DriverCore.resource_slices, lambda original, *args: change(original(*args)))


def _with_spec(slices: list[Json], **changes: Any) -> list[Json]:
    return [{**one, "spec": {**one["spec"], **changes}} for one in slices]


def _for_another_node(original: Callable[..., Any], publisher: Publisher) -> Any:
    [first, *_] = _with_spec(publisher._slices(1), nodeName="a-node-of-others")
    first["spec"]["pool"] = {**first["spec"]["pool"], "name": "a-node-of-others"}
    with suppress(DriverError):  # it may be there
        publisher._api.create_slice({**first, "metadata": {"name": "for-another-node"}})
    return original(publisher)


def _same_names(slices: list[Json]) -> list[Json]:
    pool = {**slices[0]["spec"]["pool"], "resourceSliceCount": len(slices) * 2}
    first = _with_spec(slices, pool=pool)
    names = [{**one["metadata"], "name": f"more-{one['metadata']['name']}"} for one in first]
    return [*first, *({**o, "metadata": m} for o, m in zip(first, names, strict=True))]


def _with_domain(slices: list[Json]) -> list[Json]:
    for item in slices:
        for device in item["spec"].get("devices", ()):
            device["attributes"] = {
                f"{item['spec']['driver']}/{name}" if "/" not in name else name: value
                for name, value in device.get("attributes", {}).items()
            }
    return slices


def _too_few(slices: list[Json]) -> list[Json]:
    pool = slices[0]["spec"]["pool"]
    return _with_spec(slices, pool={**pool, "resourceSliceCount": len(slices) + 1})


def _invalid(slices: list[Json]) -> list[Json]:
    devices = [{**one, "name": one["name"].upper()} for one in slices[0]["spec"]["devices"]]
    return [*slices[1:], *_with_spec(slices[:1], devices=devices)]


def _clears_away(original: Callable[..., Any], publisher: Publisher) -> Any:
    if not publisher.published.is_set():
        found = publisher._api._request_json("GET", "/apis/resource.k8s.io/v1/resourceslices")
        for one in found["items"]:
            publisher._api.delete_slice(one["metadata"]["name"])
    return original(publisher)


def _withdraws(original: Callable[..., None], publisher: Publisher, *args: Any) -> None:
    original(publisher, *args)
    found, _ = publisher._api.list_slices(publisher._driver_name, publisher._node_name)
    for one in found:
        publisher._api.delete_slice(one["metadata"]["name"])


def _renames(slices: list[Json]) -> list[Json]:
    names = [
        {**one, "name": f"{one['name']}-{os.getpid()}"} for one in slices[0]["spec"]["devices"]
    ]
    return [*_with_spec(slices[:1], devices=names), *slices[1:]]


def _ends_when_expired(original: Callable[..., None], publisher: Publisher, *args: Any) -> None:
    try:
        original(publisher, *args)
    except KubeError as error:
        if error.status != 410:
            raise
        publisher._stopping.wait()


_open_watches: list[SliceWatch] = []


def _keeps_watches(original: Callable[..., SliceWatch], api: KubeClient, *args: Any) -> SliceWatch:
    _open_watches.append(original(api, *args))
    return original(api, *args)


def _names_its_start(slices: list[Json]) -> list[Json]:
    started = {"started": {"int": os.getpid()}}
    devices = [
        {**one, "attributes": {**one["attributes"], **started}}
        for one in slices[0]["spec"]["devices"]
    ]
    return [*_with_spec(slices[:1], devices=devices), *slices[1:]]


OF_THE_CONTRACT: OfTheContract = {
    "ends-at-an-expired-watch": (
        "slices are looked after until a watch is answered with 410",
        instead(Publisher._wait_for_change, _ends_when_expired),
        "slices/expired-watch-begins-again",
    ),
    "keeps-watches-open": (
        "beside each watch another one is opened and left",
        instead(KubeClient.watch_slices, _keeps_watches),
        "slices/watches-do-not-pile-up",
    ),
    "gives-up-without-rights": (
        "slices are not published after a request was forbidden",
        _gives_up(403),
        "slices/rights-may-come-later",
    ),
    "publishes-when-it-started": (
        "devices have an attribute that is another one after each start",
        _slices(_names_its_start),
        "slices/unchanged-after-restart",
    ),
    "publishes-for-another-node": (
        "a slice names another node",
        instead(Publisher._synchronise, _for_another_node),
        "slices/only-own-node",
    ),
    "publishes-names-twice": (
        "two slices of a pool have devices of the same names",
        _slices(_same_names),
        "slices/device-names-are-unique",
    ),
    "publishes-its-own-domain": (
        "attributes are named with the driver's domain",
        _slices(_with_domain),
        "slices/names-without-the-drivers-domain",
    ),
    "publishes-too-few-slices": (
        "a pool has fewer slices than they say",
        _slices(_too_few),
        "slices/published",
    ),
    "publishes-what-is-refused": (
        "the API server refuses the names of devices",
        _slices(_invalid),
        "slices/accepted",
    ),
    "gives-up-when-refused": (
        "slices that the API server refuses are not published again",
        _gives_up(422),
        "slices/refused-slices-are-not-given-up",
    ),
    "gives-up-at-a-conflict": (
        "slices are not published after a conflict",
        _gives_up(409),
        "slices/passing-errors-are-not-final",
    ),
    "polls-for-changes": (
        "slices are listed again and again, and not watched",
        instead(Publisher._wait_for_change, lambda _, self, *__: self._stopping.wait(0.3)),
        "slices/quiet-without-a-change",
    ),
    "leaves-edits": (
        "what somebody else changes in a slice stays so",
        instead(Publisher._is_stored, lambda *_: True),
        "slices/edited-slice-comes-back",
    ),
    "publishes-without-owner": (
        "slices do not go with their node",
        instead(
            Publisher._owned_slices,
            lambda _, publisher, generation, __: publisher._slices(generation),
        ),
        "slices/owned-by-the-node",
    ),
    "clears-away-slices-of-others": (
        "a driver that starts deletes the slices of other drivers and nodes",
        instead(Publisher._synchronise, _clears_away),
        "slices/leaves-others-alone",
    ),
    "withdraws-its-slices": (
        "a driver that ends deletes its slices",
        instead(Publisher.stop, _withdraws),
        "slices/stay-at-the-end",
    ),
    "renames-devices": (
        "devices have other names after a restart",
        _slices(_renames),
        "slices/same-after-restart",
    ),
}
