"""What older Kubernetes minors do otherwise, and which CEL functions each has."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from reference_allocator.allocator import Allocator, Outcome
from reference_allocator.checks import check
from reference_allocator.environment import derived_environment, selector_environment
from reference_allocator.explain import explain
from reference_allocator.features import Features
from reference_allocator.gates import LATEST, MINORS, kubelet_gates, nearest_minor, scheduler_gates
from reference_allocator.index import Index
from reference_allocator.snapshot import Snapshot
from reference_allocator.wire import answer_allocate, answer_cel
from tests.reference_allocator.builders import (
    ALL,
    DRIVER,
    Json,
    allocated,
    claim,
    device,
    device_class,
    devices,
    first_available,
    make_snapshot,
    node,
    opaque,
    picked,
    request,
    resource_slice,
    rules,
    spec,
)

OLDER = MINORS[: MINORS.index(LATEST)]
ATTRIBUTES = 'device.attributes["gpu.example.com"]'
INCOMPLETE = [resource_slice(devices(2), slices=2)]


def decide(
    minor: str, slices: list[Json], wanted: Json, classes: list[Json] | None = None
) -> tuple[Outcome, set[str]]:
    """What a minor's allocator does, and which rules of that minor the checker finds broken."""
    classes = classes or [device_class()]
    allocator = Allocator(Index(ALL, slices, classes, [], kubernetes=minor))
    outcome = allocator.allocate(node(), [wanted])
    snapshot = replace(make_snapshot(slices, [wanted], classes=classes), kubernetes=minor)
    allocations = outcome.allocations
    return outcome, rules(check(snapshot, node(), [wanted], allocations)) if allocations else set()


@pytest.mark.parametrize(
    ("gates", "kubelet", "on"),
    [
        ({"DRAExtendedResource": True}, "1.36.3", True),
        ({"DRAExtendedResource": True}, "1.35.0", False),  # its default
        ({"ResourceHealthStatus": False}, "1.36.3", False),  # somebody has set it
        ({"DRANodeAllocatableResources": True}, "1.36.3", True),
        ({"DRANodeAllocatableResources": True}, "1.35.0", False),  # it does not know it
    ],
)
def test_an_older_kubelet_has_its_own_defaults_and_what_was_set(
    gates: dict[str, bool], kubelet: str, on: bool
) -> None:
    assert list(kubelet_gates("1.37.1", gates, kubelet).values()) == [on]


@pytest.mark.parametrize(
    ("gates", "scheduler", "on"),
    [
        ({"DRAFractionalCapacityRange": False}, "1.38.0-beta.0", True),  # its default
        ({"DRAFractionalCapacityRange": True}, "1.36.3", False),  # it does not know it
        ({"DRAPartitionableDevices": False}, "1.36.3", False),  # somebody has set it
        ({"DRAPartitionableDevices": False}, "1.38.0-beta.0", True),  # which cannot be done there
        ({"APIServerTracing": True}, "1.36.3", None),  # nothing of DRA
    ],
)
def test_a_scheduler_of_another_minor_has_its_own_gates(
    gates: dict[str, bool], scheduler: str, on: bool | None
) -> None:
    found = scheduler_gates("1.37.1", gates, scheduler)
    assert list(found.values()) == ([] if on is None else [on])


def config(minor: str, wanted: Json, classes: list[Json] | None = None) -> list[Any]:
    outcome, broken = decide(minor, [resource_slice(devices(3))], wanted, classes)
    assert broken == set()
    assert outcome.allocations is not None
    return [
        (item["source"], item.get("requests"))
        for item in outcome.allocations[0]["devices"]["config"]
    ]


def test_only_1_34_allocates_from_a_pool_whose_slices_are_not_all_there() -> None:
    outcome, broken = decide("1.34", INCOMPLETE, claim(request()))
    assert picked(outcome) == ["req=dev-0"]
    assert broken == set()
    for minor in MINORS[1:]:
        assert decide(minor, INCOMPLETE, claim(request()))[0].kind == "none"


def test_nobody_gets_all_devices_of_a_pool_whose_slices_are_not_all_there() -> None:
    for minor in MINORS:
        kind = decide(minor, INCOMPLETE, claim(request(everything=True)))[0].kind
        assert kind == ("nodeError" if minor == "1.38" else "error")


def test_all_devices_of_an_incomplete_pool_are_an_error_to_the_checker_of_1_34_too() -> None:
    outcome, _ = decide("1.34", [resource_slice(devices(2))], claim(request(everything=True)))
    wanted_claim = claim(request(everything=True))
    assert outcome.allocations is not None
    snapshot = replace(make_snapshot(INCOMPLETE, [wanted_claim]), kubernetes="1.34")
    assert "pool-incomplete" in rules(check(snapshot, node(), [wanted_claim], outcome.allocations))


def test_an_allocation_from_an_incomplete_pool_breaks_a_rule_of_later_minors() -> None:
    wanted_claim = claim(request())
    allocations = decide("1.34", INCOMPLETE, wanted_claim)[0].allocations
    assert allocations is not None
    snapshot = replace(make_snapshot(INCOMPLETE, [wanted_claim]), kubernetes="1.35")
    assert "pool-incomplete" in rules(check(snapshot, node(), [wanted_claim], allocations))


def test_one_request_gets_several_shares_of_a_device_until_1_35() -> None:
    """Read in allocateOne, and so answered by the allocators of v0.35.10 and v0.36.6."""
    shared = device("nic", shared=True)
    slices = [resource_slice([shared, device("other")])]
    wanted_claim = claim(request(count=2))
    for minor in MINORS:
        outcome, broken = decide(minor, slices, wanted_claim)
        second = "nic" if minor <= "1.35" else "other"
        assert (picked(outcome), broken) == (["req=nic", f"req={second}"], set())
    allocations = decide("1.35", slices, wanted_claim)[0].allocations
    later = replace(make_snapshot(slices, [wanted_claim]), kubernetes="1.36")
    assert "in-use" in rules(check(later, node(), [wanted_claim], allocations))


def test_an_amount_that_a_range_rounds_has_a_binary_suffix_until_1_36() -> None:
    amount = {"value": "8Gi", "requestPolicy": {"validRange": {"min": "0", "step": "3"}}}
    slices = [resource_slice([device("nic", capacity={"x": amount}, shared=True)])]
    wanted_claim = claim(request(capacity={"x": "1500Mi"}))
    for minor in MINORS:
        outcome, broken = decide(minor, slices, wanted_claim)
        (result,) = outcome.allocations[0]["devices"]["results"]
        text = "1500Mi" if minor <= "1.36" else "1572864k"
        assert (result["consumedCapacity"], broken) == ({"x": text}, set())


def test_an_invalid_pool_fails_the_pod_in_1_34_and_the_node_later() -> None:
    invalid = [resource_slice([device("twice"), device("twice")])]
    kinds = [decide(minor, invalid, claim(request()))[0].kind for minor in MINORS]
    assert kinds == ["error", "nodeError", "nodeError", "nodeError", "nodeError"]


def test_1_34_ends_where_it_comes_to_an_invalid_pool_though_another_choice_is_left() -> None:
    """Answered so by the allocator of v0.34.13; later ones take dev-1 for the first request."""
    twice = [device("twice"), device("twice")]
    slices = [
        resource_slice([device("dev-0", {"x": 1}), device("dev-1", {"x": 2})]),
        resource_slice(twice, name="invalid", pool="zz"),
    ]
    wanted_claim = claim(request("any"), request("first", 1, f"{ATTRIBUTES}.x == 1"))
    outcome = decide("1.34", slices, wanted_claim)[0]
    assert outcome.error == "pool zz is invalid: duplicate device name twice"
    assert picked(decide("1.35", slices, wanted_claim)[0]) == ["any=dev-1", "first=dev-0"]


def test_since_1_38_the_full_name_is_taken_of_two_for_one_attribute_or_capacity() -> None:
    """Answered so by v0.38.0-beta.0; v0.37.2 shows selectors one of the two at random."""
    full = f"{DRIVER}/x"
    twice = device("d", {"x": 1, full: 2}, capacity={"x": "1", full: "5"}, shared=True)
    for wanted in (
        request("r", 1, f"{ATTRIBUTES}.x == 2"),
        request("r", 1, f"device.capacity['{DRIVER}'].x.isGreaterThan(quantity('4'))"),
        request("r", capacity={"x": "4"}),
    ):
        outcome, broken = decide("1.38", [resource_slice([twice])], claim(wanted))
        (result,) = outcome.allocations[0]["devices"]["results"]
        assert ([*result["consumedCapacity"]], broken) == ([full], set())


def test_since_1_38_a_policy_allows_its_default_however_large_it_is() -> None:
    """Answered so by v0.37.2 and v0.38.0-beta.0: until 1.37 the default is copied (DeepCopy)."""
    policy = {"default": "7Ei", "validValues": ["1e28"]}
    slices = [
        resource_slice([device("d", capacity={"c": {"value": "1e28", "requestPolicy": policy}})])
    ]
    kinds = [decide(minor, slices, claim(request()))[0].kind for minor in MINORS[1:]]
    assert kinds == ["none", "none", "none", "allocated"]


def test_since_1_38_nothing_is_allocated_while_less_than_nothing_is_in_use() -> None:
    """Source: consumedCapacityError and getCapacities of the scheduler's allocateddevices.go."""
    item = {"device": "dev-0", "consumedCapacity": {"b": "-2", "a": "-5"}}
    taken = [allocated(item, name=name) for name in ("one", "other")]
    error = (
        "gather allocation state: claim default/one, device gpu.example.com/pool/dev-0: consumed "
        'capacity "a" must not be negative, got -5 (and 1 more claims with invalid consumed '
        "capacity)"
    )
    for minor, expected in {"1.37": "allocated", "1.38": "error"}.items():
        index = Index(
            ALL,
            [resource_slice(devices(2))],
            [device_class()],
            taken,
            kubernetes=minor,
        )
        outcome = Allocator(index).allocate(node(), [claim(request())])
        assert outcome.kind == expected
        assert outcome.error == (error if expected == "error" else "")
        for name in ("one", "other"):
            index.remove_claim("default", name)
        assert Allocator(index).allocate(node(), [claim(request())]).kind == "allocated"


def test_until_1_37_an_amount_beyond_the_largest_suffix_is_written_without_its_exponent() -> None:
    slices = [resource_slice([device("nic", shared=True, capacity={"c": "2000E"})])]
    for minor, written in {"1.37": "2", "1.38": "2e21"}.items():
        outcome, broken = decide(minor, slices, claim(request()))
        (result,) = outcome.allocations[0]["devices"]["results"]
        assert (result["consumedCapacity"], broken) == ({"c": written}, set())
        result["consumedCapacity"] = {"c": "3"}
        snapshot = replace(make_snapshot(slices, [claim(request())]), kubernetes=minor)
        found = check(snapshot, node(), [claim(request())], outcome.allocations)
        assert rules(found) == {"capacity"}


def test_results_have_the_tolerations_of_their_requests_since_1_35() -> None:
    tolerations = [{"key": "k", "operator": "Exists"}]
    for minor in MINORS:
        slices = [resource_slice(devices(1))]
        outcome, broken = decide(minor, slices, claim(request(tolerations=tolerations)))
        (result,) = outcome.allocations[0]["devices"]["results"]
        assert (result.get("tolerations"), broken) == (
            None if minor == "1.34" else tolerations,
            set(),
        )


def test_older_minors_name_the_requests_of_a_configuration_that_is_for_all() -> None:
    both = [request("a"), request("b")]
    configured_claim = claim(*both, config=[{"requests": ["a", "b"], **opaque("x")}, opaque("y")])
    classes = [device_class(config=[opaque("z")])]
    assert config("1.37", configured_claim, classes) == [
        ("FromClass", None),
        ("FromClaim", None),
        ("FromClaim", None),
    ]
    for minor in OLDER:
        assert config(minor, configured_claim, classes) == [
            ("FromClass", ["a", "b"]),
            ("FromClaim", ["a", "b"]),  # once for each request
            ("FromClaim", ["a", "b"]),
            ("FromClaim", None),
        ]


@pytest.mark.parametrize("named", [["a"], ["a/one"], ["a", "a/one"]])
def test_an_alternative_named_twice_is_listed_once(named: list[str]) -> None:
    wanted_claim = claim(
        first_available("a", one=spec()), config=[{"requests": named, **opaque("x")}]
    )
    assert config("1.36", wanted_claim) == [("FromClaim", named)]
    assert config("1.37", wanted_claim) == [("FromClaim", None)]


def test_what_an_older_minor_writes_breaks_the_rule_of_the_latest() -> None:
    wanted_claim = claim(request(), config=[{"requests": ["req"], **opaque("x")}])
    slices = [resource_slice(devices(1))]
    for minor, other in (("1.36", "1.37"), ("1.37", "1.36")):
        allocations = decide(minor, slices, wanted_claim)[0].allocations
        assert allocations is not None
        snapshot = replace(make_snapshot(slices, [wanted_claim]), kubernetes=other)
        assert rules(check(snapshot, node(), [wanted_claim], allocations)) == {"config"}


SINCE_1_36 = 'device.attributes["gpu.example.com"].models.includes("a")'
SLICE = resource_slice([device("d", {"models": ["a", "b"]})])
CLAIM = claim(request("r", 1, SINCE_1_36))


def snapshot(kubernetes: str) -> Snapshot:
    features = Features.for_version(kubernetes, {"DRAListTypeAttributes": True})
    return Snapshot(kubernetes, features, (SLICE,), (device_class(),), (node(),), (CLAIM,))


def outcome(kubernetes: str) -> Any:
    allocator = Allocator(Index(ALL, [SLICE], [device_class()], [], kubernetes=kubernetes))
    return allocator.allocate(node(), [CLAIM])


@pytest.mark.parametrize(
    ("version", "minor"),
    [
        ("1.34", "1.34"),
        ("v1.36.2", "1.36"),
        ("1.37.0-rc.1", "1.37"),
        ("1.33.9", "1.34"),
        ("0.1", "1.34"),
        ("1.38.0-beta.0", "1.38"),
        ("1.39.1", "1.38"),
        ("2.0", "1.38"),
        ("", "1.37"),
        ("latest", "1.37"),
        ("1", "1.37"),
    ],
)
def test_unknown_versions_are_taken_for_the_nearest_minor(version: str, minor: str) -> None:
    assert nearest_minor(version) == minor


@pytest.mark.parametrize("kubernetes", ["1.34.5", "1.35"])
def test_function_that_a_minor_does_not_have_is_a_fatal_error_there(kubernetes: str) -> None:
    kind_and_error = outcome(kubernetes)
    assert kind_and_error.kind == "error"
    assert "undeclared reference to 'includes'" in kind_and_error.error


@pytest.mark.parametrize("kubernetes", ["1.36.0", "1.37.1", "1.40"])
def test_function_is_there_from_its_minor_on(kubernetes: str) -> None:
    assert outcome(kubernetes).kind == "allocated"


def test_without_a_version_selectors_are_those_of_the_latest() -> None:
    allocator = Allocator(Index(ALL, [SLICE], [device_class()], []))
    assert allocator.allocate(node(), [CLAIM]).kind == "allocated"


def test_lists_are_no_values_before_1_36() -> None:
    wanted_claim = claim(request("r", 1, "true"))
    allocator = Allocator(Index(ALL, [SLICE], [device_class()], [], kubernetes="1.35"))
    assert "attribute models: unsupported attribute value" in (
        allocator.allocate(node(), [wanted_claim]).error
    )


def test_checker_and_explanation_follow_the_version_of_the_snapshot() -> None:
    (allocation,) = outcome("1.37").allocations
    assert check(snapshot("1.37"), node(), [CLAIM], [allocation]) == []
    (violation,) = check(snapshot("1.35"), node(), [CLAIM], [allocation])
    assert violation.rule == "selector"
    assert "undeclared reference to 'includes'" in violation.message
    assert "undeclared reference to 'includes'" in explain(snapshot("1.35")).text


def test_derived_attributes_are_never_those_of_a_minor_without_them() -> None:
    assert derived_environment(selector_environment(ALL, "1.34")).kubernetes == "1.37"
    assert derived_environment(selector_environment(ALL, "1.37")).kubernetes == "1.37"


def test_derived_attribute_of_a_minor_without_them_is_a_bad_question() -> None:
    line = json.dumps({"id": "a", "expression": "1", "derived": True})
    assert json.loads(answer_cel(line, kubernetes="1.36")) == {
        "id": "a",
        "invalid": "$.derived: Kubernetes 1.36 has no derived attributes",
    }


def test_problems_are_answered_for_the_version_that_is_asked_for() -> None:
    problem: Json = {
        "id": "a",
        "slices": [SLICE],
        "deviceClasses": [device_class()],
        "nodes": [node()],
        "claims": [CLAIM],
        "features": ALL.to_dict(),
    }
    outcomes = {
        minor: json.loads(answer_allocate(json.dumps(problem), kubernetes=minor))["nodes"][0][
            "outcome"
        ]
        for minor in MINORS
    }
    assert outcomes == {
        minor: "error" if minor in {"1.34", "1.35"} else "allocated" for minor in MINORS
    }
