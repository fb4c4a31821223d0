"""What another minor treats otherwise is found in objects, and named with what to do."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from conformance.scenario.minor_changes import load_changes
from conformance.scenario.upgrades import selectors
from conformance.scenario.upgrades.finding import check_upgrade, find_problems, list_objects
from kube.base.errors import UsageError
from reference_allocator.features import Features
from tests.scenario.shipped import shipped

ROOT = Path(__file__).parents[2]
Obj = dict[str, Any]
DRIVER = "d.example.com"


def dra(kind: str, name: str, spec: Obj, version: str = "v1") -> Obj:
    metadata = {"name": name, "namespace": "ns"} if "Claim" in kind else {"name": name}
    return {
        "apiVersion": f"resource.k8s.io/{version}",
        "kind": kind,
        "metadata": metadata,
        "spec": spec,
    }


def published(*devices: Obj) -> Obj:
    return dra("ResourceSlice", "s", {"driver": DRIVER, "devices": list(devices)})


def template(*requests: Obj, **devices: Any) -> Obj:
    return dra(
        "ResourceClaimTemplate", "t", {"spec": {"devices": {"requests": requests, **devices}}}
    )


def version(text: str) -> Obj:
    return {"name": f"d-{len(text)}", "attributes": {"v": {"version": text}}}


def exactly(**more: Any) -> Obj:
    return {"name": "r", "exactly": {"deviceClassName": "c", **more}}


def consuming(amount: str) -> Obj:
    devices = {"results": [{"consumedCapacity": {"x": amount}}]}
    claim = dra("ResourceClaim", "shares", {"devices": {"requests": []}})
    return {**claim, "status": {"allocation": {"devices": devices}}}


UNREADABLE = "99999999999999999999.0.0"
KIND_CLUSTER = {"kind": "Cluster", "featureGates": {"DynamicResourceAllocation": True}}

GONE = "DynamicResourceAllocation"
FULL_NAME: Obj = {"name": "full", "capacity": {f"{DRIVER}/x": {"value": "80"}}}
OTHER_DRIVER = dra("ResourceSlice", "o", {"driver": "other.example.com"})
CLASS_OF_DRIVER = dra(
    "DeviceClass", "c", {"selectors": [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}]}
)


def pod(*command: str, **fields: Any) -> Obj:
    container = {"name": "c", "image": "i", "command": list(command), **fields}
    return {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [container]}}


KUEUE = pod("/manager", f"--feature-gates={GONE}=true", image="registry.k8s.io/kueue/kueue:v0.17.0")
KUEUE_CONFIGURATION = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "data": {
        "x.yaml": f"apiVersion: config.kueue.x-k8s.io/v1beta2\nfeatureGates: {{{GONE}: true}}"
    },
}

FOUND: dict[str, tuple[list[Obj], list[tuple[str, str]]]] = {
    "gates of a configuration": (
        [{"kind": "KubeletConfiguration", "featureGates": {"DRAPartitionableDevices": False}}],
        [("gate-cannot-be-set", "$.featureGates")],
    ),
    "gates of kind": ([KIND_CLUSTER], [("gate-cannot-be-set", "$.featureGates")]),
    "gates of a flag": (
        [
            {
                "kind": "Pod",
                "metadata": {"name": "kube-scheduler"},
                "spec": {
                    "containers": [
                        {
                            "command": [
                                "x",
                                "--feature-gates=A=true,DRADeviceBindingConditions=false",
                            ]
                        }
                    ]
                },
            }
        ],
        [("gate-cannot-be-set", "$.spec.containers[0].command[1]")],
    ),
    "an API version": (
        [dra("ResourceClaim", "c", {"devices": {"requests": []}}, "v1beta1")],
        [("api-version-not-served", "apiVersion")],
    ),
    "a name with two slashes": (
        [published({"name": "d", "capacity": {"a/b/c": {"value": "1"}}})],
        [("refused-when-written", "spec.devices[0].capacity")],
    ),
    "a template of which no claim can be made": (
        [template(exactly(capacity={"requests": {"x": "-1"}}))],
        [("refused-when-written", "spec.spec.devices.requests[0].exactly.capacity.requests[x]")],
    ),
    "versions that differ in build metadata": (
        [
            published(version("1.0.0+a"), version("1.0.0+bb")),
            template(exactly(), constraints=[{"distinctAttribute": f"{DRIVER}/v"}]),
        ],
        [("build-metadata-ignored", "spec.spec.devices.constraints[0].distinctAttribute")],
    ),
    "versions that differ in more": (
        [
            published(version("1.0.0+a"), version("1.1.0+bb")),
            template(exactly(), constraints=[{"distinctAttribute": f"{DRIVER}/v"}]),
        ],
        [],
    ),
    "a version that no scheduler can read": (
        [published(version(UNREADABLE))],
        [
            ("refused-when-written", "spec.devices[0].attributes[v].version"),
            ("unreadable-value", "spec.devices[0].attributes[v]"),
        ],
    ),
    "a capacity by its other name": (
        [
            published({"name": "d", "capacity": {"x": {"value": "1"}}}),
            template(exactly(capacity={"requests": {f"{DRIVER}/x": "1"}})),
        ],
        [
            (
                "capacity-by-either-name",
                f"spec.spec.devices.requests[0].exactly.capacity.requests[{DRIVER}/x]",
            )
        ],
    ),
    "a capacity by its other name, of another class's driver": (
        [
            published({"name": "d", "capacity": {"x": {"value": "1"}}}),
            {**OTHER_DRIVER, "spec": {**OTHER_DRIVER["spec"], "devices": [FULL_NAME]}},
            CLASS_OF_DRIVER,
            template(exactly(capacity={"requests": {"x": "1"}})),
        ],
        [],
    ),
    "a capacity by its other name, of some devices": (
        [
            published({"name": "d", "capacity": {"x": {"value": "1"}}}, FULL_NAME),
            template(exactly(capacity={"requests": {"x": "10"}})),
        ],
        [
            (
                "capacity-by-either-name",
                "spec.spec.devices.requests[0].exactly.capacity.requests[x]",
            )
        ],
    ),
    "a capacity by both its names": (
        [
            published({"name": "d", "capacity": {"x": {"value": "1"}, **FULL_NAME["capacity"]}}),
            template(exactly(capacity={"requests": {"x": "1", f"{DRIVER}/x": "1"}})),
        ],
        [("capacity-by-either-name", "spec.spec.devices.requests[0].exactly.capacity.requests")],
    ),
    "versions that differ in build metadata from node to node": (
        [
            {**item, "spec": {**item["spec"], "nodeName": f"n-{number}"}}
            for number, item in enumerate(map(published, map(version, ("1.0.0+a", "1.0.0+bb"))))
        ]
        + [template(exactly(count=2), constraints=[{"matchAttribute": f"{DRIVER}/v"}])],
        [],
    ),
    "gates of kubeadm's arguments, in a list": (
        [
            {
                "apiVersion": "kubeadm.k8s.io/v1beta4",
                "kind": "ClusterConfiguration",
                "scheduler": {"extraArgs": [{"name": "feature-gates", "value": f"{GONE}=True"}]},
            }
        ],
        [("gate-cannot-be-set", "$.scheduler.extraArgs[0].value")],
    ),
    "gates of a flag and its argument": (
        [pod("kube-scheduler", "--feature-gates", f"{GONE}=1")],
        [("gate-cannot-be-set", "$.spec.containers[0].command[2]")],
    ),
    "gates of a shell's command": (
        [pod("sh", "-c", f'exec kube-scheduler --feature-gates="{GONE}=true,A=false" --v=2')],
        [("gate-cannot-be-set", "$.spec.containers[0].command[2]")],
    ),
    "gates of a configuration in a ConfigMap": (
        [
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "data": {"kubelet": f"kind: KubeletConfiguration\nfeatureGates: {{{GONE}: true}}"},
            }
        ],
        [("gate-cannot-be-set", "$.data.kubelet")],
    ),
    "gates of which one needs the other": (
        [
            {
                "kind": "KubeletConfiguration",
                "featureGates": {"DRADeviceTaints": False, "DRADeviceTaintRules": False},
            }
        ],
        [("gate-cannot-be-set", "$.featureGates")] * 2,
    ),
    "a gate of the same name of another program": ([KUEUE, KUEUE_CONFIGURATION], []),
    "a selector that begins to match": (
        [
            published({**version(UNREADABLE), "attributes": {"v": {"version": "1.2"}}}),
            dra("DeviceClass", "c", {"selectors": [{"cel": {"expression": "true"}}]}),
        ],
        [
            ("selector-answers-otherwise", "spec.selectors[0].cel.expression"),
            ("unreadable-value", "spec.devices[0].attributes[v]"),
        ],
    ),
    "a selector that is accepted": (
        [
            dra(
                "DeviceClass",
                "c",
                {"selectors": [{"cel": {"expression": 'isIP(url("http://a").getPort())'}}]},
            )
        ],
        [("selector-answers-otherwise", "spec.selectors[0].cel.expression")],
    ),
    "a toleration without an effect": (
        [template({"name": "r", "firstAvailable": [{"name": "s", "tolerations": [{"key": "k"}]}]})],
        [
            (
                "empty-effect-tolerates",
                "spec.spec.devices.requests[0].firstAvailable[0].tolerations[0]",
            )
        ],
    ),
    "a rule about every device": (
        [dra("DeviceTaintRule", "r", {"deviceSelector": {}, "taint": {"key": "k"}})],
        [("empty-selector-warned", "spec.deviceSelector")],
    ),
    "a share of less than nothing": (
        [consuming("-1"), consuming("1"), consuming("a lot")],
        [("negative-shares", "status.allocation.devices.results[0].consumedCapacity[x]")],
    ),
    "what is no object of DRA": ([{"kind": "List"}, {"apiVersion": "v1", "kind": "Pod"}], []),
}


@pytest.mark.parametrize("name", FOUND)
def test_what_1_38_treats_otherwise_is_found(name: str) -> None:
    objects, expected = FOUND[name]
    problems = find_problems(objects, "1.37", "1.38")
    assert [(problem.change, problem.path) for problem in problems] == expected
    assert all(problem.advice and problem.text for problem in problems)


def test_each_row_that_can_be_found_is_found_once_at_least() -> None:
    found = {change for _, expected in FOUND.values() for change, _ in expected}
    assert found == {name for name, row in load_changes().items() if row.found}


def test_what_shows_a_change_is_there() -> None:
    scenarios = {item.id for item in shipped()}
    shown = {row.shown_by for row in load_changes().values()}
    assert [name for name in shown if name not in scenarios and not (ROOT / name).exists()] == []


LISTS = 'device.attributes["d.example.com"].l.includes("x")'


@pytest.mark.parametrize(
    ("features", "answers"),
    [
        (None, ["1.38 accepts it"]),
        (Features.all(), []),
        (replace(Features.for_version("1.37"), list_type_attributes=True), []),
    ],
)
def test_selectors_are_compared_by_the_gates_that_are_on(
    features: Features | None, answers: list[str]
) -> None:
    """DRAListTypeAttributes is off by default in 1.37, and on in 1.38."""
    device_class = dra("DeviceClass", "c", {"selectors": [{"cel": {"expression": LISTS}}]})
    problems = find_problems([device_class], "1.37", "1.38", features)
    assert [problem.text for problem in problems] == answers
    assert not find_problems([device_class], "1.36", "1.37", features)


def test_it_is_said_if_there_are_too_many_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selectors, "MAX_EVALUATIONS", 0)
    answer = '!(double("NaN") < 1.0) || device.attributes["d.example.com"].v == 1'
    devices = [{"name": f"d{n}", "attributes": {"v": {"int": n}}} for n in range(400)]
    device_class = dra("DeviceClass", "c", {"selectors": [{"cel": {"expression": answer}}]})
    told: list[str] = []
    objects = [device_class, published(*devices)]
    (problem,) = find_problems(objects, "1.37", "1.38", None, told.append)
    assert problem.text.startswith("100 devices, such as d0: error (NaN values cannot be ordered)")
    (line,) = told
    assert line.startswith("selectors were asked of 100 of 400 different devices only")


def test_what_an_earlier_minor_did_already_is_no_news() -> None:
    gates = {"kind": "KubeletConfiguration", "featureGates": {"DRAAdminAccess": False}}
    assert not find_problems([gates], "1.37", "1.38")
    (problem,) = find_problems([gates], "1.36", "1.37")
    assert problem.text.startswith("the feature gate DRAAdminAccess cannot be false")
    assert not find_problems(
        [published({"name": "d", "attributes": {"a/b/c": {}}})], "1.36", "1.37"
    )


@pytest.mark.parametrize(
    ("current", "target", "complaint"),
    [
        ("1.37.1", "1.38", ""),
        ("v1.34.4", "v1.38.0-beta.0", ""),
        ("1.37.1", "1.37", "is of Kubernetes 1.37 already"),
        ("1.37.1", "1.36.3", "is of Kubernetes 1.37 already"),
        ("1.37.1", "1.39", "known minors: 1.34"),
        ("1.37.1", "next", "known minors: 1.34"),
        ("", "1.38", "does not say which Kubernetes"),
    ],
)
def test_an_upgrade_that_cannot_be_is_refused_in_a_sentence(
    current: str, target: str, complaint: str
) -> None:
    if not complaint:
        assert check_upgrade(current, target)[1] == "1.38"
        return
    with pytest.raises(UsageError, match=complaint) as caught:
        check_upgrade(current, target)
    assert "\n" not in str(caught.value)


def test_the_objects_of_a_snapshot_have_kinds() -> None:
    snapshot = {"slices": [{"spec": {}}], "allocated": [{"metadata": {"name": "c"}}], "nodes": [{}]}
    assert [item["kind"] for item in list_objects(snapshot)] == ["ResourceSlice", "ResourceClaim"]
