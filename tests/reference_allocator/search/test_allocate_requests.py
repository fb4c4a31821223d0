"""Numbers, names, order and alternatives: what a claim gets, and in which order it is tried."""

from __future__ import annotations

import pytest

from reference_allocator.features import Features
from tests.reference_allocator.builders import (
    ALL,
    Json,
    allocated,
    claim,
    device,
    device_class,
    devices,
    first_available,
    picked,
    request,
    resource_slice,
    solve,
    spec,
)

FOUR = [resource_slice(devices(4))]


@pytest.mark.parametrize(
    ("claims", "taken", "expected"),
    [
        pytest.param([claim(request())], [], ["req=dev-0"], id="first device in order"),
        pytest.param(
            [claim(request(count=3))],
            [],
            ["req=dev-0", "req=dev-1", "req=dev-2"],
            id="several devices of one request",
        ),
        pytest.param([claim(request())], [allocated("dev-0")], ["req=dev-1"], id="skips in use"),
        pytest.param(
            [claim(request("a"), request("b"))],
            [],
            ["a=dev-0", "b=dev-1"],
            id="two requests get two devices",
        ),
        pytest.param(
            [claim(request(), name="one"), claim(request(), name="two")],
            [],
            ["req=dev-0", "req=dev-1"],
            id="two claims get two devices",
        ),
        pytest.param([claim(request(count=0))], [], ["req=dev-0"], id="count 0 is defaulted to 1"),
        pytest.param([claim()], [], [], id="a claim without requests is satisfied"),
        pytest.param([], [], [], id="no claims are satisfied"),
        pytest.param(
            [claim(request(everything=True))],
            [],
            ["req=dev-0", "req=dev-1", "req=dev-2", "req=dev-3"],
            id="all devices",
        ),
        pytest.param(
            [claim(first_available("r", big=spec(5), small=spec(2)))],
            [],
            ["r/small=dev-0", "r/small=dev-1"],
            id="the second alternative where the first has too few devices",
        ),
        pytest.param(
            [claim(first_available("r", all=spec(everything=True), one=spec()))],
            [allocated("dev-3")],
            ["r/one=dev-0"],
            id="an alternative after All with a device in use",
        ),
        pytest.param(
            [claim(first_available("a", x=spec(3), y=spec(2)), request("b", 2))],
            [],
            ["a/y=dev-0", "a/y=dev-1", "b=dev-2", "b=dev-3"],
            id="goes back to a lesser alternative for a later request",
        ),
    ],
)
def test_devices_are_chosen_in_order(
    claims: list[Json], taken: list[Json], expected: list[str]
) -> None:
    assert picked(solve(FOUR, claims, taken=taken)) == expected


@pytest.mark.parametrize(
    ("claims", "taken"),
    [
        pytest.param([claim(request(count=5))], [], id="one device too few"),
        pytest.param([claim(request(count=4))], [allocated("dev-1")], id="one in use"),
        pytest.param(
            [claim(request(name="r", count=4), name="one"), claim(request(), name="two")],
            [],
            id="nothing left for a second claim",
        ),
        pytest.param([claim(request(everything=True))], [allocated("dev-2")], id="All, one in use"),
        pytest.param([claim(request("a", everything=True), request("b"))], [], id="All, then more"),
        pytest.param(
            [claim(first_available("r", big=spec(5), bigger=spec(6)))], [], id="no alternative fits"
        ),
    ],
)
def test_nothing_is_found_where_devices_do_not_suffice(
    claims: list[Json], taken: list[Json]
) -> None:
    outcome = solve(FOUR, claims, taken=taken)
    assert (outcome.kind, outcome.error, outcome.allocations) == ("none", "", ())


def test_all_with_no_matching_device_finds_nothing() -> None:
    outcome = solve(FOUR, claim(request("r", 1, "false", everything=True)))
    assert outcome.kind == "none"


def test_more_than_32_devices_are_a_fatal_error_where_no_alternative_needs_fewer() -> None:
    pool = [resource_slice(devices(40))]
    outcome = solve(pool, claim(request("a", 30), request("b", 3)))
    assert outcome.kind == "error"
    assert outcome.error == (
        "claim default/claim, request b: adding 3 devices exceeds the claim limit of 32, "
        "with 30 already accounted for"
    )


def test_an_alternative_that_would_exceed_32_devices_is_passed_over() -> None:
    pool = [resource_slice(devices(40))]
    outcome = solve(pool, claim(request("a", 30), first_available("b", x=spec(3), y=spec(2))))
    assert picked(outcome)[-2:] == ["b/y=dev-30", "b/y=dev-31"]


def test_exceeding_32_devices_with_every_alternative_left_is_no_solution() -> None:
    pool = [resource_slice(devices(40))]
    options = first_available("a", x=spec(31), y=spec(30))
    outcome = solve(pool, claim(options, first_available("b", x=spec(3), y=spec(2), z=spec(9))))
    assert picked(outcome)[-1] == "b/y=dev-31"
    outcome = solve(
        [resource_slice(devices(31))], claim(options, first_available("b", x=spec(2), y=spec(3)))
    )
    assert outcome.kind == "none"


@pytest.mark.parametrize(
    ("broken", "features", "error"),
    [
        pytest.param(
            claim(first_available("r", x=spec())),
            Features(),
            "claim default/claim, request r: has subrequests, but the DRAPrioritizedList feature "
            "is disabled",
            id="firstAvailable while off",
        ),
        pytest.param(
            claim(request(capacity={})),
            Features(),
            "claim default/claim, request req: has capacity requests, but the "
            "DRAConsumableCapacity feature is disabled",
            id="capacity while off",
        ),
        pytest.param(
            claim(first_available("r", x=spec(capacity={"memory": "1"}))),
            Features(prioritized_list=True),
            "claim default/claim, subrequest x: has capacity requests, but the "
            "DRAConsumableCapacity feature is disabled",
            id="capacity of a subrequest while off",
        ),
        pytest.param(
            claim(request(adminAccess=False)),
            Features(),
            "claim default/claim, request req: admin access is requested, but the feature is "
            "disabled",
            id="adminAccess set while off",
        ),
        pytest.param(
            claim(request(derivedAttributes=[{"name": "a.b/c", "expression": "1"}])),
            Features(),
            "claim default/claim, request req: cannot handle request with derived attributes, the "
            "feature is disabled",
            id="derived attributes while off",
        ),
        pytest.param(
            claim(request(selectors=[{"rego": "x"}])),
            ALL,
            "claim default/claim, request req, selector #0: CEL expression empty (unsupported "
            "selector type?)",
            id="selector of another kind",
        ),
        pytest.param(
            claim(request(class_name="")),
            ALL,
            "claim default/claim, request req: missing device class name (unsupported request "
            "type?)",
            id="no class name",
        ),
        pytest.param(
            claim(request(class_name="tpu")),
            ALL,
            "claim default/claim, request req: could not retrieve device class tpu: "
            'deviceclass.resource.k8s.io "tpu" not found',
            id="class not found",
        ),
        pytest.param(
            claim(request(allocationMode="Most")),
            ALL,
            "claim default/claim, request req: unsupported count mode Most",
            id="unknown mode",
        ),
        pytest.param(
            claim(request(), constraints=[{"requests": ["req"]}]),
            ALL,
            "claim default/claim, constraint #0: empty constraint (unsupported constraint type?)",
            id="empty constraint",
        ),
    ],
)
def test_claims_that_cannot_be_handled_are_fatal(
    broken: Json, features: Features, error: str
) -> None:
    outcome = solve(FOUR, broken, features=features)
    assert (outcome.kind, outcome.error) == ("error", error)


def test_a_request_that_was_not_defaulted_is_fatal() -> None:
    raw = {
        "metadata": {"name": "raw"},
        "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}},
    }
    outcome = solve(FOUR, raw)
    assert outcome.error == "claim raw, request r: unsupported count mode "


def test_an_unsatisfiable_first_claim_hides_no_error_of_a_later_one() -> None:
    outcome = solve(FOUR, [claim(request(count=9)), claim(request(class_name="no"), name="b")])
    assert outcome.kind == "error"


def test_selectors_of_class_and_request_must_all_be_true() -> None:
    pool = [
        resource_slice(
            [
                device("a", {"kind": "x", "size": 1}),
                device("b", {"kind": "y", "size": 1}),
                device("c", {"kind": "y", "size": 2}),
            ]
        )
    ]
    gpu = device_class("gpu", f'device.attributes["{DRIVER}"].kind == "y"')
    wanted = claim(request("r", 1, "true", f'device.attributes["{DRIVER}"].size == 2'))
    assert picked(solve(pool, wanted, classes=[gpu])) == ["r=c"]


DRIVER = "gpu.example.com"
MISSING = f'device.attributes["{DRIVER}"].missing == 1'
HINT = (
    "no such key: missing. consider using CEL optional chaining (.? followed by orValue()) or "
    "guarding the check with has() for optional fields"
)


@pytest.mark.parametrize(
    ("classes", "wanted", "error"),
    [
        pytest.param(
            [device_class("gpu", "true", MISSING)],
            claim(request()),
            f"class gpu: selector #1 on device {DRIVER}/pool/dev-0: CEL runtime error: {HINT}",
            id="in a class",
        ),
        pytest.param(
            [device_class()],
            claim(request("r", 1, MISSING)),
            f"claim default/claim: selector #0 on device {DRIVER}/pool/dev-0: "
            f"CEL runtime error: {HINT}",
            id="in a request",
        ),
    ],
)
def test_a_selector_that_fails_on_a_device_that_is_reached_is_fatal(
    classes: list[Json], wanted: Json, error: str
) -> None:
    outcome = solve(FOUR, wanted, classes=classes)
    assert (outcome.kind, outcome.error) == ("error", error)


def test_a_selector_error_on_a_device_that_is_not_reached_does_no_harm() -> None:
    pool = [resource_slice([device("a", {"missing": 1}), device("b")])]
    assert picked(solve(pool, claim(request("r", 1, MISSING)))) == ["r=a"]


def test_a_device_in_use_is_not_shown_to_selectors() -> None:
    pool = [resource_slice([device("a"), device("b", {"missing": 1})])]
    outcome = solve(pool, claim(request("r", 1, MISSING)), taken=[allocated("a")])
    assert picked(outcome) == ["r=b"]


def test_a_selector_that_does_not_compile_is_fatal() -> None:
    outcome = solve(FOUR, claim(request("r", 1, "bad(")))
    assert outcome.kind == "error"
    assert outcome.error.startswith(
        "claim default/claim: selector #0: CEL compile error: compilation failed: "
    )


def test_admin_access_takes_devices_in_use_but_not_twice_for_one_claim() -> None:
    one = [resource_slice(devices(1))]
    admin = request("r", 1, adminAccess=True)
    outcome = solve(one, claim(admin), taken=[allocated("dev-0")])
    assert picked(outcome) == ["r=dev-0"]
    assert outcome.allocations[0]["devices"]["results"][0]["adminAccess"] is True
    assert solve(one, claim(admin, {**admin, "name": "again"})).kind == "none"
    assert picked(solve(one, [claim(admin), claim(admin, name="second")])) == ["r=dev-0"] * 2


def test_devices_held_with_admin_access_are_free_for_others() -> None:
    taken = [allocated({"device": "dev-0", "adminAccess": True})]
    assert picked(solve([resource_slice(devices(1))], claim(request()), taken=taken)) == [
        "req=dev-0"
    ]


def test_the_search_stops_at_its_deadline() -> None:
    outcome = solve(FOUR, claim(request(count=5)), deadline=0.0)
    assert outcome.kind == "timeout"
    assert outcome.error == "filter operation aborted: context deadline exceeded"


def test_a_search_as_deep_as_many_claims_with_32_devices_each_does_not_overflow() -> None:
    pools = [
        resource_slice(devices(128), name=f"s{index}", pool=f"p{index}") for index in range(10)
    ]
    claims = [claim(request(count=32), name=f"c{index}") for index in range(40)]
    assert len(picked(solve(pools, claims))) == 1280
