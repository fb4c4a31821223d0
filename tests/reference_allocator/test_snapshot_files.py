"""Snapshots, features, defaults, and what is said about input of a wrong form."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from reference_allocator.allocator import Allocator
from reference_allocator.api import ResourceClaim, ResourceSlice
from reference_allocator.api.defaulting import default_claim
from reference_allocator.api.reading import InputError
from reference_allocator.features import Features
from reference_allocator.gates import MINORS, gates_for_version, minor_of
from reference_allocator.index import Index
from reference_allocator.snapshot import Snapshot
from tests.compare import cluster
from tests.reference_allocator.builders import (
    ALL,
    allocated,
    claim,
    device,
    device_class,
    make_snapshot,
    node,
    request,
    resource_slice,
)


def document() -> dict[str, Any]:
    snapshot = make_snapshot(
        [resource_slice([device("a", {"x": 1}, capacity={"mem": "1Gi"})])],
        [claim(request())],
        taken=[allocated("a")],
    )
    return snapshot.to_dict()


def test_a_snapshot_survives_a_file() -> None:
    written = json.loads(json.dumps(document()))
    assert Snapshot.from_dict(written).to_dict() == document()


def test_objects_of_a_snapshot_are_read_once_and_copies_of_them_anew() -> None:
    snapshot = Snapshot.from_dict(document())
    again = Snapshot.from_dict(snapshot.to_dict())
    (claim_object,), (slice_object,) = again.claims, again.slices
    assert ResourceClaim.from_dict(claim_object) is ResourceClaim.from_dict(snapshot.claims[0])
    assert ResourceSlice.from_dict(slice_object) is ResourceSlice.from_dict(snapshot.slices[0])
    renamed = {**claim_object, "metadata": {"name": "other"}}
    assert ResourceClaim.from_dict(renamed).name == "other"


def test_one_part_of_two_slices_is_read_once_while_a_snapshot_is_read() -> None:
    written = document()
    item = written["slices"][0]
    second = {**item, "metadata": {"name": "second"}, "spec": {**item["spec"], "driver": "b.com"}}
    read = Snapshot.from_dict({**written, "slices": [item, second]})
    first_devices, second_devices = (
        ResourceSlice.from_dict(entry).devices for entry in read.slices
    )
    assert first_devices[0] is second_devices[0]
    assert ResourceSlice.from_dict(second).devices[0] is not second_devices[0]


def test_a_snapshot_without_features_has_those_of_its_version() -> None:
    written = document()
    del written["features"]
    assert Snapshot.from_dict(written).features == Features.for_version("1.37")


def _set(path: str, value: object) -> Any:
    def change(source: dict[str, Any]) -> None:
        *parents, last = path.split("/")
        target: Any = source
        for key in parents:
            target = target[int(key) if key.isdigit() else key]
        target[int(last) if last.isdigit() else last] = value

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_set("kind", "Pod"), "$.kind: expected 'Snapshot', got 'Pod'"),
        (_set("apiVersion", "v2"), "$.apiVersion: expected 'dra-conformance/v1', got 'v2'"),
        (
            _set("secrets", []),
            (
                "$.secrets: unknown field; known are allocated, apiVersion, claims, deviceClasses, "
                "features, kind, kubernetes, nodes, pods, slices, templates"
            ),
        ),
        (_set("features/turbo", True), "$.features.turbo: unknown field; known are adminAccess, "),
        (_set("features/adminAccess", 1), "$.features.adminAccess: expected true or false, got 1"),
        (_set("slices", {}), "$.slices: expected a list, got an object"),
        (_set("slices/0", "x"), "$.slices[0]: expected an object, got 'x'"),
        (_set("slices/0/spec/driver", ""), "$.slices[0].spec.driver: required value"),
        (_set("slices/0/spec/pool/generation", "1"), "$.slices[0].spec.pool.generation: expected"),
        (
            _set("slices/0/spec/devices/0/attributes/x", {"int": "1"}),
            "$.slices[0].spec.devices[0].attributes.x.int: expected an integer, got '1'",
        ),
        (
            _set("slices/0/spec/devices/0/attributes/x", {"int": 1, "bool": True}),
            "$.slices[0].spec.devices[0].attributes.x: exactly one value must be specified",
        ),
        (
            _set("slices/0/spec/devices/0/attributes/x", {"ints": [1, 2**63]}),
            "$.slices[0].spec.devices[0].attributes.x.ints[1]: 9223372036854775808 does not fit",
        ),
        (
            _set("slices/0/spec/devices/0/capacity/mem", {"value": "1Xi"}),
            "$.slices[0].spec.devices[0].capacity.mem.value: '1Xi' is not a quantity: ",
        ),
        (
            _set(
                "claims/0/spec/devices/requests/0/exactly/selectors", [{"cel": {"expression": 1}}]
            ),
            "$.claims[0].spec.devices.requests[0].exactly.selectors[0].cel.expression: expected",
        ),
        (
            _set("nodes/0/metadata/labels", {"a": 1}),
            "$.nodes[0].metadata.labels.a: expected a string, got 1",
        ),
        (lambda it: it["slices"].append(it["slices"][0]), "$.slices[1]: slice is there twice"),
        (
            lambda it: it["allocated"].append(it["claims"][0]),
            "$.allocated[1]: default/claim is there twice",
        ),
    ],
)
def test_errors_name_the_path(change: Any, message: str) -> None:
    written = copy.deepcopy(document())
    change(written)
    with pytest.raises(InputError) as caught:
        Snapshot.from_dict(written)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize("value", [None, [], "x", 7, {"apiVersion": "x"}])
def test_what_is_no_snapshot_is_refused(value: object) -> None:
    with pytest.raises(InputError):
        Snapshot.from_dict(value)


def test_the_allocator_names_the_path_too() -> None:
    with pytest.raises(InputError, match=r"^\$\.slices\[0\]\.spec.pool.name: required value"):
        Allocator(Index(ALL, [{}], [], []))
    with pytest.raises(InputError, match=r"^\$\.claims\[1\]\.spec: expected an object"):
        Allocator(Index(ALL, [], [], [])).allocate(node(), [claim(), {"spec": 1}])
    with pytest.raises(InputError, match=r"^\$\.node: expected an object"):
        Allocator(Index(ALL, [], [], [])).allocate([], [])  # type: ignore[arg-type]


def test_names_that_are_no_words_are_quoted_in_paths() -> None:
    wrong = resource_slice([device("a")])
    wrong["spec"]["devices"][0]["attributes"] = {"a.example.com/x": 1}
    with pytest.raises(InputError) as caught:
        Allocator(Index(ALL, [wrong], [], []))
    assert caught.value.path == '$.slices[0].spec.devices[0].attributes["a.example.com/x"]'
    assert caught.value.message == "expected an object, got 1"


BETA_36 = set(
    """
    admin_access prioritized_list partitionable_devices device_taints
    device_binding_and_status consumable_capacity
""".split()
)


@pytest.mark.parametrize(
    ("version", "on"),
    [
        ("1.34", {"admin_access", "prioritized_list"}),
        ("v1.35.2", {"admin_access", "prioritized_list"}),
        ("1.36", BETA_36),
        ("1.37.1", BETA_36),
    ],
)
def test_features_of_a_version_are_its_defaults(version: str, on: set[str]) -> None:
    assert Features.for_version(version) == Features(**dict.fromkeys(on, True))


def test_gates_can_be_set_on_top_of_a_version() -> None:
    features = Features.for_version(
        "1.37", {"DRAListTypeAttributes": True, "DRADeviceTaints": False}
    )
    assert features.list_type_attributes
    assert not features.device_taints


def test_binding_conditions_need_both_gates() -> None:
    assert not Features.from_gates({"DRADeviceBindingConditions": True}).device_binding_and_status


def test_features_survive_a_file() -> None:
    assert Features.from_dict(ALL.to_dict()) == ALL
    assert "deviceBindingAndStatus" in ALL.to_dict()


def test_versions_that_are_not_known_are_refused() -> None:
    with pytest.raises(ValueError, match=r"'1\.33' is not supported; known minors: 1\.34, "):
        minor_of("1.33")


def test_every_minor_has_gates_with_a_stage() -> None:
    for minor in MINORS:
        gates = gates_for_version(minor)
        assert gates["DynamicResourceAllocation"].stage == "GA"
        assert all(gate.default for gate in gates.values() if gate.stage == "GA")
        assert not any(gate.default for gate in gates.values() if gate.stage == "Alpha")
    assert "DRADerivedAttributes" not in gates_for_version("1.36")
    assert gates_for_version("1.37")["DRAAdminAccess"].locked


def test_claims_are_defaulted_as_the_api_server_does() -> None:
    raw = {
        "metadata": {"name": "c"},
        "spec": {
            "devices": {
                "requests": [
                    {"name": "a", "exactly": {"deviceClassName": "g", "tolerations": [{}]}},
                    {"name": "b", "exactly": {"deviceClassName": "g", "allocationMode": "All"}},
                    {"name": "c", "firstAvailable": [{"name": "x", "deviceClassName": "g"}]},
                ]
            }
        },
    }
    raw_before = copy.deepcopy(raw)
    a, b, c = default_claim(raw)["spec"]["devices"]["requests"]
    assert a["exactly"] == {
        "deviceClassName": "g",
        "allocationMode": "ExactCount",
        "count": 1,
        "tolerations": [{"operator": "Equal"}],
    }
    assert b["exactly"] == {"deviceClassName": "g", "allocationMode": "All"}
    assert c["firstAvailable"][0]["count"] == 1
    assert raw == raw_before
    assert default_claim(default_claim(raw)) == default_claim(raw)


def test_a_device_class_without_a_spec_selects_everything() -> None:
    classes = [{"metadata": {"name": "gpu"}}]
    slices = [resource_slice([device("a")])]
    outcome = Allocator(Index(ALL, slices, classes, [])).allocate(node(), [claim(request())])
    assert outcome.kind == "allocated"
    assert device_class()["metadata"] == classes[0]["metadata"]


def test_what_is_taken_of_a_document_is_what_it_had() -> None:
    document = cluster.snapshot(pods=(cluster.pod(),), allocated=(cluster.allocated("c", "gpu-0"),))
    expected = Snapshot.from_dict(document).to_dict()
    assert Snapshot.take_dict(document).to_dict() == expected
    assert not any(document[key] for key in ("slices", "nodes", "allocated", "pods"))
    broken = {**expected, "nodes": [*expected["nodes"], 7]}
    with pytest.raises(InputError, match=r"\$\.nodes\[1\]: expected an object, got 7"):
        Snapshot.take_dict(broken)
