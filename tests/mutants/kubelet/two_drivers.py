"""Defects of a kubelet whose node has two drivers."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kube.values import Obj
from kubesim.nodes.dra_manager import DRAManager, NotPreparedError
from kubesim.nodes.kubelet import Kubelet
from kubesim.world import World
from tests.mutants.replacing import Defects, Mutation, instead


def of_each(mutate: Callable[[DRAManager], None]) -> Mutation:
    """The same defect in each kubelet's DRA manager."""

    def mutation(world: World) -> None:
        for kubelet in world.kubelets:
            mutate(kubelet.dra_manager)

    return mutation


@instead(DRAManager.unprepare)
def unprepares_first(manager: DRAManager, original: Callable[[str], None], pod_uid: str) -> None:
    """Of a pod's claims only those of the drivers of the first are unprepared; the pod goes."""
    own = {uid: one for uid, one in manager.prepared.items() if pod_uid in one.pods}
    first = {driver for one in list(own.values())[:1] for driver in one.devices}
    left = {uid: one for uid, one in own.items() if first and not first & {*one.devices}}
    for uid in left:
        del manager.prepared[uid]
    original(pod_uid)
    manager.prepared.update(left)


@instead(DRAManager.devices_of)
def gives_first(
    manager: DRAManager, original: Callable[..., Iterator[str]], claim_uid: str, request: str = ""
) -> Iterator[str]:
    """Who uses a whole claim gets the devices of one driver."""
    devices = manager.prepared[claim_uid].devices
    if request or len(devices) < 2:
        yield from original(claim_uid, request)
        return
    for device in next(iter(devices.values())):
        yield from device.cdi_device_ids


@instead(DRAManager.prepare)
def waits_for_all(manager: DRAManager, original: Callable[[Obj], None], pod: Obj) -> None:
    """While a driver of the node does not run no pod of the node starts."""
    for driver in manager.drivers[1:]:
        if driver.stopped_at is not None:
            raise NotPreparedError(f"DRA driver {driver.name} is not registered")
    original(pod)


@instead(DRAManager.unprepare)
def forgets_refused(manager: DRAManager, original: Callable[[str], None], pod_uid: str) -> None:
    """What a driver has prepared stays where another one has refused the claim."""
    for uid, one in list(manager.prepared.items()):
        if one.pods == {pod_uid} and {*one.devices} != {*one.unprepare}:
            del manager.prepared[uid]
    original(pod_uid)


@instead(Kubelet.start)
def knows_who_runs(kubelet: Kubelet, original: Callable[[], None]) -> None:
    """A kubelet that starts forgets of its claims the drivers that do not run."""
    original()
    manager = kubelet.dra_manager
    run = [one.name for one in manager.drivers if one.stopped_at is None]
    for one in manager.prepared.values():
        one.unprepare = [name for name in one.unprepare if name in run]


DEFECTS: Defects = {
    "kubelet-forgets-drivers-that-are-down": knows_who_runs,
    "kubelet-forgets-refused-claims": forgets_refused,
    "kubelet-gives-devices-of-one-driver": gives_first,
    "kubelet-unprepares-with-one-driver": unprepares_first,
    "kubelet-waits-for-all-drivers": waits_for_all,
}
