"""Defects of a kubelet: claims that are reserved for a PodGroup, or were made for one."""

from __future__ import annotations

from collections.abc import Iterator

from kube.values import Obj
from kubesim import pods
from kubesim.nodes.dra_manager import DRAManager, NotPreparedError
from tests.mutants.replacing import Defects, Original, instead

_Claims = Iterator[tuple[str, Obj | None]]


def _with_users(claim: Obj, users: list[Obj]) -> Obj:
    return {**claim, "status": {**claim["status"], "reservedFor": users}}


@instead(DRAManager.claims_of)
def overlooks_groups(_: DRAManager, original: Original, pod: Obj) -> _Claims:
    """A pod does not run with a claim that is reserved for its group."""
    for name, claim in original(pod):
        users = (claim or {"status": {}})["status"].get("reservedFor") or []
        alone = [user for user in users if not pods.is_group_reference(user)]
        yield name, claim and _with_users(claim, alone)


@instead(DRAManager.claims_of)
def takes_reservations_of_any_group(_: DRAManager, original: Original, pod: Obj) -> _Claims:
    """A pod of a group runs with a claim that is reserved for another group."""
    for name, claim in original(pod):
        users = (claim or {"status": {}})["status"].get("reservedFor") or []
        more = [{**user, "name": pods.group_name(pod)} for user in users if "apiGroup" in user]
        yield name, claim and _with_users(claim, [*users, *more])


def _is_of_a_group(claim: Obj) -> bool:
    owners = claim["metadata"].get("ownerReferences") or []
    return any(owner["kind"] == "PodGroup" for owner in owners)


@instead(DRAManager.check_owner)
def takes_claims_of_any_group(
    _: DRAManager, original: Original, pod: Obj, entry: str, claim: Obj
) -> None:
    """A pod of a group runs with a claim that was made for another group."""
    if pods.group_name(pod) is None or not _is_of_a_group(claim):
        original(pod, entry, claim)


@instead(DRAManager.check_owner)
def takes_claims_of_pods_alone(
    _: DRAManager, original: Original, pod: Obj, entry: str, claim: Obj
) -> None:
    """A pod does not run with a claim that was made for its group."""
    original(pod, entry, claim)
    if _is_of_a_group(claim):
        raise NotPreparedError("Pod is not owner")


DEFECTS: Defects = {
    "kubelet-overlooks-reservations-for-groups": overlooks_groups,
    "kubelet-refuses-claims-of-groups": takes_claims_of_pods_alone,
    "kubelet-takes-claims-of-any-group": takes_claims_of_any_group,
    "kubelet-takes-reservations-for-any-group": takes_reservations_of_any_group,
}
