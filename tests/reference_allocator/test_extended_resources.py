"""Extended resources: who provides them, and the claim that is made for a pod."""

from __future__ import annotations

from typing import Any

import pytest

from reference_allocator.api.defaulting import default_claim
from reference_allocator.api.reading import InputError
from reference_allocator.extended import (
    IMPLICIT_PREFIX,
    ExtendedClaim,
    classes_by_resource,
    extended_claim,
    is_extended_resource,
)
from tests.reference_allocator.builders import (
    Json,
    device_class,
    devices,
    node,
    picked,
    resource_slice,
    solve,
)

GPU = "example.com/gpu"
CLASSES = {GPU: "gpu", f"{IMPLICIT_PREFIX}gpu": "gpu", "example.com/nic": "nic"}


def provider(name: str, resource: str | None = None, created: str = "2026-01-01T00:00:00Z") -> Json:
    spec = {} if resource is None else {"extendedResourceName": resource}
    return {"metadata": {"name": name, "creationTimestamp": created}, "spec": spec}


def container(name: str, sidecar: bool = False, **amounts: str) -> Json:
    names = {
        "gpu": GPU,
        "nic": "example.com/nic",
        "fpga": "example.com/fpga",
        "implicit": f"{IMPLICIT_PREFIX}gpu",
    }
    requests = {names.get(key, key): amount for key, amount in amounts.items()}
    optional_fields = {"restartPolicy": "Always"} if sidecar else {}
    return {"name": name, "resources": {"requests": requests}, **optional_fields}


def pod(*containers: Json, init: tuple[Json, ...] = ()) -> Json:
    metadata = {"name": "p", "namespace": "default", "uid": "uid-p"}
    spec: Json = {"containers": list(containers)}
    if init:
        spec["initContainers"] = list(init)
    return {"metadata": metadata, "spec": spec}


def offering(**allocatable: str) -> Json:
    names = {"gpu": GPU}
    amounts = {names.get(key, key): amount for key, amount in allocatable.items()}
    return {**node(), "status": {"allocatable": amounts}}


def made(asking: Json, on: Json | None = None) -> ExtendedClaim:
    extended = extended_claim(asking, on or node(), CLASSES)
    assert extended is not None
    return extended


def wishes(found: ExtendedClaim) -> dict[str, int]:
    requests: list[dict[str, Any]] = found.claim["spec"]["devices"]["requests"]
    return {item["name"]: item["exactly"]["count"] for item in requests}


def users(found: ExtendedClaim) -> list[str]:
    return [f"{item['containerName']}={item['requestName']}" for item in found.mappings]


@pytest.mark.parametrize(
    ("name", "extended"),
    [
        (GPU, True),
        (f"{IMPLICIT_PREFIX}gpu", True),
        ("cpu", False),
        ("kubernetes.io/gpu", False),
        ("foo.kubernetes.io/gpu", False),
        ("requests.example.com/gpu", False),
        ("example.com/", False),
        ("Example.com/gpu", False),
        ("example.com/a/b", False),
        (f"example.com/{'x' * 64}", False),
    ],
)
def test_which_names_devices_can_stand_for(name: str, extended: bool) -> None:
    assert is_extended_resource(name) == extended


def test_every_class_provides_its_implicit_name() -> None:
    assert classes_by_resource([device_class("a")]) == {f"{IMPLICIT_PREFIX}a": "a"}


def test_of_several_classes_the_newest_provides_then_the_first_by_name() -> None:
    same = [provider("b", GPU), provider("a", GPU)]
    assert classes_by_resource(same)[GPU] == "a"
    newer = provider("c", GPU, "2026-01-02T00:00:00Z")
    assert classes_by_resource([newer, *same])[GPU] == "c"


def test_a_class_without_a_name_is_refused() -> None:
    with pytest.raises(InputError, match="required value"):
        classes_by_resource([{"metadata": {}}])


def test_each_container_has_a_request_named_by_its_place() -> None:
    asking = pod(container("a", cpu="1", gpu="2"), container("b", gpu="1", nic="3"))
    extended = made(asking)
    assert wishes(extended) == {
        "container-0-request-1": 2,
        "container-1-request-0": 1,
        "container-1-request-1": 3,
    }
    assert extended.claim["metadata"]["generateName"] == "p-extended-resources-"
    assert extended.claim["metadata"]["ownerReferences"][0]["controller"] is True
    assert [item["resourceName"] for item in extended.mappings] == [GPU, GPU, "example.com/nic"]


@pytest.mark.parametrize("amount", ["0", "500m"])
def test_nothing_or_a_fraction_is_no_request(amount: str) -> None:
    assert extended_claim(pod(container("a", gpu=amount)), node(), CLASSES) is None


def test_what_the_node_itself_has_is_left_to_the_node() -> None:
    asking = pod(container("a", gpu="1"))
    assert extended_claim(asking, offering(gpu="4"), CLASSES) is None
    assert wishes(made(asking, offering(gpu="0"))) == {"container-0-request-0": 1}


def test_an_init_container_reuses_the_devices_of_later_ones() -> None:
    extended = made(pod(container("main", gpu="2"), init=(container("init", gpu="2"),)))
    assert wishes(extended) == {"container-1-request-0": 2}
    assert users(extended) == ["main=container-1-request-0", "init=container-1-request-0"]


def test_an_init_container_asks_only_for_what_is_missing() -> None:
    extended = made(pod(container("main", gpu="2"), init=(container("init", gpu="5"),)))
    assert wishes(extended) == {"container-0-request-0": 3, "container-1-request-0": 2}
    assert users(extended) == [
        "main=container-1-request-0",
        "init=container-1-request-0",
        "init=container-0-request-0",
    ]


def test_a_sidecar_keeps_its_devices_and_earlier_ones_are_not_reused() -> None:
    init = (container("side", sidecar=True, gpu="1"), container("late", gpu="1"))
    extended = made(pod(container("main"), init=init))
    assert wishes(extended) == {"container-0-request-0": 1, "container-1-request-0": 1}


def test_init_containers_share_the_largest_of_their_requests() -> None:
    init = (container("one", gpu="1"), container("three", gpu="3"), container("two", gpu="2"))
    extended = made(pod(container("main"), init=init))
    assert wishes(extended) == {"container-1-request-0": 3}
    assert users(extended) == [f"{name}=container-1-request-0" for name in ("one", "three", "two")]


def test_the_claim_can_be_allocated() -> None:
    extended = made(pod(container("a", gpu="1"), container("b", implicit="2")))
    claim = default_claim({**extended.claim, "metadata": {"name": "x", "uid": "u"}})
    outcome = solve([resource_slice(devices(3))], claim)
    assert picked(outcome) == [
        "container-0-request-0=dev-0",
        "container-1-request-0=dev-1",
        "container-1-request-0=dev-2",
    ]
