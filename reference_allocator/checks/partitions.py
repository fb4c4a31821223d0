"""Rules about partitions of one physical device: counters and compatibility groups."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from reference_allocator.api import DeviceId
from reference_allocator.checks.case import Case, DeviceResult, Published, View, Violation


def counters_suffice(case: Case) -> Iterator[Violation]:
    """No counter of a pool is consumed beyond its total once a counter of the pool is drawn on.

    What claims hold already counts once for each device; each device that is added counts again,
    also where admin access adds one that is held. Only a further share draws on nothing.
    """
    if not case.features.partitionable_devices:
        return
    for view, new in _pools_with_partitions(case):
        remaining = {
            (item.name, name): total.nanos
            for pool_slice in view.slices
            for item in pool_slice.shared_counters
            for name, total in item.counters.items()
        }
        held = [published for published in view.devices_of_all_nodes if published.id in case.held]
        for published in (*held, *_added_devices(case, new)):
            for consumption in published.device.consumes_counters:
                for name, amount in consumption.counters.items():
                    remaining[consumption.counter_set, name] -= amount.nanos
        for (counter_set, name), amount_left in remaining.items():
            if amount_left < 0:
                yield new[-1].make_violation(
                    "counter", f"counter {name} of {counter_set} is consumed beyond its total"
                )


def groups_are_compatible(case: Case) -> Iterator[Violation]:
    """The partitions in use on a counter set have a compatibility group in common, or none any.

    Devices of other claims may have nothing in common any more, as drivers can change devices in
    use; then only the new ones are compared.
    """
    if not case.features.compatibility_groups:
        return
    for view, new in _pools_with_partitions(case):
        members: dict[str, list[tuple[frozenset[str], DeviceResult | None]]] = {}
        new_ids = {item.result.id: item for item in new}
        for published in _devices_in_use(case, view, new):
            holder = None if published.id in case.held else new_ids.get(published.id)
            for consumption in published.device.consumes_counters:
                entry = (consumption.compatibility_groups, holder)
                members.setdefault(consumption.counter_set, []).append(entry)
        for counter_set, entries in members.items():
            added = [holder for _, holder in entries if holder is not None]
            if not added:
                continue
            groups = [item for item, _ in entries]
            held = [item for item, holder in entries if holder is None]
            if not _go_together(held):
                groups = [item for item, holder in entries if holder is not None]
            if not _go_together(groups):
                yield added[-1].make_violation(
                    "compatibility-group",
                    f"the partitions in use on {counter_set} have no group in common",
                )


def _go_together(groups: Sequence[frozenset[str]]) -> bool:
    return not any(groups) or bool(frozenset.intersection(*groups))


def _pools_with_partitions(case: Case) -> Iterator[tuple[View, list[DeviceResult]]]:
    """Yield pools of which the allocation takes devices that consume counters, with the devices.

    A further share of a device in use draws on nothing that is not drawn on already.
    """
    for view in case.views.values():
        new = [
            item
            for item in case.device_results
            if item.published is not None
            and item.published.slice.pool_id == view.id
            and item.published.device.consumes_counters
            and not _is_further_share(case, item.published)
        ]
        if new and not view.problem:
            yield view, new


def _is_further_share(case: Case, published: Published) -> bool:
    return case.may_be_shared(published) and any(
        case.is_share(result) for result in case.held.get(published.id, ())
    )


def _added_devices(case: Case, new: Sequence[DeviceResult]) -> Iterator[Published]:
    """Yield the devices that the allocation adds to its pool; of shares of one device the first."""
    shared: set[DeviceId] = set()
    for item in new:
        assert item.published is not None
        if case.may_be_shared(item.published):
            if item.published.id in shared:
                continue
            shared.add(item.published.id)
        yield item.published


def _devices_in_use(case: Case, view: View, new: list[DeviceResult]) -> Iterator[Published]:
    """Yield the devices held by other claims, and then by this allocation; each device once."""
    added: set[DeviceId] = {item.result.id for item in new}
    for published in view.devices_of_all_nodes:
        if published.id in case.held:
            yield published
    for published in view.devices_of_all_nodes:
        if published.id in added and published.id not in case.held:
            yield published
