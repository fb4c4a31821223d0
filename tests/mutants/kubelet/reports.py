"""Defects of what a kubelet tells: the PodResources API, metrics."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kube.observations import CALLS, OPERATIONS, ListedClaim
from kube.values import Obj
from kubesim.nodes.dra_manager import DRAManager, Prepared
from kubesim.nodes.kubelet import Kubelet
from kubesim.nodes.podstatus import PodRun
from kubesim.world import World
from tests.mutants.replacing import Defects, Mutation, instead


def lists(change: Callable[[Obj], Obj]) -> Mutation:
    """PodResources takes a pod for another one."""

    @instead("kubelets.pod_resources.list_claims")
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


def lists_some(choose: Callable[[Sequence[ListedClaim]], Sequence[ListedClaim]]) -> Mutation:
    """PodResources lists less than there is."""

    @instead("kubelets.pod_resources.list_claims")
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

    @instead("cluster.counts.count")
    def mutate(_: World, original: Callable[..., None], of: str, name: str, **labels: str) -> None:
        if not change(name, labels):
            original(of, name, **labels)

    return mutate


def is_failure(name: str, labels: Mapping[str, str]) -> bool:
    return name == OPERATIONS and labels["is_error"] == "true"


def is_unprepare_call(name: str, labels: Mapping[str, str]) -> bool:
    return name == CALLS and labels["method_name"].endswith("/NodeUnprepareResources")


@instead("managers._release_claims")
def claims_stay_in_use(manager: DRAManager, original: Callable[[str], None], pod_uid: str) -> None:
    """What was in use is counted as in use for ever."""
    before = dict(manager.prepared)
    original(pod_uid)
    for uid in before.keys() - manager.prepared.keys():
        if before[uid].complete and not uid.startswith("gone "):
            manager.prepared[f"gone {uid}"] = Prepared(before[uid].devices, complete=True)


@instead("kubelets._fail")
def says_no_reason(
    _: Kubelet, original: Callable[..., None], run: PodRun, reason: str, message: str
) -> None:
    """The event of a refused preparation does not say which claim it is."""
    original(run, reason, message.partition(": ")[0])


@instead("kubelets._report")
def containers_say_why(_: Kubelet, original: Callable[[PodRun], None], run: PodRun) -> None:
    """A container that waits for its devices says so in its state."""
    if not run.prepared and run.attempts:
        run.create_problem = "its claims are not prepared"
    original(run)


DEFECTS: Defects = {
    "waiting-containers-say-why": containers_say_why,
    "kubelet-says-not-which-claim": says_no_reason,
    "claims-stay-in-use-in-metrics": claims_stay_in_use,
    "failed-operations-are-not-counted": counts(is_failure),
    "lists-devices-of-one-driver": lists_some(first_driver),
    "lists-init-containers": lists(init_as_others),
    "lists-no-extended-claims": lists(without_extended),
    "lists-no-sidecars": lists(without_init),
    "unprepare-calls-are-not-counted": counts(is_unprepare_call),
}
