"""Defects of binding conditions where devices or claims have another feature."""

from __future__ import annotations

from collections.abc import Callable

from kube.values import Obj, User
from kubesim.apiserver.authorization import Authorizer
from kubesim.apiserver.server import ApiServer
from kubesim.controllers.eviction import EvictionController
from kubesim.controllers.evictor import Eviction, Evictor
from kubesim.resources import Kind
from kubesim.scheduling.bindingconditions import BindingConditions, Readiness
from kubesim.scheduling.listers import Listers
from kubesim.store import clone, uid_of
from kubesim.world import World
from tests.mutants.allocation.inputs import devices, reads, reads_all, results, writes
from tests.mutants.replacing import Defects, Mutation, Original, instead, part, replace


def waits_only_for(counts: Callable[[Obj, Obj], bool]) -> Mutation:
    """Binding conditions of the other devices do not count: called with the first and each."""

    def change(allocation: Obj) -> None:
        found = results(allocation)
        for result in found:
            if not counts(found[0], result):
                result.pop("bindingConditions", None)
                result.pop("bindingFailureConditions", None)

    return writes(change)


def forgives_what_was_before(world: World) -> None:
    """A rule that is there before a pod is bound does not evict it any more."""
    waited: set[str] = set()

    def evictions(
        original: Callable[..., list[Eviction]], evictor: Evictor, pod: Obj
    ) -> list[Eviction]:
        if not pod["spec"].get("nodeName"):
            waited.add(uid_of(pod))
        return [] if uid_of(pod) in waited else original(evictor, pod)

    replace(part(world, EvictionController).list_evictions, evictions)


@instead(Authorizer._check_device_reports)
def only_of_bound_pods(
    world: World,
    original: Callable[..., list[object]],
    user: User,
    wanted: object,
    new: Obj,
    old: Obj,
) -> list[object]:
    """A driver has no right for its node before a pod that uses the claim is there."""
    users = {one["uid"] for one in new.get("reservedFor") or []}
    pods = [pod for pod in world.cluster.store.all("Pod") if uid_of(pod) in users]
    if not any(pod["spec"].get("nodeName") for pod in pods) and "allocation" in new:
        new = {**new, "allocation": {**new["allocation"], "nodeSelector": None}}
    return original(user, wanted, new, old)


def free_until_bound(world: World) -> None:
    """Devices that a pod waits for consume no counters yet."""

    def change(resource_slice: Obj) -> None:
        for device in devices(resource_slice):
            if device.get("bindingConditions"):
                device.pop("consumesCounters", None)

    reads(Listers.resource_slices, change)(world)


def withholds_what_was_waited_for(world: World) -> None:
    """What a pod waited for stays taken when the pod is gone."""
    waited: dict[str, list[Obj]] = {}

    def bind(original: Original, pod: Obj, node: str) -> None:
        original(pod, node)
        if pod in world.scheduler.waiting:
            found = [claim for _, claim in world.cluster.claims_of(pod) if claim is not None]
            waited[uid_of(pod)] = found

    def claims(found: list[Obj]) -> list[Obj]:
        gone = [uid for uid in waited if world.cluster.store.by_uid(uid) is None]
        held = {uid_of(claim): claim for uid in gone for claim in waited[uid]}
        return [held.get(uid_of(claim), claim) for claim in found]

    replace(world.scheduler.waiting.bind, bind)
    reads_all(Listers.resource_claims, claims)(world)


@instead(BindingConditions.read_readiness)
def of_whole_devices(_: World, original: Callable[[Obj], Readiness], claim: Obj) -> Readiness:
    """Reports on shares are not found: they are looked for by the names of devices."""
    reports = claim["status"].get("devices") or []
    whole = [report for report in reports if "shareID" not in report]
    return original({**claim, "status": {**claim["status"], "devices": whole}})


@instead(BindingConditions.read_readiness)
def of_any_share(_: World, original: Callable[[Obj], Readiness], claim: Obj) -> Readiness:
    """The first report on a device is taken for that on each of its shares."""
    status = clone(claim["status"])
    for one in (*(status.get("devices") or ()), *results(status.get("allocation") or {})):
        one.pop("shareID", None)
    return original({**claim, "status": status})


@instead(ApiServer.validate_change)
def of_no_share(
    _: World, original: Original, kind: Kind, new: Obj, old: Obj, *, status: bool
) -> None:
    """The API server takes a report on a shared device that does not say which share it is on."""
    copy = clone(new)
    if kind.name == "ResourceClaim":
        for report in copy["status"].get("devices") or []:
            for result in results(copy["status"].get("allocation") or {}):
                if result["device"] == report["device"] and "shareID" in result:
                    report.setdefault("shareID", result["shareID"])
    original(kind, copy, old, status=status)


DEFECTS: Defects = {
    "accepts-reports-on-no-share": of_no_share,
    "deleted-pods-keep-what-they-waited-for": withholds_what_was_waited_for,
    "reports-on-shares-do-not-count": of_whole_devices,
    "reports-on-shares-count-for-all": of_any_share,
    "waiting-devices-consume-no-counters": free_until_bound,
    "driver-has-no-right-before-a-pod-is-bound": only_of_bound_pods,
    "monitors-do-not-wait-for-conditions": waits_only_for(lambda _, one: "adminAccess" not in one),
    "only-the-first-device-is-waited-for": waits_only_for(lambda first, one: one is first),
    "rules-miss-pods-that-were-not-bound": forgives_what_was_before,
}
