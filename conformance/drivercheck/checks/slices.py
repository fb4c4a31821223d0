"""What a driver publishes, as the API server and a scheduler see it."""

from __future__ import annotations

import time
from collections import Counter
from contextlib import suppress

from conformance.drivercheck import driver as under_check
from conformance.drivercheck.bench import Bench
from conformance.drivercheck.check import Section
from conformance.drivercheck.objects import NODE, OTHER_DRIVER, OTHER_NODE
from conformance.drivercheck.violations import UnanswerableError, ViolationError
from kube.base.text import one_line
from kube.values import Obj

section = Section("slices")

_TYPES = "k8s.io/api/resource/v1/types.go"
_CONTROLLER = "k8s.io/dynamic-resource-allocation/resourceslice/resourceslicecontroller.go"
_SETTLE_SECONDS = 0.5
_REFUSING_SECONDS = 1.0
_QUIET_SECONDS = 4.0
_TOUCHES = 16
# The helper looks 30 s after a deletion (resourceslice, DefaultSyncDelay), and takes a slice that
# it has just made for still there until a minute later (DefaultMutationCacheTTL).
_BACK_SECONDS = 75.0


@section.required("kubernetes/test/e2e/dra/dra.go: one pool per node, complete")
def published(bench: Bench) -> None:
    """Complete pools of the driver's devices are published for the node."""
    bench.driver.await_slices()


@section.required(f"{_TYPES}, ResourceSlice: limits, formats and unions; validation.go")
def accepted(bench: Bench) -> None:
    """The API server refuses no ResourceSlice that the driver writes."""
    with suppress(ViolationError):  # has a check of its own
        bench.driver.await_slices()
    if bench.api.refusals:
        raise ViolationError(f"expected none; found {one_line(bench.api.refusals[0], 400)}")


@section.required(f"{_TYPES}, ResourceSliceSpec.NodeName")
def only_own_node(bench: Bench) -> None:
    """No slice of the driver is for another node."""
    bench.driver.await_slices()
    all_slices = bench.api.objects.list_slices(bench.driver.name)
    other_nodes = {resource_slice["spec"].get("nodeName") for resource_slice in all_slices} - {
        None,
        NODE,
    }
    if other_nodes:
        raise ViolationError(
            f"expected slices for {NODE} only; found some for {sorted(other_nodes)}"
        )


@section.required(f"{_TYPES}, ResourceSlice: a name identifies a device in its pool")
def device_names_are_unique(bench: Bench) -> None:
    """No two devices of a pool have the same name."""
    names = Counter(bench.driver.list_published_devices())
    twice = sorted(f"{pool}/{name}" for (pool, name), count in names.items() if count > 1)
    if twice:
        raise ViolationError(f"expected unique names; found twice: {', '.join(twice[:5])}")


@section.recommended(f"{_CONTROLLER}, ValidateQualifiedNames; since Kubernetes 1.38")
def names_without_the_drivers_domain(bench: Bench) -> None:
    """Attributes and capacities are named without the driver's own domain, which they have anyway.

    Who finds both spellings of a name takes one of them, and not everybody the same.
    """
    own = f"{bench.driver.name}/"
    names = {
        name
        for resource_slice in bench.driver.await_slices()
        for device in resource_slice["spec"].get("devices") or ()
        for field in ("attributes", "capacity")
        for name in device.get(field) or ()
        if name.startswith(own)
    }
    if names:
        listed = ", ".join(sorted(names)[:5])
        raise ViolationError(f"expected names without {own}; found {listed}")


@section.required(f"{_TYPES}, ResourcePool.Generation")
def one_generation(bench: Bench) -> None:
    """All slices of a pool are of its newest generation."""
    pools: dict[str, set[int]] = {}

    def settled() -> bool:
        pools.clear()
        for resource_slice in bench.driver.list_slices():
            pool = resource_slice["spec"]["pool"]
            pools.setdefault(pool["name"], set()).add(pool["generation"])
        return all(len(generations) == 1 for generations in pools.values())

    bench.driver.await_slices()
    if not bench.driver.wait(settled, under_check.START_SECONDS):
        raise ViolationError(f"expected one generation of each pool; found {pools}")


@section.recommended("k8s.io/dynamic-resource-allocation/resourceslice, Owner; e2e/dra/dra.go")
def owned_by_the_node(bench: Bench) -> None:
    """A slice with a nodeName has the Node as owner, so that it goes with the node."""
    uid = bench.api.objects.get_node()["metadata"]["uid"]
    for resource_slice in bench.driver.await_slices():
        owners = resource_slice["metadata"].get("ownerReferences") or ()
        if resource_slice["spec"].get("nodeName") and uid not in {owner["uid"] for owner in owners}:
            raise ViolationError(
                f"expected the Node {NODE} as owner of {resource_slice['metadata']['name']}; found "
                f"{one_line(owners) if owners else 'no owner'}"
            )


@section.required(f"{_TYPES}, ResourceSlice: drivers write slices of their own node only")
def leaves_others_alone(bench: Bench) -> None:
    """Slices of other drivers, and of the same driver on other nodes, stay as they are."""
    bench.driver.await_slices()
    objects = bench.api.objects
    foreign_slices = [
        objects.put_slice(OTHER_DRIVER, NODE, "others"),
        objects.put_slice(bench.driver.name, OTHER_NODE, OTHER_NODE),
    ]
    try:
        if bench.driver.starter is not None:  # what a driver clears away, it clears at its start
            bench.driver.restart()
        touched = bench.driver.wait(
            lambda: any(_changed(bench, resource_slice) for resource_slice in foreign_slices), 0.3
        )
        if touched:
            [name, *_] = [
                _describe_slice(resource_slice)
                for resource_slice in foreign_slices
                if _changed(bench, resource_slice)
            ]
            raise ViolationError(f"expected {name} untouched; found it changed or deleted")
    finally:
        for resource_slice in foreign_slices:
            objects.delete(resource_slice)


def _changed(bench: Bench, foreign_slice: Obj) -> bool:
    uid, version = (foreign_slice["metadata"][key] for key in ("uid", "resourceVersion"))
    now = bench.api.objects.store.by_uid(uid)
    return now is None or now["metadata"]["resourceVersion"] != version


def _describe_slice(foreign_slice: Obj) -> str:
    spec = foreign_slice["spec"]
    return f"the slice of {spec['driver']} for {spec['nodeName']}"


@section.recommended(f"{_CONTROLLER}: an informer, and what is the same is not written", waits=True)
def quiet_without_a_change(bench: Bench) -> None:
    """While nothing changes, slices are not written, and they are watched, not polled."""
    bench.driver.await_slices()
    time.sleep(_SETTLE_SECONDS)
    versions, lists = _resource_versions(bench), bench.api.lists
    time.sleep(_QUIET_SECONDS)
    list_requests = bench.api.lists - lists
    if _resource_versions(bench) != versions:
        raise ViolationError(f"expected no writes for {_QUIET_SECONDS:.0f} s; found some")
    if list_requests > _QUIET_SECONDS:
        raise ViolationError(
            f"expected a watch; found {list_requests} requests in {_QUIET_SECONDS:.0f} s"
        )


def _resource_versions(bench: Bench) -> set[str]:
    return {
        resource_slice["metadata"]["resourceVersion"]
        for resource_slice in bench.driver.list_slices()
    }


@section.required("kubernetes/test/integration/dra/core.go: recreated after delete", waits=True)
def deleted_slice_comes_back(bench: Bench) -> None:
    """A slice that is deleted, as a kubelet does when it starts, is published again."""
    bench.driver.begin_check(_BACK_SECONDS)
    slices_before = bench.driver.await_slices()
    for resource_slice in slices_before:
        bench.api.objects.delete(resource_slice)
    bench.driver.await_slices(_BACK_SECONDS)
    _expect_same_devices("after a deletion", slices_before, bench.driver.list_slices())


@section.required(
    "client-go, tools/cache/reflector.go: a watch that is expired begins with a list", waits=True
)
def expired_watch_begins_again(bench: Bench) -> None:
    """A slice that is deleted is published again, also after a watch ended with 410 Expired."""
    bench.driver.begin_check(2 * _BACK_SECONDS)
    slices_before = bench.driver.await_slices()
    _expire_watches(bench)
    for resource_slice in slices_before:
        bench.api.objects.delete(resource_slice)
    bench.driver.await_slices(_BACK_SECONDS)
    _expect_same_devices("after a deletion", slices_before, bench.driver.list_slices())


def _expire_watches(bench: Bench) -> None:
    """End the driver's watches, and give it time to be told that the next one is expired."""
    bench.api.expire_watches()
    deadline = time.monotonic() + under_check.START_SECONDS
    while bench.api.faults.expired_watches and time.monotonic() < deadline:
        time.sleep(0.01)  # who polls never asks for one


@section.recommended(
    "client-go, tools/cache/reflector.go: a watch is stopped before the next one", waits=True
)
def watches_do_not_pile_up(bench: Bench) -> None:
    """However often its slices change or a watch ends, a driver has few connections open."""
    slices = bench.driver.await_slices()
    time.sleep(_SETTLE_SECONDS)
    connections_before = len(bench.api.connections)
    for number in range(_TOUCHES):
        annotations = {"dra-conformance.dev/touched": str(number)}
        bench.api.objects.change(slices[0], metadata={"annotations": annotations})
        time.sleep(0.05)
        if number % 4 == 0:
            _expire_watches(bench)
    time.sleep(_SETTLE_SECONDS)
    more = len(bench.api.connections) - connections_before
    if more >= _TOUCHES // 2:
        raise ViolationError(
            f"expected as many connections as before {_TOUCHES} changes; found {more} more"
        )


@section.recommended(f"{_CONTROLLER}: a slice that differs is updated", waits=True)
def edited_slice_comes_back(bench: Bench) -> None:
    """A device that somebody else's edit takes out of a slice is published again."""
    bench.driver.begin_check(_BACK_SECONDS)
    slices_before = bench.driver.await_slices()
    edited = next((edited for edited in slices_before if edited["spec"].get("devices")), None)
    if edited is None:
        raise UnanswerableError("the driver has published no devices")
    bench.api.objects.change(
        edited, spec={**edited["spec"], "devices": edited["spec"]["devices"][:-1]}
    )
    bench.driver.wait(
        lambda: _device_names(slices_before) == _device_names(bench.driver.list_slices()),
        _BACK_SECONDS,
    )
    _expect_same_devices("after an edit", slices_before, bench.driver.await_slices(_BACK_SECONDS))


@section.required("kubernetes/community api-conventions.md: 409, 503", starts_driver=True)
def passing_errors_are_not_final(bench: Bench) -> None:
    """Slices whose first writes are answered with 409 and 503 are published all the same."""
    _stop_without_slices(bench)
    bench.api.faults.passing[:] = [409, 503]
    bench.driver.start()
    deadline = time.monotonic() + under_check.START_SECONDS
    while bench.api.faults.passing and time.monotonic() < deadline:
        _start_again(bench)
        time.sleep(0.05)
    time.sleep(_SETTLE_SECONDS)
    bench.api.release()
    _start_again(bench)
    bench.driver.await_registration()
    bench.driver.await_slices(_BACK_SECONDS)


@section.recommended(
    "k8s.io/kubernetes docs, rbac: a binding may be made after a workload", starts_driver=True
)
def rights_may_come_later(bench: Bench) -> None:
    """Slices whose first writes are answered with 403 are published once the right is there."""
    _stop_without_slices(bench)
    bench.api.faults.passing[:] = [403, 403]
    bench.driver.start()
    bench.driver.wait(lambda: not bench.api.faults.passing, under_check.START_SECONDS)
    bench.api.release()
    _start_again(bench)
    bench.driver.await_registration()
    bench.driver.await_slices(_BACK_SECONDS)


def _stop_without_slices(bench: Bench) -> None:
    bench.driver.begin_check(_BACK_SECONDS)
    bench.driver.stop()
    for resource_slice in bench.driver.list_slices():
        bench.api.objects.delete(resource_slice)


def _start_again(bench: Bench) -> None:
    """Start the driver if it has ended, as a kubelet does."""
    if not _is_running(bench):
        bench.driver.start()


@section.required("ROCm/gpu-operator#609: ready for days, without slices", starts_driver=True)
def refused_slices_are_not_given_up(bench: Bench) -> None:
    """A driver whose slices are refused does not serve on without any: it publishes, or ends."""
    _stop_without_slices(bench)
    refused_before = bench.api.turned_away
    bench.api.faults.refuse_slices = True
    bench.driver.start()
    deadline = time.monotonic() + under_check.START_SECONDS
    while (
        time.monotonic() < deadline
        and _is_running(bench)
        and bench.api.turned_away == refused_before
    ):
        time.sleep(0.05)
    deadline = time.monotonic() + _REFUSING_SECONDS
    while time.monotonic() < deadline and _is_running(bench):
        time.sleep(0.05)
    bench.api.release()
    _start_again(bench)
    bench.driver.await_registration()
    try:
        bench.driver.await_slices(_BACK_SECONDS)
    except ViolationError as error:
        tries = bench.api.turned_away - refused_before
        raise ViolationError(
            f"expected slices, or the end, after the API server refused {tries} as invalid for "
            f"{_REFUSING_SECONDS:.0f} s; found the driver registered; {error}"
        ) from None


def _restart_until_it_lists(bench: Bench) -> None:
    """Restart the driver, and wait until it has looked: what is there until then is from before."""
    bench.driver.stop()
    lists = bench.api.lists
    bench.driver.start()
    bench.driver.await_registration()
    deadline = time.monotonic() + under_check.START_SECONDS
    while bench.api.lists == lists and time.monotonic() < deadline:
        time.sleep(0.05)


def _is_running(bench: Bench) -> bool:
    return bench.driver.process is not None and bench.driver.process.is_alive()


@section.required("kubernetes/test/e2e_node/dra_test.go: kept on quick restart", starts_driver=True)
def same_after_restart(bench: Bench) -> None:
    """After a restart the same devices are published, in no older generation."""
    slices_before = bench.driver.await_slices()
    _restart_until_it_lists(bench)
    bench.driver.wait(
        lambda: _device_names(slices_before) != _device_names(bench.driver.list_slices()),
        _SETTLE_SECONDS,
    )
    slices_after = bench.driver.await_slices()
    _expect_same_devices("after a restart", slices_before, slices_after)
    older, newer = (
        max(resource_slice["spec"]["pool"]["generation"] for resource_slice in s)
        for s in (slices_before, slices_after)
    )
    if newer < older:
        raise ViolationError(f"expected generation {older} or newer; found {newer}")


@section.recommended(f"{_CONTROLLER}: what is the same is not written", starts_driver=True)
def unchanged_after_restart(bench: Bench) -> None:
    """After a restart slices whose devices are the same are what they were: nothing is written."""
    versions_before = _resource_versions(bench) if bench.driver.await_slices() else set()
    _restart_until_it_lists(bench)
    time.sleep(_SETTLE_SECONDS)
    bench.driver.await_slices()
    written = len(_resource_versions(bench) - versions_before)
    if written:
        raise ViolationError(f"expected the slices as they were; found {written} written again")


@section.recommended(
    "kubernetes/pkg/kubelet/cm/dra/manager.go: the kubelet removes them", starts_driver=True
)
def stay_at_the_end(bench: Bench) -> None:
    """A driver that ends leaves its slices: it may be back before the kubelet removes them."""
    slices_before = bench.driver.await_slices()
    bench.driver.stop()
    slices_after = bench.driver.list_slices()
    bench.driver.start()
    bench.driver.await_registration()
    bench.driver.await_slices()
    if len(slices_after) < len(slices_before):
        raise ViolationError(f"expected {len(slices_before)} slices; found {len(slices_after)}")


def _expect_same_devices(when: str, slices_before: list[Obj], slices_after: list[Obj]) -> None:
    devices_before, devices_after = _device_names(slices_before), _device_names(slices_after)
    if devices_before != devices_after:
        lost = ", ".join(sorted(devices_before - devices_after)[:5]) or "none"
        new = ", ".join(sorted(devices_after - devices_before)[:5]) or "none"
        raise ViolationError(f"expected the same devices {when}; lost: {lost}; new: {new}")


def _device_names(slices: list[Obj]) -> set[str]:
    return {
        f"{resource_slice['spec']['pool']['name']}/{device['name']}"
        for resource_slice in slices
        for device in resource_slice["spec"].get("devices") or ()
    }
