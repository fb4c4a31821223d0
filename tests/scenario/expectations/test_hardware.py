"""``hardware``: the tool's answer against the slice."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from conformance.scenario.driver.profile import load_profile
from conformance.scenario.expectations.base import Cluster
from conformance.scenario.expectations.container_hardware import HardwareExpectation
from kube.observations import ContainerView
from kube.simulated import MARK
from tests.scenario.shipped import ROOT

PROFILE = load_profile("nvml-dra-driver", ROOT / "drivers")
POD = {
    "metadata": {"name": "pod0"},
    "spec": {
        "nodeName": "n0",
        "containers": [{"name": "ctr0", "resources": {"claims": [{"name": "gpu"}]}}],
    },
}
RESULT = {"driver": PROFILE.driver, "pool": "n0", "device": "gpu-0", "request": "gpu"}
ASKED = ["uuid", "productName", "memory"]


def seen(
    answer: str | None,
    *,
    memory: str = "15Gi",
    simulated: bool = False,
    share: str = "",
    **more: Any,
) -> str:
    """What the expectation says of an answer to the query, "as described" if it is right."""
    attributes: dict[str, Any] = {"uuid": {"string": "GPU-a"}, "productName": {"string": "T4"}}
    if simulated:
        attributes["dra-conformance.dev/simulated"] = {"bool": True}
    device = {"name": "gpu-0", "attributes": attributes, "capacity": {"memory": {"value": memory}}}
    spec = {"driver": PROFILE.driver, "pool": {"name": "n0"}, "devices": [device]}
    claim = {"status": {"allocation": {"devices": {"results": [RESULT | {"shareID": share}]}}}}
    outputs = {} if answer is None else {"query": answer}
    cluster = SimpleNamespace(
        profile=PROFILE,
        observe=SimpleNamespace(container=lambda _pod, _container: ContainerView({}, (), outputs)),
        get=lambda _kind, _name: POD,
        claim_of=lambda _pod, _claim: claim,
        find=lambda _selector: [{"spec": spec}],
    )
    wanted = {"seenBy": ["pod0/ctr0"], "command": "query", **(more or {"agrees": ASKED})}
    expectation = HardwareExpectation.model_validate({"hardware": wanted})
    found = expectation.evaluate(cast("Cluster", cluster))
    assert found.final
    assert found.holds == (found.finding == "as described")
    return found.finding


def test_what_is_published_is_what_is_shown() -> None:
    assert seen("GPU-a, T4, 15360 MiB, Default\n") == "as described"


@pytest.mark.parametrize("memory", ["15Gi", "16106127359", "15361M"])
def test_tools_round(memory: str) -> None:
    shown = "14649 MiB" if memory == "15361M" else "15360 MiB"
    assert seen(f"GPU-a, T4, {shown}, Default", memory=memory) == "as described"


@pytest.mark.parametrize(
    "answer",
    [
        "GPU-b, T4, 15360 MiB, Default",
        "GPU-a, T400, 15360 MiB, Default",
        "GPU-a, T4, 15362 MiB, Default",
        "GPU-a, T4, [N/A] MiB, Default",
        "GPU-a, T4, 15360 MiB, Default\nGPU-b, T4, 15360 MiB, Default",
        "sh: nvidia-smi: not found",
        "",
    ],
)
def test_anything_else_is_told_with_the_answer(answer: str) -> None:
    found = seen(answer)
    assert f"shows {answer!r}" in found or "shows nothing" in found
    assert "'uuid': 'GPU-a'" in found


def test_a_container_that_asks_nothing_shows_nothing() -> None:
    assert seen(None) == "pod0/ctr0 does not run the probe of this tier"
    assert seen(None, count=0) == "pod0/ctr0 does not run the probe of this tier"


def test_simulated_devices_must_be_published_as_such() -> None:
    answer = f"{MARK}\nGPU-a, T4, 15360 MiB, Default"
    assert seen(answer, simulated=True) == "as described"
    assert "shows simulated devices that the ResourceSlices call real" in seen(answer)


def test_devices_in_common() -> None:
    one = "GPU-a, T4, 15360 MiB, Default"
    both = ["pod0/ctr0", "pod0/ctr1"]
    assert seen(one, seenBy=both, relation="same", count=1) == "as described"
    assert seen(one, seenBy=both, relation="different").startswith("not different devices")
    assert seen("", seenBy=both, relation="same").startswith("not same devices")
    # Of a device that may be shared each may have a share.
    twice = ["pod0/ctr0", "pod1/ctr0"]
    assert seen(one, share="s", seenBy=twice, relation="different") == "as described"
