"""Situations of pods and claims in which a fault of the reference can show."""

from __future__ import annotations

from conformance.targets.base import Obj
from conformance.targets.reference.scope import ReferenceScope
from tests.targets.reference import kit

CONFIG = [
    {
        "opaque": {
            "driver": kit.DRIVER,
            "parameters": {
                "apiVersion": "resource.nvidia.com/v1beta1",
                "kind": "GpuConfig",
                "sharing": {"strategy": "TimeSlicing"},
            },
        }
    }
]
NEVER = [{"cel": {"expression": "false"}}]


def run(scope: ReferenceScope, claim: Obj, seconds: float = 10) -> Obj:
    """A pod with one claim, after some time; returns the claim."""
    scope.create(claim)
    name = claim["metadata"]["name"]
    scope.create(kit.pod(name, claims={"g": name}))
    scope.pause(seconds)
    return kit.get(scope, kit.claim_ref(name))


def after_deletion(scope: ReferenceScope) -> Obj:
    run(scope, kit.claim("c"))
    scope.delete(kit.pod_ref("c"))
    scope.pause(60)
    return kit.get(scope, kit.claim_ref("c"))


def generated(scope: ReferenceScope) -> list[Obj]:
    scope.create(kit.template("t"))
    for name in ("a", "b"):
        scope.create(kit.pod(name, templates={"g": "t"}))
    scope.pause(10)
    assert kit.phase(scope, "a") == "Running"
    return kit.claims_of(scope)


def shared(scope: ReferenceScope) -> None:
    """Two pods, first and second, with the claim c."""
    scope.create(kit.claim("c"))
    for name in ("first", "second"):
        scope.create(kit.pod(name, claims={"g": "c"}))
    scope.pause(10)


def goes_on_after(scope: ReferenceScope, pod: Obj, *late: Obj) -> bool:
    """Whether a pod runs once what it waits for was created."""
    scope.create(pod)
    scope.pause(10)
    assert kit.phase(scope, "p") == "Pending"
    for obj in late:
        scope.create(obj)
    scope.pause(60)
    return "nodeName" in kit.get(scope, kit.pod_ref("p"))["spec"]
