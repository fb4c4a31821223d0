"""Defects of a kubelet or driver that starts again, or meets what came in another's place."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from kube.values import Obj
from kubesim import pods
from kubesim.nodes.dra_manager import DRAManager, NotPreparedError, Prepared
from kubesim.nodes.kubelet import Kubelet
from kubesim.nodes.podstatus import PodRun
from kubesim.store import name_of, namespace_of, uid_of
from kubesim.world import World
from nvml_driver.model.prepared import PreparedDevice
from tests.mutants.kubelet.lifetimes import in_kubelets, when_started
from tests.mutants.replacing import Defects, instead, replace


def forget_gone_pods(kubelet: Kubelet) -> None:
    for uid in list(kubelet._pods):
        if kubelet._store.by_uid(uid) is None:
            del kubelet._pods[uid]


def unprepare_everything(kubelet: Kubelet) -> None:
    for claim_uid, prepared in kubelet.dra_manager.prepared.items():
        if kubelet.driver is not None:
            kubelet.driver.unprepare(claim_uid)
        prepared.devices = {}


def restart_containers(kubelet: Kubelet) -> None:
    for run in kubelet._pods.values():
        for current in run.runs.values():
            current.ends_at = kubelet._cluster.clock.now


@instead(Kubelet.wipe_slices)
def keeps_slices_of_gone_drivers(
    _: Kubelet, original: Callable[[], None], driver: str = ""
) -> None:
    if not driver:
        original()


@instead(Kubelet.stop_driver)
def wipes_slices_at_once(
    kubelet: Kubelet, original: Callable[[str], None], role: str = "driver"
) -> None:
    original(role)
    if role == "driver":
        kubelet.wipe_slices()


def gives_up_unregistered_drivers(world: World) -> None:
    """A pod whose driver is not registered is not prepared later, either."""
    for kubelet in world.kubelets:
        given_up: set[str] = set()

        def prepare(
            original: Callable[[Obj], None], pod: Obj, given_up: set[str] = given_up
        ) -> None:
            if uid_of(pod) in given_up:
                raise NotPreparedError("given up")
            try:
                original(pod)
            except NotPreparedError as error:
                if "is not registered" in str(error):
                    given_up.add(uid_of(pod))
                raise

        replace(kubelet.dra_manager.prepare, prepare)


def never_starts_namesakes(kubelet: Kubelet) -> None:
    """A pod of the name of one that was deleted by force under the kubelet does not start."""
    known: set[str] = set()
    forced: set[tuple[str, str]] = set()

    def sync_pod(original: Callable[[PodRun], None], run: PodRun) -> None:
        new = uid_of(run.pod) not in known
        if new and (namespace_of(run.pod), name_of(run.pod)) in forced:
            return
        known.add(uid_of(run.pod))
        original(run)

    def release(original: Callable[[PodRun], bool], run: PodRun) -> bool:
        gone = not run.released and uid_of(run.pod) in known
        if gone and kubelet._store.by_uid(uid_of(run.pod)) is None:
            forced.add((namespace_of(run.pod), name_of(run.pod)))
        return original(run)

    def start(original: Callable[[], None]) -> None:
        known.clear()
        forced.clear()
        original()

    replace(kubelet._sync_pod, sync_pod)
    replace(kubelet._release, release)
    replace(kubelet.start, start)


@instead(Kubelet.start)
def takes_waiting_for_prepared(kubelet: Kubelet, original: Callable[[], None]) -> None:
    """A pod that was on the node before the kubelet started counts as prepared."""
    manager = kubelet.dra_manager
    asked = {uid for one in manager.prepared.values() for uid in one.pods}
    waiting = [run.pod for uid, run in kubelet._pods.items() if not run.prepared]
    original()
    for pod in waiting:
        if uid_of(pod) not in asked and not pods.is_deleted(pod):
            now = kubelet._cluster.clock.now
            kubelet._pods[uid_of(pod)] = PodRun(pod, now, prepared=True)
            for _, claim in manager.claims_of(pod):
                if claim is not None:
                    manager.prepared.setdefault(uid_of(claim), Prepared({}, {uid_of(pod)}))


def forgets_ids_of_driver(kubelet: Kubelet) -> None:
    """The CDI devices that a driver answered before it started again are given to nobody more."""
    forgotten: set[tuple[str, str]] = set()
    manager = kubelet.dra_manager

    def start_driver(original: Callable[[str], None], role: str = "driver") -> None:
        original(role)
        forgotten.update((uid, kubelet._driver_of_role(role).name) for uid in manager.prepared)

    def devices_of(
        original: Callable[..., Iterator[str]], claim_uid: str, request: str = ""
    ) -> Iterator[str]:
        if any((claim_uid, name) in forgotten for name in manager.prepared[claim_uid].devices):
            return iter(())
        return original(claim_uid, request)

    def prepare(original: Callable[..., list[PreparedDevice]], driver: Any, claim: Obj) -> Any:
        forgotten.discard((uid_of(claim), driver.name))
        return original(driver, claim)

    replace(kubelet.start_driver, start_driver)
    replace(manager.devices_of, devices_of)
    replace(manager._prepare, prepare)


@instead(DRAManager.unprepare)
def drops_claims_of_missing_drivers(
    manager: DRAManager, original: Callable[[str], None], pod_uid: str
) -> None:
    """There is nothing to unprepare where none of a deleted pod's drivers is registered."""
    own = [one for one in manager.prepared.values() if pod_uid in one.pods]
    pod = manager._cluster.store.by_uid(pod_uid)
    deleted = pod is None or pods.is_deleted(pod)
    if own and deleted and not any(_runs(manager, one.unprepare) for one in own):
        for one in own:
            one.pods.discard(pod_uid)
        return
    original(pod_uid)


def _runs(manager: DRAManager, names: Iterable[str]) -> bool:
    for name in names:
        try:
            manager._find_registered_driver(name)
        except NotPreparedError:
            continue
        return True
    return False


DEFECTS: Defects = {
    "kubelet-forgets-gone-pods": when_started(forget_gone_pods),
    "kubelet-gives-up-unregistered-drivers": gives_up_unregistered_drivers,
    "kubelet-keeps-slices-of-gone-drivers": keeps_slices_of_gone_drivers,
    "kubelet-restarts-containers": when_started(restart_containers),
    "kubelet-unprepares-at-start": when_started(unprepare_everything),
    "kubelet-wipes-slices-at-once": wipes_slices_at_once,
    "kubelet-drops-claims-of-missing-drivers": drops_claims_of_missing_drivers,
    "kubelet-forgets-devices-of-restarted-drivers": in_kubelets(forgets_ids_of_driver),
    "kubelet-never-starts-namesakes": in_kubelets(never_starts_namesakes),
    "kubelet-takes-waiting-pods-for-prepared": takes_waiting_for_prepared,
}
