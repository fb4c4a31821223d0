"""Defects of what a kubelet tells: the PodResources API, metrics."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace as changed
from typing import Any

from kube.observations import CALLS, OPERATIONS, ListedClaim
from kube.values import Obj
from kubesim.cluster import Counts
from kubesim.nodes.dra_manager import DRAManager, Prepared
from kubesim.nodes.kubelet import Kubelet
from kubesim.nodes.podstatus import PodResources, PodRun
from kubesim.store import uid_of
from kubesim.world import World
from tests.mutants.replacing import Defects, Mutation, Original, instead
from tests.mutants.scheduler.extended_resources import forgets


@instead(Counts.count)
def count_success_as_error(_: World, original: Original, of: str, name: str, **labels: str) -> None:
    """As kubelets before 1.36 (pkg/kubelet/cm/dra/manager.go)."""
    if name == OPERATIONS:
        labels["is_error"] = {"true": "false", "false": "true"}[labels["is_error"]]
    original(of, name, **labels)


def lists(change: Callable[[Obj], Obj]) -> Mutation:
    """PodResources takes a pod for another one."""

    @instead(PodResources.list_claims)
    def mutate(
        _: Any, original: Callable[..., Sequence[ListedClaim] | None], pod: Obj, container: str
    ) -> Sequence[ListedClaim] | None:
        return original(change(pod), container)

    return mutate


def init_as_others(pod: Obj) -> Obj:
    spec = pod["spec"]
    every = [*(spec.get("initContainers") or []), *spec["containers"]]
    return {**pod, "spec": {**spec, "containers": every}}


def without_init(pod: Obj) -> Obj:
    return {**pod, "spec": {**pod["spec"], "initContainers": []}}


def without_extended(pod: Obj) -> Obj:
    return {**pod, "status": {**pod["status"], "extendedResourceClaimStatus": {}}}


def as_running(pod: Obj) -> Obj:
    return {**pod, "status": {**pod["status"], "phase": "Running"}}


def lists_some(choose: Callable[[Sequence[ListedClaim]], Sequence[ListedClaim]]) -> Mutation:
    """PodResources lists less than there is."""

    @instead(PodResources.list_claims)
    def mutate(
        _: Any, original: Callable[..., Sequence[ListedClaim] | None], *args: Any
    ) -> Sequence[ListedClaim] | None:
        found = original(*args)
        return found and choose(found)

    return mutate


def first_driver(claims: Sequence[ListedClaim]) -> Sequence[ListedClaim]:
    return [
        ListedClaim(
            claim.namespace,
            claim.name,
            tuple(one for one in claim.devices if one.driver == claim.devices[0].driver),
        )
        for claim in claims
    ]


def counts(change: Callable[[str, Mapping[str, str]], bool]) -> Mutation:
    """Something is not counted: by metric and labels."""

    @instead(Counts.count)
    def mutate(_: World, original: Original, of: str, name: str, **labels: str) -> None:
        if not change(name, labels):
            original(of, name, **labels)

    return mutate


def is_failure(name: str, labels: Mapping[str, str]) -> bool:
    return name == OPERATIONS and labels["is_error"] == "true"


def is_unprepare_call(name: str, labels: Mapping[str, str]) -> bool:
    return name == CALLS and labels["method_name"].endswith("/NodeUnprepareResources")


@instead(DRAManager._release_claims)
def claims_stay_in_use(manager: DRAManager, original: Callable[[str], None], pod_uid: str) -> None:
    """What was in use is counted as in use for ever."""
    before = dict(manager.prepared)
    original(pod_uid)
    for uid in before.keys() - manager.prepared.keys():
        if before[uid].complete and not uid.startswith("gone "):
            manager.prepared[f"gone {uid}"] = Prepared(before[uid].devices, complete=True)


@instead(PodResources.claims_of)
def all_for_each_container(
    own: PodResources, _original: object, pod: Obj, _container: Obj
) -> list[Obj]:
    return [claim for _, claim in own._manager.claims_of(pod) if claim is not None]


@instead(PodResources.claims_of)
def none_of_templates(
    _: Any, original: Callable[..., list[Obj]], pod: Obj, container: Obj
) -> list[Obj]:
    """Claims are looked up by what the pod's spec says, which names no generated one."""
    found = original(pod, container)
    return [claim for claim in found if not claim["metadata"].get("ownerReferences")]


@instead(PodResources.claims_of)
def prepared_ones(
    own: PodResources, original: Callable[..., list[Obj]], pod: Obj, container: Obj
) -> list[Obj]:
    """Of the claims of a container those are listed that are prepared for somebody."""
    return [c for c in original(pod, container) if uid_of(c) in own._manager.prepared]


@instead(PodResources.list_claims)
def lists_shares_without_ids(
    _: Any, original: Callable[[Obj, str], list[ListedClaim] | None], pod: Obj, container: str
) -> list[ListedClaim] | None:
    """PodResources says of a share which device it is of, and not which share."""
    found = original(pod, container)
    return found and [
        changed(one, devices=tuple(changed(device, share="") for device in one.devices))
        for one in found
    ]


@instead(Kubelet._fail)
def says_no_reason(
    _: Kubelet, original: Callable[..., None], run: PodRun, reason: str, message: str
) -> None:
    """The event of a refused preparation does not say which claim it is."""
    original(run, reason, message.partition(": ")[0])


@instead(Kubelet._report)
def containers_say_why(_: Kubelet, original: Callable[[PodRun], None], run: PodRun) -> None:
    """A container that waits for its devices says so in its state."""
    if not run.prepared and run.attempts:
        run.create_problem = "its claims are not prepared"
    original(run)


DEFECTS: Defects = {
    "preparations-count-as-errors": count_success_as_error,
    "unpreparing-is-not-counted": forgets("kubelet", OPERATIONS, "UnprepareResources"),
    "waiting-containers-say-why": containers_say_why,
    "kubelet-says-not-which-claim": says_no_reason,
    "claims-stay-in-use-in-metrics": claims_stay_in_use,
    "failed-operations-are-not-counted": counts(is_failure),
    "lists-devices-of-one-driver": lists_some(first_driver),
    "lists-init-containers": lists(init_as_others),
    "lists-no-extended-claims": lists(without_extended),
    "podresources-half-prepared": prepared_ones,
    "podresources-list-ended-pods": lists(as_running),
    "lists-no-sidecars": lists(without_init),
    "unprepare-calls-are-not-counted": counts(is_unprepare_call),
    "lists-all-claims-of-the-pod": all_for_each_container,
    "lists-no-generated-claims": none_of_templates,
    "kubelet-lists-shares-without-ids": lists_shares_without_ids,
}
