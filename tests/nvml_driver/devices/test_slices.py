"""ResourceSlices as the API server accepts them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from nvml_driver.devices.slices import format_quantity, resource_slices, slice_name
from nvml_driver.model.inventory import (
    Attribute,
    CounterConsumption,
    CounterSet,
    Device,
    Inventory,
    Taint,
)
from tests.nvml_driver.published import problems


def inventory(count: int) -> Inventory:
    return Inventory(
        simulated=True,
        devices=tuple(
            Device(
                name=f"gpu-{minor}",
                minor=minor,
                uuid=None,
                attributes={"type": Attribute("string", "gpu")},
                capacity={},
            )
            for minor in range(count)
        ),
    )


def test_a_pool_is_split_at_128_devices_and_says_so_in_each_slice() -> None:
    slices = resource_slices(inventory(300), driver_name="d.io", node_name="n", generation=7)
    assert [len(slice_["spec"]["devices"]) for slice_ in slices] == [128, 128, 44]
    pool = {"name": "n", "generation": 7, "resourceSliceCount": 3}
    assert all(slice_["spec"]["pool"] == pool for slice_ in slices)
    assert len({slice_["metadata"]["name"] for slice_ in slices}) == 3
    names = [entry["name"] for slice_ in slices for entry in slice_["spec"]["devices"]]
    assert names == [f"gpu-{minor}" for minor in range(300)]


def test_no_devices_are_no_slice() -> None:
    assert resource_slices(inventory(0), driver_name="d.io", node_name="n") == []


@pytest.mark.parametrize(
    ("count", "written"),
    [(0, "0"), (1000, "1000"), (1024, "1Ki"), (15 * 2**30, "15Gi"), (3 * 2**29, "1536Mi")],
)
def test_quantities_are_canonical(count: int, written: str) -> None:
    assert format_quantity(count) == written


def test_a_slice_name_is_a_dns_subdomain_however_long_the_node_name() -> None:
    long = ".".join(["a" * 60] * 4)
    names = {slice_name("gpu.nvidia.com", long, index) for index in range(3)}
    assert len(names) == 3
    assert all(len(name) <= 253 for name in names)


def tainted(count: int, which: set[int]) -> Inventory:
    plain = inventory(count)
    taint = Taint("d.io/xid", "79", "NoSchedule", "2026-11-21T10:00:00Z")
    return plain.with_devices(
        tuple(
            replace(device, taints=(taint,)) if number in which else device
            for number, device in enumerate(plain)
        )
    )


@pytest.mark.parametrize(
    ("count", "which", "sizes"),
    [
        (64, set(range(64)), [64]),
        (65, {0}, [64, 1]),
        (128, {127}, [127, 1]),
        (129, {128}, [128, 1]),
        (200, {70}, [70, 64, 66]),
        (300, {299}, [128, 128, 44]),
    ],
)
def test_a_slice_with_a_taint_holds_64_devices(
    count: int, which: set[int], sizes: list[int]
) -> None:
    slices = resource_slices(tainted(count, which), driver_name="d.io", node_name="n")
    assert problems(slices) == []
    found = [len(slice_["spec"]["devices"]) for slice_ in slices]
    assert sum(found) == count
    assert found == sizes


def partitioned(gpus: int, parts: int) -> Inventory:
    counters = {"memory": parts, **{f"memory-slice-{n}": 1 for n in range(8)}}
    return Inventory(
        simulated=True,
        counter_sets=tuple(CounterSet(f"gpu-{n}-counter-set", counters) for n in range(gpus)),
        devices=tuple(
            Device(
                kind="mig-partition",
                name=f"gpu-{gpu}-mig-{part}",
                parent=f"gpu-{gpu}",
                minor=gpu,
                uuid=None,
                attributes={"type": Attribute("string", "mig")},
                capacity={"memory": 1},
                consumes_counters=(CounterConsumption(f"gpu-{gpu}-counter-set", {"memory": 1}),),
            )
            for gpu in range(gpus)
            for part in range(parts)
        ),
    )


@pytest.mark.parametrize(
    ("gpus", "parts", "count"), [(1, 1, 2), (8, 25, 9), (9, 25, 11), (16, 70, 34)]
)
def test_counter_sets_and_the_devices_of_each_gpu_have_slices_of_their_own(
    gpus: int, parts: int, count: int
) -> None:
    slices = resource_slices(partitioned(gpus, parts), driver_name="d.io", node_name="n")
    assert problems(slices) == []
    assert len(slices) == count
    for slice_ in slices:
        assert ("devices" in slice_["spec"]) != ("sharedCounters" in slice_["spec"])
        names = {d["name"].split("-mig-")[0] for d in slice_["spec"].get("devices", ())}
        assert len(names) <= 1


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda spec: spec["pool"].update(resourceSliceCount=2), "the number of slices is wrong"),
        (lambda spec: spec["devices"].append(spec["devices"][0]), "Duplicate value"),
        (lambda spec: spec["devices"][0].update(name="GPU_0"), "RFC 1123 label"),
        (
            lambda spec: spec["devices"][0]["attributes"].update(v={"version": "1.02.0"}),
            "semver.org",
        ),
        (
            lambda spec: spec["devices"][0]["attributes"].update({"a-b": {"int": 1}}),
            "valid C identifier",
        ),
        (
            lambda spec: spec["devices"][0]["attributes"].update(n={"int": True}),
            "expected an integer, got True",
        ),
        (
            lambda spec: spec["devices"][0]["attributes"].update(s={"string": "x" * 65}),
            "may not be more than 64 bytes",
        ),
        (
            lambda spec: spec["devices"][0]["attributes"].update(
                {f"a{n}": {"int": n} for n in range(32)}
            ),
            "attributes and capacities must not exceed 32",
        ),
        (
            lambda spec: spec["devices"][0]["attributes"].update(n={"ints": list(range(48))}),
            "attribute values must not exceed 48",
        ),
        (
            lambda spec: spec["devices"][0].update(
                consumesCounters=[{"counterSet": "c", "counters": {"x": {"value": "1"}}}]
            ),
            "counter set c not found",
        ),
        (
            lambda spec: spec["devices"][0].update(
                capacity={"memory": {"value": "4Mi", "requestPolicy": {"default": "8Mi"}}}
            ),
            "does not hold",
        ),
        (lambda spec: spec.update(devices=[]), "neither devices nor sharedCounters"),
    ],
)
def test_what_a_server_would_refuse_is_found(
    change: Callable[[dict[str, Any]], object], complaint: str
) -> None:
    slices = resource_slices(inventory(1), driver_name="d.io", node_name="n")
    assert problems(slices) == []
    change(slices[0]["spec"])
    assert complaint in "; ".join(problems(slices))
