"""Which of a driver's health services the checks take for the one that a kubelet watches."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from conformance.drivercheck.bench import Bench
from conformance.drivercheck.checks.health import _offered_versions

V1, V1ALPHA1 = "v1.DRAResourceHealth", "v1alpha1.DRAResourceHealth"


@pytest.mark.parametrize(
    ("supported", "offered"),
    [
        (["v1.DRAPlugin", V1ALPHA1, V1], [V1, V1ALPHA1]),
        ([V1, V1ALPHA1], [V1, V1ALPHA1]),
        ([V1ALPHA1, "v2.DRAResourceHealth"], [V1ALPHA1]),
    ],
)
def test_newest_comes_first_whatever_the_order_of_the_driver_is(
    supported: list[str], offered: list[str]
) -> None:
    driver = SimpleNamespace(info=SimpleNamespace(supported_versions=supported))
    bench = cast("Bench", SimpleNamespace(driver=driver))
    assert _offered_versions(bench) == offered
