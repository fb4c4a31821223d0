"""Pods with claims: what is taken, changed, and kept in their status."""

from __future__ import annotations

from typing import Any

from kube.values import Obj
from kubesim.apiserver.handling import Handler
from kubesim.world import World
from tests.mutants.apiserver.claim_checks import ignores_unknown_fields
from tests.mutants.apiserver.claim_storage import after_change
from tests.mutants.apiserver.overlooked_fields import CHANGED, NEW, overlooks, refuses, table
from tests.mutants.replacing import Defects, Mutation, Original, instead, replace


def _names_whole_claim_first(pod: Obj) -> bool:
    found = [
        (container.get("resources") or {}).get("claims") or []
        for container in pod["spec"]["containers"]
    ]
    return any(len(claims) == 2 and not claims[0].get("request") and claims[1].get("request")
               for claims in found)  # fmt: skip


@instead(Handler._bind)
def _binds_gated_pods(_: World, original: Original, pod: Obj, binding: Obj) -> None:
    spec = {field: value for field, value in pod["spec"].items() if field != "schedulingGates"}
    original({**pod, "spec": spec}, binding)


_ENTRY = r"resourceClaims\[\d+\]"


_CLAIMS = r"ontainers\[\d+\]\.resources\.claims"


_INIT = r"initContainers\[\d+\]\.resources\.claims"


def _changes(*path: str) -> Mutation:
    """A pod that is changed brings another value of a field that does not change."""

    def mutate(world: World) -> None:
        def differs(new: Any, old: Any) -> bool:
            pairs = [(new["spec"], old["spec"])]
            for field in path[:-1]:
                pairs = [
                    pair
                    for one, two in pairs
                    for pair in (
                        zip(one.get(field) or [], two.get(field) or [], strict=False)
                        if field.endswith("ontainers")
                        else [(one.get(field) or {}, two.get(field) or {})]
                    )
                ]
            return any(one.get(path[-1]) != two.get(path[-1]) for one, two in pairs)

        def check(original: Original, kind: Any, new: Obj, old: Obj, **how: Any) -> None:
            if kind.name != "Pod" or not differs(new, old):
                original(kind, new, old, **how)

        replace(world.api.validate_change, check)

    return mutate


def _forgets(field: str) -> Mutation:
    """A client that does not know a field of a pod's status removes it."""

    def forget(new: Obj, wanted: Obj, _: Obj) -> None:
        if (wanted.get("status") or {}).get(field) is None:
            new["status"].pop(field, None)

    return after_change("Pod", forget, "status")


def _claims(pod: Obj) -> list[Any]:
    return pod["spec"].get("resourceClaims") or []


def _names(container: Obj) -> list[str]:
    return [one["name"] for one in (container.get("resources") or {}).get("claims") or ()]


WITH_PODS = ("Pod", "Job", "Deployment", "ReplicaSet", "StatefulSet", "DaemonSet")


DEFECTS: Defects = {
    "accepts-pod-claim-without-source": overlooks(
        r"spec\.resourceClaims.*must specify", *WITH_PODS, at=(NEW,)
    ),
    "ignores-unknown-fields-of-pod-claims": ignores_unknown_fields("resourceClaims"),
    "sources-of-later-pod-claims-are-not-checked": overlooks(
        r"spec\.resourceClaims\[1\].*ust specify", *WITH_PODS, at=(NEW,)
    ),
    "containers-name-requests-of-claims-that-they-have": overlooks(
        r"\.resources\.claims.*Duplicate", "Pod", when=_names_whole_claim_first
    ),
    "gated-pods-can-be-bound": _binds_gated_pods,
    **table(
        "Pod",
        {
            "takes-pod-claims-twice": (_ENTRY + r"\.name$", "Duplicate"),
            "takes-any-claim-name-in-pods": (_ENTRY + r"\.resourceClaimName$", ""),
            "takes-any-template-name-in-pods": (_ENTRY + r"\.resourceClaimTemplateName$", ""),
            "takes-unknown-claims-of-containers": (_CLAIMS, "must be one of the names"),
            "takes-unknown-claims-of-init-containers": (_INIT, "must be one of the names"),
            "takes-claims-of-containers-twice": (_CLAIMS, "Duplicate"),
            "takes-claims-of-containers-without-name": (_CLAIMS, "Required"),
            "takes-any-request-of-containers": (_CLAIMS + r".*request$", ""),
            "takes-claims-of-static-pods": (r"^\[\]$", "static pods"),
            "takes-any-entry-in-pod-status": (r"^status\.resourceClaimS.*name$", "must match"),
            "takes-entries-of-pod-status-twice": (r"^status\.resourceClaimS", "Duplicate"),
            "takes-any-claim-in-pod-status": (r"^status\.resourceClaimS.*ClaimName$", ""),
            "takes-extended-claims-of-nothing": (r"^status\.ext.*Mappings$", "Required"),
            "takes-extended-claims-of-any-container": (r"^status\.ext.*containerName$", ""),
            "takes-extended-claims-of-any-resource": (r"^status\.ext.*resourceName$", ""),
            "takes-extended-claims-without-name": (r"^status\.ext.*ClaimName$", "Required"),
        },
    ),
    "takes-any-template-of-deployments": overlooks("template", "Deployment"),
    "changes-claims-of-pods": _changes("resourceClaims"),
    "changes-claims-of-containers": _changes("containers", "resources", "claims"),
    "old-clients-lose-claims-of-pods": _forgets("resourceClaimStatuses"),
    "old-clients-lose-extended-claims": _forgets("extendedResourceClaimStatus"),
    "refuses-one-claim-under-two-names": refuses(
        lambda pod: (
            len({c["resourceClaimName"] for c in _claims(pod) if "resourceClaimName" in c})
            < sum("resourceClaimName" in claim for claim in _claims(pod))
        ),
        "Pod",
        at=(NEW, CHANGED),
    ),
    "refuses-two-requests-of-one-claim": refuses(
        lambda pod: any(len(n) > len({*n}) for n in map(_names, pod["spec"]["containers"])),
        "Pod",
        at=(NEW, CHANGED),
    ),
    "refuses-claims-of-init-containers": refuses(
        lambda pod: any(map(_names, pod["spec"].get("initContainers") or ())),
        "Pod",
        at=(NEW, CHANGED),
    ),
}
