"""What the reference's kubelet asks a driver for, and asks for again, as a real one does."""

from __future__ import annotations

from typing import Any

from conformance.targets.reference.scope import ReferenceScope
from conformance.targets.reference.target import ReferenceTarget
from kube.observations import PREPARED, sum_samples
from kube.values import Obj, Query
from kubesim.nodes.driver import DriverError
from tests.kubesim import kit
from tests.mutants.replacing import replace

NODE = "reference-node-0"


class Asked:
    """What the node's driver was asked for, by the names of claims; it refuses some of them."""

    def __init__(self, target: ReferenceTarget, *refused: str) -> None:
        self.refused = set(refused)
        self.prepare: list[str] = []
        self.unprepare: list[str] = []
        self._names: dict[str, str] = {}
        [kubelet] = target.world.kubelets
        assert kubelet.driver is not None
        replace(kubelet.driver.prepare, self._prepare)
        replace(kubelet.driver.unprepare, self._unprepare)

    def _prepare(self, original: Any, claim: Obj) -> Any:
        name = claim["metadata"]["name"]
        self._names[claim["metadata"]["uid"]] = name
        self.prepare.append(name)
        if name in self.refused:
            raise DriverError("no")
        return original(claim)

    def _unprepare(self, original: Any, uid: str) -> Any:
        self.unprepare.append(self._names[uid])
        return original(uid)


def use(scope: ReferenceScope, pod: str, *claims: str) -> None:
    entries = {f"c{number}": claim for number, claim in enumerate(claims)}
    scope.create(kit.pod(pod, kit.container("ctr0", *entries), claims=entries))


def prepared(scope: ReferenceScope) -> float:
    found = scope.observe.samples("kubelet", PREPARED, NODE)
    assert found is not None
    return sum_samples(found, {"driver_name": kit.DRIVER})


def test_after_a_refusal_all_claims_of_the_pod_are_asked_for_again(
    target: ReferenceTarget, scope: ReferenceScope
) -> None:
    asked = Asked(target, "b")
    scope.create(kit.claim("a"))
    scope.create(kit.claim("b"))
    use(scope, "p", "a", "b")
    assert asked.prepare == ["a", "b"]
    assert prepared(scope) == 0
    asked.refused.clear()
    kit.runs(scope, "p")
    assert asked.prepare == ["a", "b", "a", "b"]
    assert prepared(scope) == 2 == scope.observe.claims_in_use(NODE, kit.DRIVER)


def test_a_restarted_kubelet_asks_again_and_has_the_slices_published_again(
    target: ReferenceTarget, scope: ReferenceScope
) -> None:
    asked = Asked(target)
    scope.create(kit.claim("a"))
    use(scope, "p", "a")
    [before] = scope.find(Query("resource.k8s.io/v1", "ResourceSlice"))
    scope.faults.disturb("kubelet", "restart")
    use(scope, "q", "a")
    assert asked.prepare == ["a", "a"]
    [after] = scope.find(Query("resource.k8s.io/v1", "ResourceSlice"))
    assert after["spec"] == before["spec"]
    assert after["metadata"]["uid"] != before["metadata"]["uid"]
