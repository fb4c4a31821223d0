"""Scenarios and targets of the tests of the schedule."""

from __future__ import annotations

from typing import Any

from conformance.engine.schedule.needs import Needs
from conformance.engine.schedule.pools import NodePools
from conformance.scenario.loader import LoadedScenario
from conformance.seam.abilities import Ability
from conformance.seam.values import Capabilities, FreeDevices, OneDevice
from tests.engine.miniature import pod, scenario
from tests.targets.devices import PROFILE

SCHEDULED = {"expect": [{"pod": "p", "scheduled": True}]}
STEPS = ({"apply": [pod("p")]}, SCHEDULED)


def nodes(**devices: int) -> Capabilities:
    return Capabilities(
        "1.37.1",
        frozenset({"v1"}),
        frozenset({"allocation", "node"}),
        driver=PROFILE.driver,
        nodes=tuple(devices),
        abilities=frozenset({"fault:driver", "fault:etcd"}),
        free=FreeDevices(
            total=sum(devices.values()),
            by_node=devices,
            last_by_node={"a": OneDevice("gpu-3", "true")},
            abilities=frozenset({Ability.DISTINCT_DEVICES}),
        ),
        concurrent=True,
    )


ONE = NodePools.of(nodes(a=4))
THREE = NodePools.of(nodes(a=4, b=4, c=4))


def disrupting(component: str, name: str = "fault", **requires: Any) -> LoadedScenario:
    fault = {"fault": {"component": component}}
    return scenario(*STEPS, fault, name=name, tier="node", requires={"devices": 1, **requires})


def needs(loaded: LoadedScenario) -> Needs:
    return Needs.of(loaded.scenario.spec)
