"""Keeps the driver's slices in the API server as they should be.

A kubelet deletes all slices of its node when it starts, and a driver's some time after it lost
touch with it; people delete and edit them, too. So the publisher watches its own slices and
brings back what differs, writing only that.

A pool is taken for complete when as many slices of its newest generation are there as they say.
So a slice that is missing comes back with the generation that the others have, and any other
difference makes a new generation, whose slices are all written before obsolete ones go.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from nvml_driver.cluster.kube import Json, KubeClient, SliceWatch
from nvml_driver.errors import DriverError, KubeError
from nvml_driver.worker import Worker

_LOG = logging.getLogger(__name__)
_FIRST_DELAY, _LONGEST_DELAY = 0.2, 30.0  # seconds between attempts while the server refuses
_PASSIVE_SECONDS = 10.0  # between looks whether the instance that publishes has ended


@dataclass(frozen=True, slots=True)
class Plan:
    """The changes to make, in the order of the fields."""

    create: list[Json] = field(default_factory=list)
    replace: list[Json] = field(default_factory=list)
    delete: list[str] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.create or self.replace or self.delete)


def plan_changes(
    existing: Sequence[Mapping[str, Any]],
    desired: Callable[[int], list[Json]],
    is_same: Callable[[Mapping[str, Any], Json], bool] | None = None,
    *,
    at_least: int = 1,
) -> Plan:
    """Return the changes that make a driver's existing slices of a node the desired ones.

    ``desired`` gives the slices of a pool generation, which does not go below ``at_least``;
    ``is_same`` is whether an existing slice is a desired one, by default equal in spec and owners.
    """
    is_same = is_same or _is_same_slice
    existing_by_name = {slice_["metadata"]["name"]: slice_ for slice_ in existing}
    generation = max([at_least, *(_generation_of(slice_) for slice_ in existing)])
    desired_by_name = {slice_["metadata"]["name"]: slice_ for slice_ in desired(generation)}
    different = [
        name
        for name, slice_ in existing_by_name.items()
        if name not in desired_by_name or not is_same(slice_, desired_by_name[name])
    ]
    if different:
        # A generation keeps its contents: only a missing slice comes back without a new one.
        desired_by_name = {slice_["metadata"]["name"]: slice_ for slice_ in desired(generation + 1)}
    changes = Plan(delete=[name for name in existing_by_name if name not in desired_by_name])
    for name, slice_ in desired_by_name.items():
        if name not in existing_by_name:
            changes.create.append(slice_)
        elif different:
            version = existing_by_name[name]["metadata"].get("resourceVersion")
            metadata = {**slice_["metadata"], "resourceVersion": version}
            changes.replace.append({**slice_, "metadata": metadata})
    return changes


def _generation_of(slice_: Mapping[str, Any]) -> int:
    return int(slice_["spec"]["pool"].get("generation", 0))


def _is_same_slice(existing: Mapping[str, Any], desired: Json) -> bool:
    owners = existing["metadata"].get("ownerReferences") or []
    return bool(
        existing["spec"] == desired["spec"]
        and owners == (desired["metadata"].get("ownerReferences") or [])
    )


class Publisher(Worker):
    """A thread that publishes the slices of one driver on one node until it is stopped.

    Slices stay when it stops: the kubelet deletes them if no other instance takes over.
    """

    def __init__(
        self,
        api: KubeClient,
        slices: Callable[[int], list[Json]],
        *,
        driver_name: str,
        node_name: str,
        active: Callable[[], bool] = lambda: True,
    ) -> None:
        """Publish ``slices(generation)``, while ``active``: of two instances, one publishes."""
        super().__init__("slice-publisher")
        self._active = active
        self._refreshes = 0
        self._api = api
        self._slices = slices
        self._driver_name = driver_name
        self._node_name = node_name
        self._watch: SliceWatch | None = None
        self._stored: dict[str, tuple[Json, Any]] = {}
        self._generation = 1
        self.published = threading.Event()
        """Set once everything was published for the first time."""

    def stop(self, timeout: float = 5.0) -> None:
        """End the thread, also while it waits for a change of the slices, which stay."""
        self._stopping.set()
        self._wake()
        super().stop(timeout)

    def refresh(self) -> None:
        """Look soon whether the slices are as they should be, because the inventory changed."""
        self._refreshes += 1
        self._wake()

    def _wake(self) -> None:
        watch = self._watch
        if watch is not None:
            watch.stop()

    def _run(self) -> None:
        delay = _FIRST_DELAY
        while not self._stopping.is_set():
            try:
                if not self._active():
                    _LOG.debug("a newer instance of the driver publishes the slices")
                    self._stopping.wait(_PASSIVE_SECONDS)
                    continue
                refreshes = self._refreshes
                version = self._synchronise()
                if version is None:
                    continue  # something was written: look again until nothing differs
                if not self.published.is_set():
                    _LOG.info("slices of %s are published", self._driver_name)
                    self.published.set()
                delay = _FIRST_DELAY
                self._wait_for_change(version, refreshes)
            except DriverError as error:
                status = error.status if isinstance(error, KubeError) else 0
                if status != 410:  # the watch's version is too old, which is usual
                    _LOG.warning("slices: %s; trying again in %.1f s", error, delay)
                self._stopping.wait(delay)
                delay = min(delay * 2, _LONGEST_DELAY)

    def _synchronise(self) -> str | None:
        """Write what differs; return the list's version if nothing did, else None."""
        owner = self._api.node_reference(self._node_name)
        existing, version = self._api.list_slices(self._driver_name, self._node_name)
        changes = plan_changes(
            existing,
            lambda generation: self._owned_slices(generation, owner),
            self._is_stored,
            at_least=self._generation,
        )
        for body in changes.create:
            _LOG.info("creating slice %s", body["metadata"]["name"])
            self._remember(body, self._api.create_slice(body))
        for body in changes.replace:
            _LOG.info("replacing slice %s", body["metadata"]["name"])
            self._remember(body, self._api.replace_slice(body))
        for name in changes.delete:
            _LOG.info("deleting slice %s, which is not published any more", name)
            self._api.delete_slice(name)
        return None if changes else version

    def _owned_slices(self, generation: int, owner: Json) -> list[Json]:
        return [
            {**slice_, "metadata": {**slice_["metadata"], "ownerReferences": [owner]}}
            for slice_ in self._slices(generation)
        ]

    def _remember(self, body: Json, answer: Json) -> None:
        """Remember how the server stored a slice, for a form of its own is not a difference."""
        self._stored[body["metadata"]["name"]] = (body["spec"], answer.get("spec"))
        # Also after all slices were deleted, a generation is not used for other contents.
        self._generation = max(self._generation, _generation_of(body))

    def _is_stored(self, existing: Mapping[str, Any], desired: Json) -> bool:
        sent, stored = self._stored.get(desired["metadata"]["name"], (None, None))
        if sent == desired["spec"] and stored is not None:
            desired = {**desired, "spec": stored}
        return _is_same_slice(existing, desired)

    def _wait_for_change(self, version: str, refreshes: int) -> None:
        watch = self._api.watch_slices(self._driver_name, self._node_name, version)
        self._watch = watch
        try:
            if self._stopping.is_set() or self._refreshes != refreshes:
                return
            for event in watch:
                if event.get("type") != "BOOKMARK":
                    return
        finally:
            self._watch = None
            watch.stop()
