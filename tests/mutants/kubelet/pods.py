"""Defects of the kubelet: what is prepared, and what containers get."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from kube.values import Obj
from kubesim import pods
from kubesim.nodes.dra_manager import DRAManager, NotPreparedError, Prepared
from kubesim.nodes.kubelet import Kubelet
from kubesim.store import uid_of
from kubesim.world import World
from tests.mutants.replacing import Defects, Mutation, Original, instead, replace

Ids = Callable[[Obj, Obj], Iterator[str]]


def takes_unreserved(overlooks: Callable[[str, int], bool]) -> Mutation:
    """The kubelet does not look whether some claims are reserved: by pod claim name and number."""

    @instead(DRAManager.claims_of)
    def mutate(_: DRAManager, original: Original, pod: Obj) -> Any:
        for number, (name, claim) in enumerate(original(pod)):
            if claim is not None and overlooks(name, number):
                status = {**claim["status"], "reservedFor": [pods.consumer_reference(pod)]}
                yield name, {**claim, "status": status}
            else:
                yield name, claim

    return mutate


take_any_reservation = takes_unreserved(lambda *_: True)


def gives_containers(ids: Callable[[DRAManager, Ids, Obj, Obj], Iterator[str]]) -> Mutation:
    """Containers get other CDI devices than those of the claims that they name."""

    return instead(DRAManager.cdi_device_ids)(ids)


def first_container_only(
    _manager: DRAManager, original: Ids, pod: Obj, container: Obj
) -> Iterator[str]:
    return original(pod, container) if container == pod["spec"]["containers"][0] else iter(())


def others_for_pods_without_claims(
    manager: DRAManager, original: Ids, pod: Obj, container: Obj
) -> Iterator[str]:
    if pod["spec"].get("resourceClaims") or pod["status"].get("extendedResourceClaimStatus"):
        yield from original(pod, container)
        return
    for claim_uid in manager.prepared:
        yield from manager.devices_of(claim_uid)


def generated_for_one_container(
    _manager: DRAManager, original: Ids, pod: Obj, container: Obj
) -> Iterator[str]:
    """Of the containers that name a generated claim, only the first gets its devices."""
    generated = {
        entry["name"]
        for entry in pod["spec"].get("resourceClaims") or []
        if "resourceClaimTemplateName" in entry
    }
    taken: set[str] = set()
    for other in pod["spec"]["containers"]:
        if other["name"] == container["name"]:
            break
        claims = (other.get("resources") or {}).get("claims") or []
        taken |= generated & {entry["name"] for entry in claims if not entry.get("request")}
    left = [
        entry
        for entry in (container.get("resources") or {}).get("claims") or []
        if entry["name"] not in taken
    ]
    resources = {**(container.get("resources") or {}), "claims": left}
    return original(pod, {**container, "resources": resources})


def one_device_per_claim(
    _manager: DRAManager, original: Ids, pod: Obj, container: Obj
) -> Iterator[str]:
    for entry in (container.get("resources") or {}).get("claims") or []:
        named = original(pod, {**container, "resources": {"claims": [entry]}})
        yield from list(named)[:1]


def all_of_extended_resources(
    _manager: DRAManager, original: Ids, pod: Obj, container: Obj
) -> Iterator[str]:
    """A container with an extended resource sees what the others of its pod have of such."""
    made = pod["status"].get("extendedResourceClaimStatus") or {}
    found = made.get("requestMappings") or []
    if any(item["containerName"] == container["name"] for item in found):
        found = [{**item, "containerName": container["name"]} for item in found]
        status = {"extendedResourceClaimStatus": {**made, "requestMappings": found}}
        pod = {**pod, "status": {**pod["status"], **status}}
    return original(pod, container)


def none_for(sidecar: bool) -> Callable[..., Iterator[str]]:
    """Init containers, or those of them that go on running, get no devices."""

    def ids(_manager: DRAManager, original: Ids, pod: Obj, container: Obj) -> Iterator[str]:
        is_init = container in (pod["spec"].get("initContainers") or [])
        if is_init and (container.get("restartPolicy") == "Always") == sidecar:
            return iter(())
        return original(pod, container)

    return ids


@instead(Kubelet._start)
def none_after_restart(
    _: Kubelet, original: Original, run: Any, container: Obj, restarts: int
) -> None:
    bare = {name: value for name, value in container.items() if name != "resources"}
    original(run, bare if restarts else container, restarts)


@instead(DRAManager.prepare)
def leaves_unused_claims(_: DRAManager, original: Callable[[Obj], None], pod: Obj) -> None:
    """Claims that no container names are not prepared."""
    used = {
        entry["name"]
        for container in pod["spec"]["containers"]
        for entry in (container.get("resources") or {}).get("claims") or []
    }
    named = pod["spec"].get("resourceClaims") or []
    claims = [entry for entry in named if entry["name"] in used]
    original({**pod, "spec": {**pod["spec"], "resourceClaims": claims}})


@instead(DRAManager.prepare)
def waits_for_entries_without_claim(
    _: DRAManager, original: Callable[[Obj], None], pod: Obj
) -> None:
    for entry in pods.claim_statuses(pod):
        if not entry.get("resourceClaimName"):
            raise NotPreparedError("ResourceClaim not created yet")
    original(pod)


def none_where(skipped: Callable[[Obj, Obj], bool]) -> Callable[..., Iterator[str]]:
    """Entries of a container's claims give it nothing, by the entry and a result of its claim."""

    def ids(manager: DRAManager, original: Ids, pod: Obj, container: Obj) -> Iterator[str]:
        claims = {name: claim for name, claim in manager.claims_of(pod) if claim is not None}
        resources = container.get("resources") or {}
        kept = [
            entry
            for entry in resources.get("claims") or []
            if not any(skipped(entry, result) for result in _results(claims.get(entry["name"])))
        ]
        return original(pod, {**container, "resources": {**resources, "claims": kept}})

    return ids


def _results(claim: Obj | None) -> list[Obj]:
    allocation = ((claim or {}).get("status") or {}).get("allocation") or {}
    found: list[Obj] = (allocation.get("devices") or {}).get("results") or []
    return found


def of_an_alternative(entry: Obj, result: Obj) -> bool:
    return bool(entry.get("request")) and result["request"].startswith(f"{entry['request']}/")


def with_admin_access(_entry: Obj, result: Obj) -> bool:
    return bool(result.get("adminAccess"))


@instead(DRAManager.prepare)
def runs_without_allocation(manager: DRAManager, original: Callable[[Obj], None], pod: Obj) -> None:
    """A pod is run though a claim of it has no device yet."""
    claims = [claim for _, claim in manager.claims_of(pod) if claim is not None]
    if all("allocation" in claim["status"] for claim in claims):
        original(pod)
        return
    for claim in claims:
        manager.prepared.setdefault(uid_of(claim), Prepared({}, {uid_of(pod)}))


def forgets_force_deleted(world: World) -> None:
    """The claims of a pod that is gone without a word stay prepared."""
    for kubelet in world.kubelets:

        def unprepare(original: Callable[[str], None], pod_uid: str) -> None:
            if world.cluster.store.by_uid(pod_uid) is not None:
                original(pod_uid)

        replace(kubelet.dra_manager.unprepare, unprepare)


def never_unprepares(world: World) -> None:
    for kubelet in world.kubelets:
        replace(kubelet.dra_manager.unprepare, lambda *_: None)


@instead(DRAManager.unprepare)
def unprepares_with_first_pod(
    manager: DRAManager, original: Callable[[str], None], pod_uid: str
) -> None:
    for uid, prepared in manager.prepared.items():
        if pod_uid in prepared.pods and manager.drivers:
            manager.drivers[0].unprepare(uid)
            prepared.complete = False
    original(pod_uid)


@instead(DRAManager.list_drivers_to_call)
def prepares_what_is_skipped(
    _: DRAManager, _original: object, allocation: Obj, _operation: str
) -> list[str]:
    return [result["driver"] for result in allocation["devices"]["results"]]


DEFECTS: Defects = {
    "extended-claims-need-no-reservation": takes_unreserved(lambda name, _: not name),
    "kubelet-checks-the-first-reservation-only": takes_unreserved(lambda _, number: number > 0),
    "leaves-unused-claims-unprepared": leaves_unused_claims,
    "kubelet-waits-for-entries-without-claim": waits_for_entries_without_claim,
    "alternatives-reach-no-container": gives_containers(none_where(of_an_alternative)),
    "admin-access-reaches-no-container": gives_containers(none_where(with_admin_access)),
    "prepares-what-is-skipped": prepares_what_is_skipped,
    "kubelet-never-unprepares": never_unprepares,
    "kubelet-unprepares-with-the-first-pod": unprepares_with_first_pod,
    "generated-claim-for-one-container": gives_containers(generated_for_one_container),
    "forgets-force-deleted-pods": forgets_force_deleted,
    "runs-pods-without-allocation": runs_without_allocation,
    "init-containers-see-nothing": gives_containers(none_for(sidecar=False)),
    "no-devices-after-restart": none_after_restart,
    "mixes-up-extended-resources": gives_containers(all_of_extended_resources),
    "one-device-per-claim": gives_containers(one_device_per_claim),
    "sidecars-see-nothing": gives_containers(none_for(sidecar=True)),
    "first-container-only": gives_containers(first_container_only),
    "leaks-to-other-pods": gives_containers(others_for_pods_without_claims),
}
