"""Defects of a kubelet: what it keeps over time, over its own start, and until a pod is gone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator

from kube.values import Obj
from kubesim import pods
from kubesim.nodes import podstatus
from kubesim.nodes.dra_manager import DRAManager, NotPreparedError, Prepared
from kubesim.nodes.kubelet import Kubelet
from kubesim.nodes.podstatus import PodRun
from kubesim.store import name_of, namespace_of, uid_of
from kubesim.world import World
from tests.mutants.allocation.inputs import results
from tests.mutants.replacing import Defects, Mutation, instead, replace


def when_started(change: Callable[[Kubelet], None]) -> Mutation:
    """A kubelet does something wrong when it starts."""

    @instead(Kubelet.start)
    def mutate(kubelet: Kubelet, original: Callable[[], None]) -> None:
        change(kubelet)
        original()

    return mutate


def in_kubelets(mutate: Callable[[Kubelet], None]) -> Mutation:
    """The same defect in each kubelet."""

    def mutation(world: World) -> None:
        for kubelet in world.kubelets:
            mutate(kubelet)

    return mutation


def forget_devices(kubelet: Kubelet) -> None:
    for entry in kubelet.dra_manager.prepared.values():
        entry.devices = {}


def remember_one_pod(kubelet: Kubelet) -> None:
    for entry in kubelet.dra_manager.prepared.values():
        entry.pods = set(sorted(entry.pods)[-1:])


def prepare_deleted_pods(kubelet: Kubelet) -> None:
    """Pods that were deleted before the kubelet has seen them are prepared first."""
    for pod in kubelet._store.all("Pod"):
        here = pod["spec"].get("nodeName") == kubelet.node
        if here and pods.is_deleted(pod) and uid_of(pod) not in kubelet._pods:
            try:
                kubelet.dra_manager.prepare(pod)
            except NotPreparedError:
                continue


def when_it_has_started(change: Callable[[Kubelet], None]) -> Mutation:
    """It does something wrong after its start, which counts in its metrics."""

    @instead(Kubelet.start)
    def mutate(kubelet: Kubelet, original: Callable[[], None]) -> None:
        original()
        change(kubelet)

    return mutate


@instead(DRAManager._entry_for)
def takes_namesakes(
    manager: DRAManager, original: Callable[[Obj, Obj], Prepared], claim: Obj, pod: Obj
) -> Prepared:
    """A claim counts as prepared where another of its name was."""
    key = (namespace_of(claim), name_of(claim))
    for uid, one in manager.prepared.items():
        if one.claim == key and one.devices and uid != uid_of(claim):
            one.pods.add(uid_of(pod))
            one.complete = True
            return manager.prepared.setdefault(uid_of(claim), one)
    return original(claim, pod)


@instead(DRAManager._release_claims)
def drops_extended_claims(
    manager: DRAManager, original: Callable[[str], None], pod_uid: str
) -> None:
    for entry in manager.prepared.values():
        if "-extended-resources-" in entry.claim[1]:
            entry.unprepare = ()
    original(pod_uid)


def keeps_ended_pods(kubelet: Kubelet) -> None:
    """The claims of a pod that has ended are unprepared when it is deleted."""
    kept: set[str] = set()

    def release(original: Callable[[PodRun], bool], run: PodRun) -> bool:
        pod = kubelet._store.by_uid(uid_of(run.pod))
        if pod is not None and not pods.is_deleted(pod):
            kept.add(uid_of(pod))
            run.released = True
            return True
        if uid_of(run.pod) in kept:
            kept.discard(uid_of(run.pod))
            run.released = False
        return original(run)

    replace(kubelet._release, release)


@instead(Kubelet._report)
def ends_pods_first(kubelet: Kubelet, original: Callable[[PodRun], None], run: PodRun) -> None:
    """A pod has ended when its containers have, though its claims could not be unprepared."""
    released = run.released
    run.released = released or podstatus.has_ended(run, kubelet._cluster.clock.now)
    original(run)
    run.released = released


def adds_to_former_devices(manager: DRAManager) -> None:
    """What was prepared for a claim is kept beside what is prepared for it later."""
    former: defaultdict[str, list[str]] = defaultdict(list)

    def unprepare(original: Callable[[str], None], pod_uid: str) -> None:
        before = {uid: [*manager.devices_of(uid)] for uid in manager.prepared}
        original(pod_uid)
        for uid, ids in before.items():
            if uid not in manager.prepared:
                former[uid] += ids

    def devices_of(
        original: Callable[..., Iterator[str]], claim_uid: str, request: str = ""
    ) -> Iterator[str]:
        yield from [*former[claim_uid], *original(claim_uid, request)]

    replace(manager.unprepare, unprepare)
    replace(manager.devices_of, devices_of)


def unprepare_now(kubelet: Kubelet, run: PodRun) -> None:
    try:
        kubelet.dra_manager.unprepare(uid_of(run.pod))
    except NotPreparedError:
        return


@instead(Kubelet._run_containers)
def unprepares_with_the_first_container(
    kubelet: Kubelet, original: Callable[[PodRun], None], run: PodRun
) -> None:
    original(run)
    now = kubelet._cluster.clock.now
    ended = any(one.has_ended(now) for one in run.runs.values())
    if ended and run.pod["spec"]["restartPolicy"] == "Never":
        unprepare_now(kubelet, run)


@instead(Kubelet._terminate)
def unprepares_before_the_end(
    kubelet: Kubelet, original: Callable[[PodRun], None], run: PodRun
) -> None:
    unprepare_now(kubelet, run)
    original(run)


@instead(Kubelet._report)
def ready_before_prepared(_: Kubelet, original: Callable[[PodRun], None], run: PodRun) -> None:
    prepared, run.prepared = run.prepared, True
    original(run)
    run.prepared = prepared


@instead(Kubelet.wipe_slices)
def wipes_all_drivers(_: Kubelet, original: Callable[[], None], _driver: str = "") -> None:
    """With the slices of a driver that is gone go those of all drivers of the node."""
    original()


@instead(Kubelet.wipe_slices)
def wipes_all_nodes(kubelet: Kubelet, _original: object, driver: str = "") -> None:
    for item in kubelet._store.all("ResourceSlice"):
        if item["spec"].get("nodeName") and driver in ("", item["spec"]["driver"]):
            kubelet._api.delete_stored(item)


@instead(Kubelet.wipe_slices)
def keeps_slices_at_start(_: Kubelet, original: Callable[[str], None], driver: str = "") -> None:
    if driver:
        original(driver)


def lets_go(
    change: Callable[[World, DRAManager, Callable[[str], None], str], None],
) -> Mutation:
    """The kubelet lets go of the claims of evicted pods in another way."""

    def mutate(world: World) -> None:
        for kubelet in world.kubelets:
            manager = kubelet.dra_manager

            def unprepare(
                original: Callable[[str], None], pod_uid: str, manager: DRAManager = manager
            ) -> None:
                pod = world.cluster.store.by_uid(pod_uid)
                found = ((pod or {}).get("status") or {}).get("conditions") or []
                if any(one["type"] == "DisruptionTarget" for one in found):
                    change(world, manager, original, pod_uid)
                else:
                    original(pod_uid)

            replace(manager.unprepare, unprepare)

    return mutate


def of_the_neighbours(
    _: World, manager: DRAManager, original: Callable[[str], None], uid: str
) -> None:
    original(uid)
    for claim_uid in manager.prepared:
        for driver in manager.drivers:
            driver.unprepare(claim_uid)


def of_tainted_devices(
    world: World, manager: DRAManager, original: Callable[[str], None], uid: str
) -> None:
    for claim_uid, prepared in manager.prepared.items():
        if uid in prepared.pods and not _is_tainted(world, claim_uid):
            prepared.unprepare = ()
    original(uid)


def _is_tainted(world: World, claim_uid: str) -> bool:
    claim = world.cluster.store.by_uid(claim_uid)
    if world.cluster.store.all("DeviceTaintRule"):
        return True
    tainted = {
        (item["spec"]["driver"], item["spec"]["pool"]["name"], device["name"])
        for item in world.cluster.store.all("ResourceSlice")
        for device in item["spec"].get("devices") or ()
        if device.get("taints")
    }
    allocation = claim["status"].get("allocation") if claim else None
    return any((r["driver"], r["pool"], r["device"]) in tainted for r in results(allocation or {}))


@instead(Kubelet._release)
def waits_for_sidecars(_kubelet: Kubelet, original: Callable[[PodRun], bool], run: PodRun) -> bool:
    """A pod has not ended while an init container that goes on running does."""
    init = run.pod["spec"].get("initContainers") or []
    has_sidecar = any(container.get("restartPolicy") == "Always" for container in init)
    if has_sidecar and not pods.is_deleted(run.pod):
        return False
    return original(run)


DEFECTS: Defects = {
    "kubelet-waits-for-the-end-of-sidecars": waits_for_sidecars,
    "kubelet-adds-devices-to-former-ones": in_kubelets(
        lambda kubelet: adds_to_former_devices(kubelet.dra_manager)
    ),
    "kubelet-ends-pods-before-unpreparing": ends_pods_first,
    "kubelet-forgets-devices-at-its-start": when_started(forget_devices),
    "kubelet-forgets-sharing-pods-at-its-start": when_started(remember_one_pod),
    "kubelet-keeps-claims-of-ended-pods": in_kubelets(keeps_ended_pods),
    "kubelet-keeps-slices-at-its-start": keeps_slices_at_start,
    "kubelet-loses-extended-claims": drops_extended_claims,
    "kubelet-prepares-deleted-pods": when_it_has_started(prepare_deleted_pods),
    "kubelet-says-ready-before-prepared": ready_before_prepared,
    "kubelet-takes-namesakes-for-prepared": takes_namesakes,
    "kubelet-unprepares-before-containers-end": unprepares_before_the_end,
    "kubelet-unprepares-with-the-first-container": unprepares_with_the_first_container,
    "kubelet-wipes-slices-of-all-drivers": wipes_all_drivers,
    "kubelet-wipes-slices-of-all-nodes": wipes_all_nodes,
    "kubelet-unprepares-neighbours-of-evicted-pods": lets_go(of_the_neighbours),
    "kubelet-unprepares-tainted-devices-only": lets_go(of_tainted_devices),
}
