"""ResourceSlices as the API server accepts them."""

from __future__ import annotations

import pytest

from nvml_driver.inventory import Attribute, Gpu, Inventory
from nvml_driver.slices import quantity, resource_slices, slice_name


def inventory(count: int) -> Inventory:
    return Inventory(
        simulated=True,
        devices=tuple(
            Gpu(
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
    assert quantity(count) == written


def test_a_slice_name_is_a_dns_subdomain_however_long_the_node_name() -> None:
    long = ".".join(["a" * 60] * 4)
    names = {slice_name("gpu.nvidia.com", long, index) for index in range(3)}
    assert len(names) == 3
    assert all(len(name) <= 253 for name in names)
