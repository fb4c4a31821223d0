"""ResourceQuota on the reference: what counts, and what is refused."""

from __future__ import annotations

import pytest

from conformance.targets.reference.scope import ReferenceScope
from kube.errors import ApiError
from kube.values import Obj, Ref
from tests.kubesim import kit

DEVICES = f"{kit.CLASS}.deviceclass.resource.k8s.io/devices"
QUOTA = Ref("v1", "ResourceQuota", "q")


def quota(scope: ReferenceScope, **hard: int) -> None:
    limits = {DEVICES if name == "devices" else name: str(value) for name, value in hard.items()}
    meta = {"name": "q"}
    obj = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": meta, "spec": {"hard": limits}}
    scope.create(obj)


def test_what_is_over_the_quota_is_refused_in_the_words_of_kubernetes(
    scope: ReferenceScope,
) -> None:
    quota(scope, devices=3)
    scope.create(kit.claim("c", kit.request(count=2)))
    with pytest.raises(ApiError) as error:
        scope.create(kit.claim("d", kit.request(count=2)))
    assert (error.value.code, error.value.reason) == (403, "Forbidden")
    assert error.value.message == (
        'resourceclaims.resource.k8s.io "d" is forbidden: exceeded quota: q,'
        f" requested: {DEVICES}=2, used: {DEVICES}=2, limited: {DEVICES}=3"
    )
    scope.create(kit.claim("e"))


def test_a_quota_limits_nothing_before_its_status_says_what(scope: ReferenceScope) -> None:
    scope.faults.disturb("kube-controller-manager", "stop")
    quota(scope, devices=1)
    scope.create(kit.claim("c", kit.request(count=2)))
    scope.faults.disturb("kube-controller-manager", "start")
    with pytest.raises(ApiError, match="exceeded quota"):
        scope.create(kit.claim("d"))


@pytest.mark.parametrize(
    ("init", "devices"),
    [
        ({}, 2),
        ({"first": 3}, 3),
        ({"sidecar": 1}, 3),
        ({"first": 3, "sidecar": 1}, 3),
        ({"sidecar": 1, "last": 3}, 4),
    ],
    ids=str,
)
def test_a_pod_counts_with_what_its_containers_have_at_one_time(
    scope: ReferenceScope, init: dict[str, int], devices: int
) -> None:
    def wants(name: str, count: int) -> Obj:
        more: Obj = {"restartPolicy": "Always"} if name == "sidecar" else {}
        return kit.container(name, resources={"limits": {"example.com/gpu": str(count)}}, **more)

    quota(scope, **{"requests.example.com/gpu": 10})
    init_containers = [wants(name, count) for name, count in init.items()]
    scope.create(kit.pod("p", wants("a", 2), initContainers=init_containers))
    used = kit.get(scope, QUOTA)["status"]["used"]
    assert used == {"requests.example.com/gpu": str(devices)}
