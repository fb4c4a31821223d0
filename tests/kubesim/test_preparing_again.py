"""What the reference's kubelet asks a driver for, and asks for again, as a real one does."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.targets.reference.scope import ReferenceScope
from conformance.targets.reference.target import ReferenceTarget
from kube.observations import PREPARED, sum_samples
from kube.values import Obj, Query
from kubesim.nodes.driver import DriverError
from tests.kubesim import kit
from tests.mutants.replacing import replace

NODE = "reference-node-0"
FETCH = 'fetch ResourceClaim {0}: resourceclaims.resource.k8s.io "{0}" not found'


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
        name = self._names[uid]
        self.unprepare.append(name)
        if name in self.refused:
            raise DriverError("no")
        return original(uid)


def use(scope: ReferenceScope, pod: str, *claims: str) -> None:
    entries = {f"c{number}": claim for number, claim in enumerate(claims)}
    scope.create(kit.pod(pod, kit.container("ctr0", *entries), claims=entries))


def prepared(scope: ReferenceScope) -> float:
    found = scope.observe.samples("kubelet", PREPARED, NODE)
    assert found is not None
    return sum_samples(found, {"driver_name": kit.DRIVER})


PREPARE_EVENT = "FailedPrepareDynamicResources"
NOT_PREPARED = "Failed to prepare dynamic resources: prepare dynamic resources: "


@pytest.mark.parametrize("refused", ["a", "b"])
def test_after_a_refusal_all_claims_of_the_pod_are_asked_for_again(
    target: ReferenceTarget, scope: ReferenceScope, refused: str
) -> None:
    asked = Asked(target, refused)
    scope.create(kit.claim("a"))
    scope.create(kit.claim("b"))
    use(scope, "p", "a", "b")
    assert asked.prepare == ["a", "b"]
    assert prepared(scope) == 0
    assert kit.events(scope, PREPARE_EVENT) == [
        f"{NOT_PREPARED}NodePrepareResources failed for ResourceClaim {refused}: no"
    ]
    [status] = kit.get(scope, kit.pod_ref("p"))["status"]["containerStatuses"]
    assert status["state"] == {"waiting": {"reason": "ContainerCreating"}}
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


def test_while_a_claim_cannot_be_unprepared_its_pod_runs_without_containers_and_no_event_says_why(
    target: ReferenceTarget, scope: ReferenceScope
) -> None:
    asked = Asked(target)
    scope.create(kit.claim("a"))
    scope.create(kit.claim("b"))
    use(scope, "p", "a", "b")
    kit.runs(scope, "p")
    said = len(scope.find(Query("v1", "Event")))
    asked.refused.add("a")
    scope.delete(kit.pod_ref("p"), grace_seconds=1)
    scope.pause(2)
    assert asked.unprepare == ["a", "b"]
    status = kit.get(scope, kit.pod_ref("p"))["status"]
    assert status["phase"] == "Running"
    assert "terminated" in status["containerStatuses"][0]["state"]
    use(scope, "q", "b")
    assert kit.events(scope, PREPARE_EVENT) == [
        f"{NOT_PREPARED}ResourceClaim b is being unprepared"
    ]
    assert len(scope.find(Query("v1", "Event"))) == said + 2  # q's: scheduled, and not prepared
    asked.refused.clear()
    kit.gone(scope, kit.pod_ref("p"))
    assert asked.unprepare[2:] == ["a", "b"]
    kit.runs(scope, "q")


def on_node(**pod_claims: str) -> Obj:
    """A pod that got its node without a scheduler."""
    return kit.pod("p", claims=pod_claims, nodeName=NODE)


@pytest.mark.parametrize(
    ("claim", "pod", "message"),
    [
        (None, on_node(g="nope"), FETCH.format("nope")),
        (
            None,
            kit.pod("p", templates={"g": "nope"}, nodeName=NODE),
            'pod "ns/p": ResourceClaim not created yet',
        ),
        (
            kit.claim("c"),
            on_node(g="c"),
            "pod p (POD) is not allowed to use ResourceClaim c (CLAIM)",
        ),
    ],
    ids=["missing", "not yet made", "not reserved"],
)
def test_kubelet_says_why_it_cannot_prepare(
    scope: ReferenceScope, claim: Obj | None, pod: Obj, message: str
) -> None:
    claim_uid = "" if claim is None else scope.create(claim)["metadata"]["uid"]
    pod_uid = scope.create(pod)["metadata"]["uid"]
    message = message.replace("POD", pod_uid).replace("CLAIM", claim_uid)
    assert kit.events(scope, PREPARE_EVENT) == [NOT_PREPARED + message]
