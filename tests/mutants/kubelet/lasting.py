"""Defects of a kubelet: what it keeps over time, over its own start, and until a pod is gone."""

from __future__ import annotations

from collections.abc import Callable

from conformance.targets.reference import pods
from conformance.targets.reference.nodes import podstatus
from conformance.targets.reference.nodes.dra_manager import DRAManager, NotPreparedError, Prepared
from conformance.targets.reference.nodes.kubelet import Kubelet
from conformance.targets.reference.nodes.podstatus import PodRun
from conformance.targets.reference.store import name_of, namespace_of, uid_of
from conformance.targets.reference.world import World
from conformance.targets.seam.values import Obj
from tests.mutants.disrupting import when_started
from tests.mutants.replacing import Defects, Mutation, replace
from tests.mutants.several import of_each


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

    def mutate(kubelet: Kubelet) -> None:
        def start(original: Callable[[], None]) -> None:
            original()
            change(kubelet)

        replace(kubelet, "start", start)

    return in_kubelets(mutate)


def takes_namesakes(manager: DRAManager) -> None:
    """A claim counts as prepared where one of its name was, whatever its uid."""

    def entry_for(_original: object, claim: Obj, pod: Obj) -> Prepared:
        key = (namespace_of(claim), name_of(claim))
        same = (one for one in manager.prepared.values() if one.claim == key)
        entry = next(same, Prepared(claim=key))
        entry.pods.add(uid_of(pod))
        entry.complete = bool(entry.devices)
        return manager.prepared.setdefault(uid_of(claim), entry)

    replace(manager, "_entry_for", entry_for)


def drops_extended_claims(manager: DRAManager) -> None:
    def let_go(original: Callable[[str], None], pod_uid: str) -> None:
        for entry in manager.prepared.values():
            if "-extended-resources-" in entry.claim[1]:
                entry.unprepare = ()
        original(pod_uid)

    replace(manager, "_let_go", let_go)


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

    replace(kubelet, "_release", release)


def ends_pods_first(kubelet: Kubelet) -> None:
    """A pod has ended when its containers have, though its claims could not be unprepared."""

    def report(original: Callable[[PodRun], None], run: PodRun) -> None:
        released = run.released
        run.released = released or podstatus.has_ended(run, kubelet._cluster.clock.now)
        original(run)
        run.released = released

    replace(kubelet, "_report", report)


def unprepare_now(kubelet: Kubelet, run: PodRun) -> None:
    try:
        kubelet.dra_manager.unprepare(uid_of(run.pod))
    except NotPreparedError:
        return


def unprepares_with_the_first_container(kubelet: Kubelet) -> None:
    def run_containers(original: Callable[[PodRun], None], run: PodRun) -> None:
        original(run)
        now = kubelet._cluster.clock.now
        ended = any(one.has_ended(now) for one in run.runs.values())
        if ended and run.pod["spec"]["restartPolicy"] == "Never":
            unprepare_now(kubelet, run)

    replace(kubelet, "_run_containers", run_containers)


def unprepares_before_the_end(kubelet: Kubelet) -> None:
    def terminate(original: Callable[[PodRun], None], run: PodRun) -> None:
        unprepare_now(kubelet, run)
        original(run)

    replace(kubelet, "_terminate", terminate)


def ready_before_prepared(kubelet: Kubelet) -> None:
    def report(original: Callable[[PodRun], None], run: PodRun) -> None:
        prepared, run.prepared = run.prepared, True
        original(run)
        run.prepared = prepared

    replace(kubelet, "_report", report)


def wipes_all_drivers(kubelet: Kubelet) -> None:
    """With the slices of a driver that is gone go those of all drivers of the node."""
    replace(kubelet, "wipe_slices", lambda original, _driver="": original())


def wipes_all_nodes(kubelet: Kubelet) -> None:
    def wipe(_original: object, driver: str = "") -> None:
        for item in kubelet._store.all("ResourceSlice"):
            if item["spec"].get("nodeName") and driver in ("", item["spec"]["driver"]):
                kubelet._api.delete_stored(item)

    replace(kubelet, "wipe_slices", wipe)


def keeps_slices_at_start(kubelet: Kubelet) -> None:
    def wipe(original: Callable[[str], None], driver: str = "") -> None:
        if driver:
            original(driver)

    replace(kubelet, "wipe_slices", wipe)


def wipes_what_came_back(kubelet: Kubelet) -> None:
    """The slices of a driver go half a minute after it has ended, though it runs again."""
    due: dict[str, float] = {}

    def stop_driver(original: Callable[[str], None], role: str = "driver") -> None:
        original(role)
        due[kubelet._driver(role).name] = kubelet._cluster.clock.now + 30

    def sync(original: Callable[[], None]) -> None:
        original()
        for name in [one for one, at in due.items() if kubelet._cluster.clock.now >= at]:
            del due[name]
            kubelet.wipe_slices(name)

    replace(kubelet, "stop_driver", stop_driver)
    replace(kubelet, "sync", sync)


DEFECTS: Defects = {
    "kubelet-ends-pods-before-unpreparing": in_kubelets(ends_pods_first),
    "kubelet-forgets-devices-at-its-start": when_started(forget_devices),
    "kubelet-forgets-sharing-pods-at-its-start": when_started(remember_one_pod),
    "kubelet-keeps-claims-of-ended-pods": in_kubelets(keeps_ended_pods),
    "kubelet-keeps-slices-at-its-start": in_kubelets(keeps_slices_at_start),
    "kubelet-loses-extended-claims": of_each(drops_extended_claims),
    "kubelet-prepares-deleted-pods": when_it_has_started(prepare_deleted_pods),
    "kubelet-says-ready-before-prepared": in_kubelets(ready_before_prepared),
    "kubelet-takes-namesakes-for-prepared": of_each(takes_namesakes),
    "kubelet-unprepares-before-containers-end": in_kubelets(unprepares_before_the_end),
    "kubelet-unprepares-with-the-first-container": in_kubelets(unprepares_with_the_first_container),
    "kubelet-wipes-slices-of-all-drivers": in_kubelets(wipes_all_drivers),
    "kubelet-wipes-slices-of-all-nodes": in_kubelets(wipes_all_nodes),
    "kubelet-wipes-slices-of-returned-drivers": in_kubelets(wipes_what_came_back),
}
