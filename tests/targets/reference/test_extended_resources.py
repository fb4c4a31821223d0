from __future__ import annotations

from typing import Any

import pytest

from conformance.targets.reference.scope import ReferenceScope
from conformance.targets.seam.values import Obj
from tests.targets.reference import kit
from tests.targets.reference.conftest import Open, new_scope

RESOURCE = "example.com/gpu"


@pytest.fixture
def gpus(scope: ReferenceScope) -> ReferenceScope:
    scope.create(kit.device_class("extended", extendedResourceName=RESOURCE))
    return scope


def wants(name: str, count: int, resource: str = RESOURCE, **more: Any) -> Obj:
    return kit.container(name, resources={"limits": {resource: count}}, **more)


def test_each_container_gets_its_devices_of_one_special_claim(gpus: ReferenceScope) -> None:
    pod = gpus.create(kit.pod("p", wants("a", 2), wants("b", 1), kit.container("c")))
    kit.runs(gpus, "p")
    assert len(kit.seen(gpus, "p", "a")) == 2
    assert len(kit.seen(gpus, "p", "b")) == 1
    assert not set(kit.seen(gpus, "p", "a")) & set(kit.seen(gpus, "p", "b"))
    assert kit.seen(gpus, "p", "c") == []

    [claim] = kit.claims_of(gpus)
    meta = claim["metadata"]
    assert meta["generateName"] == "p-extended-resources-"
    assert meta["annotations"] == {"resource.kubernetes.io/extended-resource-claim": "true"}
    assert meta["ownerReferences"][0]["uid"] == pod["metadata"]["uid"]
    assert meta["finalizers"] == ["resource.kubernetes.io/delete-protection"]
    exactly = {"deviceClassName": "extended", "allocationMode": "ExactCount"}
    assert claim["spec"]["devices"]["requests"] == [
        {"name": "container-0-request-0", "exactly": {**exactly, "count": 2}},
        {"name": "container-1-request-0", "exactly": {**exactly, "count": 1}},
    ]
    assert kit.get(gpus, kit.pod_ref("p"))["status"]["extendedResourceClaimStatus"] == {
        "resourceClaimName": meta["name"],
        "requestMappings": [
            {
                "containerName": name,
                "resourceName": RESOURCE,
                "requestName": f"container-{index}-request-0",
            }
            for index, name in enumerate(("a", "b"))
        ],
    }


def test_without_the_gate_the_field_is_dropped(open_target: Open) -> None:
    scope = new_scope(open_target(kubernetes_version="1.34.0"))
    created = scope.create(kit.device_class("extended", extendedResourceName=RESOURCE))
    assert "extendedResourceName" not in created["spec"]
    scope.create(kit.pod("p", wants("a", 1)))
    assert f"Insufficient {RESOURCE}" in kit.why_pending(scope, "p")


def test_claims_and_extended_resources_can_be_used_together(gpus: ReferenceScope) -> None:
    gpus.create(kit.claim("c"))
    gpus.create(kit.pod("p", wants("a", 1), kit.container("b", "g"), claims={"g": "c"}))
    kit.runs(gpus, "p")
    assert len(kit.seen(gpus, "p", "a")) == len(kit.seen(gpus, "p", "b")) == 1
    assert kit.seen(gpus, "p", "a") != kit.seen(gpus, "p", "b")
