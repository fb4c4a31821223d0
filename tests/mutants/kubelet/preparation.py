"""Defects of a kubelet: when it asks drivers to prepare claims, for whom, and how often."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kube.observations import CALLS
from kube.values import Obj
from kubesim.nodes.dra_manager import (
    _PREPARE,
    _SERVICE,
    DRAManager,
    NotPreparedError,
    Prepared,
)
from kubesim.nodes.driver import NodeDriver
from kubesim.store import name_of, uid_of
from nvml_driver.model.prepared import PreparedDevice
from tests.mutants.kubelet.pods import takes_unreserved
from tests.mutants.kubelet.two_drivers import of_each
from tests.mutants.replacing import Defects, Mutation, Original, instead, replace

Prepare = Callable[[Obj], None]


@instead(DRAManager.prepare)
def starts_with_what_is_there(manager: DRAManager, original: Prepare, pod: Obj) -> None:
    """A pod starts as soon as one of its claims is prepared."""
    try:
        original(pod)
    except NotPreparedError:
        uids = [uid_of(claim) for _, claim in manager.claims_of(pod) if claim is not None]
        known = [manager.prepared[uid] for uid in uids if uid in manager.prepared]
        if len(known) < len(uids) or not any(one.devices for one in known):
            raise


def gives_up_refused(manager: DRAManager) -> None:
    """What a driver has refused once it is not asked for again."""
    refused: set[str] = set()

    def prepare(original: Prepare, pod: Obj) -> None:
        if uid_of(pod) in refused:
            raise NotPreparedError("given up")
        try:
            original(pod)
        except NotPreparedError as error:
            if "NodePrepareResources failed" in str(error):
                refused.add(uid_of(pod))
            raise

    replace(manager.prepare, prepare)


@instead(DRAManager.claims_of)
def claims_of_any_namespace(
    manager: DRAManager, original: Callable[[Obj], Iterator[tuple[str, Obj | None]]], pod: Obj
) -> Iterator[tuple[str, Obj | None]]:
    """Claims that users make are looked up by their names alone; the oldest is taken."""
    named = {
        entry["name"]: entry["resourceClaimName"]
        for entry in pod["spec"].get("resourceClaims") or []
        if "resourceClaimName" in entry
    }
    everywhere = manager._cluster.store.all("ResourceClaim")
    for entry, claim in original(pod):
        same = (one for one in everywhere if name_of(one) == named.get(entry))
        yield entry, next(same, claim)


def takes_missing_for_unneeded(manager: DRAManager) -> None:
    """A claim that is not made yet counts as one that is not needed."""
    replace(
        manager.claims_of,
        lambda original, pod: (pair for pair in original(pod) if pair[1] is not None),
    )


@instead(DRAManager.prepare)
def prepares_for_each_pod(manager: DRAManager, original: Prepare, pod: Obj) -> None:
    for _, claim in manager.claims_of(pod):
        if claim is not None and uid_of(claim) in manager.prepared:
            manager.prepared[uid_of(claim)].complete = False
    original(pod)


@instead(DRAManager._prepare)
def asks_for_each_claim(
    manager: DRAManager,
    original: Callable[..., list[PreparedDevice]],
    driver: NodeDriver,
    claim: Obj,
) -> list[PreparedDevice]:
    """One call for each claim of a pod, where all claims of a driver belong into one."""
    if driver.name in manager._called_drivers:
        manager._cluster.counts.count(
            manager._component,
            CALLS,
            driver_name=driver.name,
            method_name=f"{_SERVICE}/{_PREPARE}",
            grpc_status_code="OK",
        )
    return original(driver, claim)


def skips(kept: Callable[[list[str], str], list[str]]) -> Mutation:
    """Other operations of a device are skipped: by its own list and the operation in question."""

    @instead(DRAManager.list_drivers_to_call)
    def mutate(
        _: DRAManager, original: Callable[..., list[str]], allocation: Obj, operation: str
    ) -> list[str]:
        devices = allocation.get("devices") or {}
        results = [
            {**one, "skipNodeOperations": kept(one.get("skipNodeOperations") or [], operation)}
            for one in devices.get("results") or []
        ]
        return original({"devices": {**devices, "results": results}}, operation)

    return mutate


@instead(DRAManager.list_drivers_to_call)
def skips_for_one_device(
    _: DRAManager, original: Callable[..., list[str]], allocation: Obj, operation: str
) -> list[str]:
    """A driver is not asked if one of its devices need not be prepared."""
    found = original(allocation, operation)
    skipping = {
        one["driver"]
        for one in (allocation.get("devices") or {}).get("results") or []
        if {"*", operation} & {*(one.get("skipNodeOperations") or ())}
    }
    return [name for name in found if name not in skipping]


def any_skip_is_both(names: list[str], operation: str) -> list[str]:
    return [operation] if names else []


def only_star(names: list[str], _operation: str) -> list[str]:
    return [name for name in names if name == "*"]


def no_star(names: list[str], _operation: str) -> list[str]:
    return [name for name in names if name != "*"]


@instead(DRAManager.prepare)
def stops_at_a_prepared_claim(manager: DRAManager, original: Prepare, pod: Obj) -> None:
    """What other pods have had prepared ends the preparation, and a new claim has no devices."""
    uids = [uid_of(claim) for _, claim in manager.claims_of(pod) if claim is not None]
    of_others = [
        uid
        for uid in uids
        if uid in manager.prepared and manager.prepared[uid].pods - {uid_of(pod)}
    ]
    if of_others and not all(uid in manager.prepared for uid in uids):
        raise NotPreparedError("unable to get claim info")
    original(pod)


@instead(DRAManager.unprepare)
def unprepares_what_others_use(
    manager: DRAManager, original: Callable[[str], None], pod_uid: str
) -> None:
    """A pod that was refused lets go of the claims that it names as if it had been the last."""
    pod = manager._cluster.store.by_uid(pod_uid)
    for _, claim in manager.claims_of(pod) if pod is not None else ():
        entry = manager.prepared.get(uid_of(claim)) if claim is not None else None
        if entry is not None and pod_uid not in entry.pods:
            entry.pods = {pod_uid}
    original(pod_uid)


@instead(DRAManager._prepare_claims)
def needs_no_driver_again(manager: DRAManager, original: Prepare, pod: Obj) -> None:
    """Claims that are prepared already need no driver that runs."""
    try:
        original(pod)
    except NotPreparedError as error:
        claims = [claim for _, claim in manager.claims_of(pod)]
        entries = [manager.prepared.get(uid_of(claim)) for claim in claims if claim is not None]
        known = [entry for entry in entries if entry is not None and entry.complete]
        if "is not registered" not in str(error) or len(known) < len(claims):
            raise
        for entry in known:
            entry.pods.add(uid_of(pod))


@instead(DRAManager.check_owner)
def takes_claims_of_other_pods(
    _manager: DRAManager, _original: Original, _pod: Obj, _name: str, _claim: Obj
) -> None:
    """A claim that was made for another pod is prepared for whoever it is reserved for."""


@instead(DRAManager._entry_for)
def takes_what_is_being_unprepared(
    manager: DRAManager, original: Callable[[Obj, Obj], Prepared], claim: Obj, pod: Obj
) -> Prepared:
    """A claim that is being unprepared takes on a pod, as it is."""
    entry = manager.prepared.get(uid_of(claim))
    if entry is not None:
        entry.unpreparing = False
    return original(claim, pod)


DEFECTS: Defects = {
    "kubelet-needs-no-driver-for-prepared-claims": needs_no_driver_again,
    "kubelet-prepares-claims-of-other-pods": takes_claims_of_other_pods,
    "kubelet-takes-pods-while-unpreparing": takes_what_is_being_unprepared,
    "kubelet-asks-for-each-claim": asks_for_each_claim,
    "kubelet-gives-up-refused-claims": of_each(gives_up_refused),
    "kubelet-ignores-reservations": takes_unreserved(lambda name, _: bool(name)),
    "kubelet-prepares-for-each-pod": prepares_for_each_pod,
    "kubelet-reads-claims-of-any-namespace": claims_of_any_namespace,
    "kubelet-skips-all-for-any-operation": skips(any_skip_is_both),
    "kubelet-skips-drivers-for-one-device": skips_for_one_device,
    "kubelet-skips-wildcards-only": skips(only_star),
    "kubelet-starts-with-what-is-prepared": starts_with_what_is_there,
    "kubelet-stops-at-a-prepared-claim": stops_at_a_prepared_claim,
    "kubelet-takes-missing-claims-for-unneeded": of_each(takes_missing_for_unneeded),
    "kubelet-knows-no-wildcard": skips(no_star),
    "kubelet-unprepares-for-refused-pods": unprepares_what_others_use,
}
