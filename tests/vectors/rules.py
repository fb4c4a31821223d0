"""Vectors that are written by hand, a few for each rule: selectors, constraints, taints, and so on.

Where a rule is about a choice, the device that an allocator looks at first is the wrong one, so
that one that does not look further fails.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from tests.vectors.written import (
    API,
    BETA,
    DRIVER,
    Json,
    Written,
    alternatives,
    by_label,
    cel,
    claim,
    counters,
    device,
    exactly,
    held,
    held_shares,
    node,
    question,
    shared,
    slice_of,
    uses,
    wants,
)

_SELECTOR: Final = f"{API}CELDeviceSelector.expression"
_MATCH: Final = f"{API}DeviceConstraint.matchAttribute"
_DISTINCT: Final = f"{API}DeviceConstraint.distinctAttribute"
_TOLERATION: Final = f"{API}DeviceToleration"
_COUNTERS: Final = f"{API}Device.consumesCounters"
_POLICY: Final = f"{API}CapacityRequestPolicy"
_ALTERNATIVES: Final = f"{API}DeviceRequest.firstAvailable"
_MODE: Final = f"{API}ExactDeviceRequest.allocationMode"
_NODES: Final = "v1 NodeSelectorRequirement.operator"
_ROOT: Final = "resource.kubernetes.io/pcieRoot"
_BAD: Final = {"key": "bad", "value": "yes", "effect": "NoSchedule"}


def own(name: str) -> str:
    """A CEL expression that reads an attribute of the driver."""
    return f'device.attributes["{DRIVER}"].{name}'


def match(name: str = f"{DRIVER}/x", *requests: str) -> Json:
    """A constraint."""
    return {"matchAttribute": name, **({"requests": list(requests)} if requests else {})}


def distinct(name: str = f"{DRIVER}/x") -> Json:
    """A constraint."""
    return {"distinctAttribute": name}


def of_driver(item: Json, driver: str) -> Json:
    """A slice of another driver."""
    return {**item, "spec": {**item["spec"], "driver": driver}}


def tainted(*taints: Json, name: str = "gpu-0") -> Json:
    """A device with taints."""
    return device(name, taints=list(taints))


def tolerates(*tolerations: Json) -> Json:
    """What a request tolerates."""
    return {"tolerations": list(tolerations)}


def where(key: str, operator: str, *values: str) -> Json:
    """A place by one requirement on a label of nodes."""
    requirement = {"key": key, "operator": operator, **({"values": list(values)} if values else {})}
    return {"nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": [requirement]}]}}


def limited(amount: str, **policy: object) -> Json:
    """A device that is shared, with a policy for what its capacity ``bw`` is requested in."""
    capacity = {"bw": {"value": amount, "requestPolicy": policy}}
    return device("nic", allowMultipleAllocations=True, capacity=capacity)


def _one(name: str = "gpu-0", **attributes: object) -> Json:
    return slice_of(device(name, attributes))


def _xs(*values: object) -> Json:
    """A slice with a device for each value of the attribute ``x``; None: it has none."""
    return slice_of(
        *(
            device(f"gpu-{index}", {} if value is None else {"x": value})
            for index, value in enumerate(values)
        )
    )


def _selectors() -> Iterable[Written]:
    yield Written(
        "class-and-request-select-together",
        "A device must match the selectors of the class and those of the request.",
        f"{API}ExactDeviceRequest.selectors",
        False,
        question(
            of_driver(_one(x="1"), "nic.example.com"),
            claims=[claim(exactly(**cel('device.attributes["nic.example.com"].x == "1"')))],
        ),
    )
    yield Written(
        "all-selectors-of-a-request",
        "A device must match all selectors of a request.",
        f"{API}ExactDeviceRequest.selectors",
        False,
        question(
            _one(x="1", y="2"),
            claims=[
                claim(
                    exactly(
                        selectors=[
                            *cel(f'{own("x")} == "1"')["selectors"],
                            *cel(f'{own("y")} == "1"')["selectors"],
                        ]
                    )
                )
            ],
        ),
    )
    yield Written(
        "selector-by-version",
        "Versions are compared by their numbers: 1.10.0 is greater than 1.9.0.",
        _SELECTOR,
        True,
        question(
            _one(v={"version": "1.10.0"}),
            claims=[claim(exactly(**cel(f'{own("v")}.isGreaterThan(semver("1.9.0"))')))],
        ),
    )
    yield Written(
        "selector-by-capacity",
        "Capacities are compared as quantities: 10240Mi is 10Gi.",
        _SELECTOR,
        True,
        question(
            slice_of(device("gpu-0", capacity={"memory": {"value": "10240Mi"}})),
            claims=[
                claim(
                    exactly(
                        **cel(
                            f'device.capacity["{DRIVER}"].memory.compareTo(quantity("10Gi")) >= 0'
                        )
                    )
                )
            ],
        ),
    )
    yield Written(
        "attribute-of-another-domain",
        "An attribute whose name has a domain is found under that domain.",
        f"{API}Device.attributes",
        True,
        question(
            slice_of(device("gpu-0", {"other.example.com/x": "1"})),
            claims=[claim(exactly(**cel('device.attributes["other.example.com"].x == "1"')))],
        ),
    )
    yield Written(
        "attribute-without-a-domain",
        "An attribute whose name has no domain is the driver's own, and no other domain's.",
        f"{API}Device.attributes",
        False,
        question(
            _one(x="1"),
            claims=[claim(exactly(**cel('"x" in device.attributes["other.example.com"]')))],
        ),
    )
    yield Written(
        "attribute-of-a-domain-that-is-not-there",
        "To read an attribute of a domain that a device does not have fails, and so does the pod.",
        _SELECTOR,
        False,
        question(
            slice_of(device("a"), device("b", {"other.example.com/x": "1"})),
            claims=[claim(exactly(**cel('device.attributes["other.example.com"].x == "1"')))],
        ),
    )
    yield Written(
        "selector-that-asks-first",
        "A selector that asks whether the attribute is there passes over devices without it.",
        _SELECTOR,
        True,
        question(
            _xs(None, "1"),
            claims=[
                claim(exactly(**cel(f'"x" in device.attributes["{DRIVER}"] && {own("x")} == "1"')))
            ],
        ),
    )
    yield Written(
        "selector-by-a-bool",
        "An attribute that is true or false is a selector by itself.",
        f"{API}DeviceAttribute.bool",
        True,
        question(
            slice_of(device("a", {"x": {"bool": False}}), device("b", {"x": {"bool": True}})),
            claims=[claim(exactly(**cel(own("x"))))],
        ),
    )
    yield Written(
        "selector-of-another-type",
        "An attribute that is an integer equals no string.",
        _SELECTOR,
        False,
        question(_one(x=1), claims=[claim(exactly(**cel(f'{own("x")} == "1"')))]),
    )


def _constraints() -> Iterable[Written]:
    yield Written(
        "match-attribute-of-some-requests",
        "A constraint that names requests leaves the others alone.",
        f"{API}DeviceConstraint.requests",
        True,
        question(
            _xs("1", "1", "2"),
            claims=[
                claim(
                    exactly("a"),
                    exactly("b"),
                    exactly("c", **cel(f'{own("x")} == "2"')),
                    constraints=[match(f"{DRIVER}/x", "a", "b")],
                )
            ],
        ),
    )
    yield Written(
        "match-attribute-that-is-not-there",
        "A device without the attribute does not satisfy matchAttribute.",
        _MATCH,
        False,
        question(_xs(None), claims=[claim(constraints=[match()])]),
    )
    yield Written(
        "match-attribute-of-two-types",
        'matchAttribute does not hold for "1" and 1.',
        _MATCH,
        False,
        question(_xs("1", 1), claims=[claim(exactly(count=2), constraints=[match()])]),
    )
    yield Written(
        "match-attribute-looks-further",
        "Where the first device matches no other, two others do.",
        _MATCH,
        True,
        question(_xs("1", "2", "2"), claims=[claim(exactly(count=2), constraints=[match()])]),
    )
    drivers = (
        slice_of(device("gpu-0", {_ROOT: "pci0"})),
        of_driver(
            slice_of(device("nic-0", {_ROOT: "pci1"}), device("nic-1", {_ROOT: "pci0"}), name="s1"),
            "nic.example.com",
        ),
    )
    by_driver = [
        claim(
            exactly("gpu", **cel(f'device.driver == "{DRIVER}"')),
            exactly("nic", **cel('device.driver == "nic.example.com"')),
            constraints=[match(_ROOT)],
        )
    ]
    yield Written(
        "match-attribute-of-two-drivers",
        "matchAttribute holds for devices of two drivers that have the attribute of one domain.",
        _MATCH,
        True,
        question(*drivers, claims=by_driver, selectors=False),
    )
    yield Written(
        "match-attribute-of-two-drivers-in-use",
        "The one device of the other driver that matches is in use.",
        _MATCH,
        False,
        question(
            *drivers,
            claims=by_driver,
            selectors=False,
            allocated=[_held_of("nic.example.com", "nic-1")],
        ),
    )
    yield Written(
        "attribute-of-one-name-in-two-drivers",
        "An attribute without a domain is another one for each driver, so matchAttribute fails.",
        _MATCH,
        False,
        question(
            slice_of(device("gpu-0", {"x": "1"})),
            of_driver(slice_of(device("nic-0", {"x": "1"}), name="s1"), "nic.example.com"),
            claims=[claim(*by_driver[0]["spec"]["devices"]["requests"], constraints=[match()])],
            selectors=False,
        ),
    )
    yield Written(
        "match-attribute-within-each-claim",
        "A constraint is about the devices of its claim; another claim's may differ.",
        _MATCH,
        True,
        question(
            _xs("1", "1", "2", "2"),
            claims=[
                claim(exactly(count=2), constraints=[match()], name=name) for name in ("c", "d")
            ],
        ),
    )
    yield Written(
        "two-constraints-together",
        "All constraints of a claim hold for the same devices.",
        f"{API}DeviceClaim.constraints",
        False,
        question(
            slice_of(
                device("a", {"x": "1", "y": "1"}),
                device("b", {"x": "1", "y": "2"}),
                device("c", {"x": "2", "y": "1"}),
            ),
            claims=[
                claim(exactly(count=2), constraints=[match(), match(f"{DRIVER}/y")]),
            ],
        ),
    )
    yield Written(
        "match-and-distinct-together",
        "Devices that are alike in one attribute and differ in another.",
        f"{API}DeviceClaim.constraints",
        True,
        question(
            slice_of(
                device("a", {"x": "1", "y": "1"}),
                device("b", {"x": "1", "y": "1"}),
                device("c", {"x": "2", "y": "1"}),
            ),
            claims=[claim(exactly(count=2), constraints=[distinct(), match(f"{DRIVER}/y")])],
        ),
    )
    yield Written(
        "three-that-differ-with-two-values",
        "Three devices of which two have one value do not differ.",
        _DISTINCT,
        False,
        question(_xs("1", "2", "1"), claims=[claim(exactly(count=3), constraints=[distinct()])]),
    )
    yield Written(
        "distinct-attribute-that-is-not-there",
        "A device without the attribute does not satisfy distinctAttribute.",
        _DISTINCT,
        False,
        question(_xs("1", None), claims=[claim(exactly(count=2), constraints=[distinct()])]),
    )
    yield Written(
        "constraint-of-an-alternative-that-is-not-taken",
        "A constraint on an alternative does not count where another is taken.",
        f"{API}DeviceConstraint.requests",
        True,
        question(
            _xs("1", "2"),
            claims=[
                claim(
                    alternatives({"count": 2}, {"count": 2, **cel("true")}),
                    constraints=[match(f"{DRIVER}/x", "r/a0")],
                )
            ],
        ),
    )


def _held_of(driver: str, name: str) -> Json:
    made = held(name)
    made["status"]["allocation"]["devices"]["results"][0]["driver"] = driver
    return made


def _choices() -> Iterable[Written]:
    needs_first = exactly("b", **cel(f'{own("x")} == "1"'))
    for_both = question(_one(), claims=[claim(exactly("a"), exactly("b", deviceClassName="any"))])
    for_both["deviceClasses"].append({**for_both["deviceClasses"][0], "metadata": {"name": "any"}})
    yield Written(
        "one-device-of-two-classes",
        "A device that two classes select is there once.",
        f"{API}DeviceClassSpec.selectors",
        False,
        for_both,
    )
    yield Written(
        "two-claims-that-select-one-device",
        "A device that the requests of two claims select is for one of them.",
        "v1 PodSpec.resourceClaims",
        False,
        question(_xs("1", "2"), claims=[claim(needs_first, name=name) for name in ("c", "d")]),
    )
    yield Written(
        "request-that-must-leave-the-first-device",
        "A request that takes any device leaves the one that another request needs.",
        f"{API}DeviceClaim.requests",
        True,
        question(_xs("1", "2"), claims=[claim(exactly("a"), needs_first)]),
    )
    yield Written(
        "claim-that-must-leave-the-first-device",
        "A claim that takes any device leaves the one that another claim of the pod needs.",
        "v1 PodSpec.resourceClaims",
        True,
        question(_xs("1", "2"), claims=[claim(name="c"), claim(needs_first, name="d")]),
    )
    yield Written(
        "alternative-that-leaves-the-device-for-another-request",
        "An alternative that takes the device of another request is given up for the next one.",
        _ALTERNATIVES,
        True,
        question(
            _xs("1", "2"),
            claims=[
                claim(
                    alternatives(
                        {"count": 1, **cel(f'{own("x")} == "1"')},
                        {"count": 1, **cel(f'{own("x")} == "2"')},
                        name="a",
                    ),
                    needs_first,
                )
            ],
        ),
    )
    yield Written(
        "no-alternative-fits",
        "A request of which no alternative fits does not fit.",
        _ALTERNATIVES,
        False,
        question(_one(), claims=[claim(alternatives({"count": 3}, {"count": 2}))]),
    )
    yield Written(
        "alternative-of-a-class-that-is-not-there",
        "An alternative whose class does not exist fails the pod, though the first would fit.",
        "k8s.io/dynamic-resource-allocation structured (could not retrieve device class)",
        False,
        question(
            _one(),
            claims=[claim(alternatives({"count": 1}, {"deviceClassName": "no", "count": 1}))],
        ),
    )
    yield Written(
        "as-many-devices-as-a-claim-may-have",
        "A claim may have 32 devices.",
        f"{API}AllocationResultsMaxSize",
        True,
        question(
            slice_of(*(device(f"gpu-{index}") for index in range(32))),
            claims=[claim(exactly(count=32))],
        ),
    )
    yield Written(
        "more-devices-than-a-claim-may-have",
        "A claim cannot have more than 32 devices, in all its requests together.",
        f"{API}AllocationResultsMaxSize",
        False,
        question(
            slice_of(*(device(f"gpu-{index}") for index in range(40))),
            claims=[claim(exactly("a", count=20), exactly("b", count=13))],
        ),
    )
    yield Written(
        "32-devices-for-each-of-two-claims",
        "Each claim of a pod may have 32 devices.",
        f"{API}AllocationResultsMaxSize",
        True,
        question(
            slice_of(*(device(f"gpu-{index}") for index in range(40))),
            claims=[claim(exactly(count=20), name="c"), claim(exactly(count=20), name="d")],
        ),
    )


def _all() -> Iterable[Written]:
    everything = [claim(exactly(allocationMode="All"))]
    yield Written(
        "all-of-none",
        "A request for all devices needs at least one.",
        _MODE,
        False,
        question(slice_of(), claims=everything),
    )
    yield Written(
        "all-with-one-in-use",
        "A request for all devices does not fit while another claim has one of them.",
        _MODE,
        False,
        question(_xs("1", "2"), claims=everything, allocated=[held("gpu-1")]),
    )
    yield Written(
        "all-that-are-selected-with-another-in-use",
        "All devices are those that are selected; others may be in use.",
        _MODE,
        True,
        question(
            _xs("1", "2"),
            claims=[claim(exactly(allocationMode="All", **cel(f'{own("x")} == "1"')))],
            allocated=[held("gpu-1")],
        ),
    )
    yield Written(
        "all-of-an-incomplete-pool",
        "A request for all devices does not fit while a pool of the node is incomplete.",
        _MODE,
        False,
        question(
            _one(),
            slice_of(device("x"), name="s1", pool="p", count=2),
            claims=everything,
        ),
    )
    yield Written(
        "all-and-one-more",
        "After a request for all devices none is left for another request.",
        _MODE,
        False,
        question(_xs("1", "2"), claims=[claim(exactly("a", allocationMode="All"), exactly("b"))]),
    )
    yield Written(
        "all-with-admin-access",
        "A request for all devices with adminAccess gets those in use, too.",
        f"{API}ExactDeviceRequest.adminAccess",
        True,
        question(
            _xs("1", "2"),
            claims=[claim(exactly(allocationMode="All", adminAccess=True))],
            allocated=[held("gpu-0", "gpu-1")],
        ),
    )
    yield Written(
        "admin-access-and-ordinary-request-for-one-device",
        "A device that a request of the pod gets with adminAccess is not free for its others.",
        "k8s.io/dynamic-resource-allocation structured (deviceInUse)",
        False,
        question(_one(), claims=[claim(exactly("a", adminAccess=True), exactly("b"))]),
    )


def _taints() -> Iterable[Written]:
    yield Written(
        "taint-without-an-effect",
        "A taint with the effect None keeps nobody away.",
        f"{API}DeviceTaint.effect",
        True,
        question(slice_of(tainted({"key": "bad", "effect": "None"}))),
    )
    for identifier, sentence, fits, toleration in (
        (
            "toleration-of-another-value",
            "A toleration with Equal is of one value.",
            False,
            {"key": "bad", "operator": "Equal", "value": "no", "effect": "NoSchedule"},
        ),
        (
            "toleration-of-the-value",
            "A toleration with Equal tolerates its value.",
            True,
            {"key": "bad", "operator": "Equal", "value": "yes", "effect": "NoSchedule"},
        ),
        (
            "toleration-of-another-key",
            "A toleration with a key is of that key.",
            False,
            {"key": "worse", "operator": "Exists", "effect": "NoSchedule"},
        ),
        (
            "toleration-of-every-key",
            "A toleration with Exists and without a key tolerates every taint.",
            True,
            {"operator": "Exists"},
        ),
        (
            "toleration-of-another-effect",
            "A toleration of NoExecute does not tolerate NoSchedule.",
            False,
            {"key": "bad", "operator": "Exists", "effect": "NoExecute"},
        ),
        (
            "toleration-of-every-effect",
            "A toleration without an effect tolerates all effects of its key.",
            True,
            {"key": "bad", "operator": "Exists"},
        ),
    ):
        yield Written(
            identifier,
            sentence,
            _TOLERATION,
            fits,
            question(slice_of(tainted(_BAD)), claims=[claim(exactly(**tolerates(toleration)))]),
        )
    yield Written(
        "one-of-two-taints-tolerated",
        "All taints of a device must be tolerated.",
        _TOLERATION,
        False,
        question(
            slice_of(tainted(_BAD, {"key": "worse", "effect": "NoSchedule"})),
            claims=[claim(exactly(**tolerates({"key": "bad", "operator": "Exists"})))],
        ),
    )
    yield Written(
        "toleration-for-some-time",
        "A toleration of NoExecute for some seconds lets the pod come.",
        f"{API}DeviceToleration.tolerationSeconds",
        True,
        question(
            slice_of(tainted({"key": "bad", "effect": "NoExecute"})),
            claims=[
                claim(
                    exactly(
                        **tolerates(
                            {
                                "key": "bad",
                                "operator": "Exists",
                                "effect": "NoExecute",
                                "tolerationSeconds": 60,
                            }
                        )
                    )
                )
            ],
        ),
    )
    yield Written(
        "toleration-of-one-alternative",
        "An alternative that tolerates the taint fits where the one before does not.",
        f"{API}DeviceSubRequest.tolerations",
        True,
        question(
            slice_of(tainted(_BAD)),
            claims=[
                claim(alternatives({"count": 1}, {"count": 1, **tolerates({"operator": "Exists"})}))
            ],
        ),
    )
    yield Written(
        "toleration-is-of-its-request",
        "What one request tolerates another does not.",
        f"{API}ExactDeviceRequest.tolerations",
        False,
        question(
            slice_of(tainted(_BAD), tainted(_BAD, name="gpu-1")),
            claims=[claim(exactly("a", **tolerates({"operator": "Exists"})), exactly("b"))],
        ),
    )
    yield Written(
        "untainted-device-behind-a-tainted-one",
        "A device without a taint is found behind one with a taint.",
        f"{API}Device.taints",
        True,
        question(slice_of(tainted(_BAD), device("gpu-1"))),
    )
    yield Written(
        "taints-are-off",
        "Where the feature is off, taints keep nobody away.",
        f"{API}Device.taints",
        True,
        question(
            slice_of(tainted(_BAD)), features=[name for name in BETA if name != "deviceTaints"]
        ),
    )


def _counters() -> Iterable[Written]:
    yield Written(
        "counters-of-two-sets",
        "A device that draws on two counter sets needs enough of both.",
        _COUNTERS,
        False,
        question(
            slice_of(
                device(
                    "gpu-0",
                    consumesCounters=[
                        *uses("a", n="1")["consumesCounters"],
                        *uses("b", n="2")["consumesCounters"],
                    ],
                ),
                count=2,
            ),
            counters({"a": {"n": "1"}, "b": {"n": "1"}}),
        ),
    )
    yield Written(
        "counters-that-are-left",
        "What another claim's device leaves of a counter is enough.",
        _COUNTERS,
        True,
        question(
            slice_of(device("a", **uses("s", n="3")), device("b", **uses("s", n="2")), count=2),
            counters({"s": {"n": "5"}}),
            allocated=[held("a")],
        ),
    )
    yield Written(
        "counters-that-are-not-left",
        "What another claim's device leaves of a counter is too little.",
        _COUNTERS,
        False,
        question(
            slice_of(device("a", **uses("s", n="3")), device("b", **uses("s", n="2")), count=2),
            counters({"s": {"n": "4"}}),
            allocated=[held("a")],
        ),
    )
    yield Written(
        "counters-and-admin-access-of-others",
        "A device that only a claim with adminAccess has draws on no counter.",
        f"{API}DeviceRequestAllocationResult.adminAccess",
        True,
        question(
            slice_of(device("a", **uses("s", n="3")), device("b", **uses("s", n="2")), count=2),
            counters({"s": {"n": "4"}}),
            allocated=[held("a", adminAccess=True)],
        ),
    )
    yield Written(
        "counters-of-two-pools",
        "Counter sets of one name in two pools are two sets.",
        f"{API}ResourceSliceSpec.sharedCounters",
        True,
        question(
            slice_of(device("a", **uses("s", n="1")), count=2),
            counters({"s": {"n": "1"}}),
            slice_of(device("b", **uses("s", n="1")), name="t0", pool="other", count=2),
            counters({"s": {"n": "1"}}, name="t1", pool="other"),
            allocated=[held("a")],
        ),
    )
    yield Written(
        "counters-and-a-better-pair",
        "Where the first two devices need too much of a counter together, others do not.",
        _COUNTERS,
        True,
        question(
            slice_of(
                device("a", **uses("s", n="3")),
                device("b", **uses("s", n="3")),
                device("c", **uses("s", n="1")),
                count=2,
            ),
            counters({"s": {"n": "4"}}),
            claims=[claim(exactly(count=2))],
        ),
    )
    yield Written(
        "counters-of-two-claims",
        "Devices of all claims of a pod draw on one counter.",
        _COUNTERS,
        False,
        question(
            slice_of(device("a", **uses("s", n="3")), device("b", **uses("s", n="2")), count=2),
            counters({"s": {"n": "4"}}),
            claims=[claim(name="c"), claim(name="d")],
        ),
    )
    yield Written(
        "counter-set-that-is-not-there",
        "A pool with a device that draws on a set that is not there has no devices to give.",
        f"{API}DeviceCounterConsumption.counterSet",
        False,
        question(slice_of(device("a", **uses("s", n="1")), device("b"))),
    )
    yield Written(
        "device-without-counters-beside-some",
        "A device that draws on no counter is to be had when the counters are used up.",
        _COUNTERS,
        True,
        question(
            slice_of(
                device("a", **uses("s", n="1")),
                device("b", **uses("s", n="1")),
                device("c"),
                count=2,
            ),
            counters({"s": {"n": "1"}}),
            claims=[claim(exactly(count=2))],
        ),
    )


def _capacity() -> Iterable[Written]:
    yield Written(
        "share-of-all-the-capacity",
        "A share without a capacity request consumes all where no policy has a default.",
        f"{API}DeviceCapacity.requestPolicy",
        False,
        question(slice_of(shared()), allocated=[held_shares("nic", "1")]),
    )
    yield Written(
        "share-of-the-default",
        "A share without a capacity request consumes the policy's default.",
        f"{_POLICY}.default",
        True,
        question(
            slice_of(limited("10", default="1", validRange={"min": "1"})),
            allocated=[held_shares("nic", "9")],
        ),
    )
    for identifier, sentence, source, fits, policy, asked, held_amount in (
        (
            "share-in-steps",
            "A capacity request is rounded up to the policy's next step.",
            "Range.step",
            False,
            {"default": "2", "validRange": {"min": "2", "step": "2"}},
            "3",
            "7",
        ),
        (
            "share-of-a-step",
            "A capacity request that is a step is not rounded.",
            "Range.step",
            True,
            {"default": "2", "validRange": {"min": "2", "step": "2"}},
            "4",
            "6",
        ),
        (
            "share-of-a-valid-value",
            "A capacity request is rounded up to the policy's next value.",
            ".validValues",
            False,
            {"default": "1", "validValues": ["1", "4"]},
            "2",
            "7",
        ),
        (
            "share-beyond-all-valid-values",
            "A capacity request beyond the policy's values does not fit.",
            ".validValues",
            False,
            {"default": "1", "validValues": ["1", "4"]},
            "5",
            "1",
        ),
        (
            "share-beyond-the-maximum",
            "A capacity request beyond the policy's maximum does not fit.",
            "Range.max",
            False,
            {"default": "1", "validRange": {"min": "1", "max": "4"}},
            "5",
            "1",
        ),
        (
            "share-below-the-minimum",
            "A capacity request below the policy's minimum consumes the minimum.",
            "Range.min",
            False,
            {"default": "3", "validRange": {"min": "3"}},
            "1",
            "8",
        ),
    ):
        yield Written(
            identifier,
            sentence,
            f"{_POLICY}{source}",
            fits,
            question(
                slice_of(limited("10", **policy)),
                claims=[claim(exactly(**wants(bw=asked)))],
                allocated=[held_shares("nic", held_amount)],
            ),
        )
    yield Written(
        "shares-that-use-up-the-capacity",
        "Shares may consume all of a capacity.",
        f"{API}Device.allowMultipleAllocations",
        True,
        question(
            slice_of(shared()),
            claims=[claim(exactly(**wants(bw="6")))],
            allocated=[held_shares("nic", "4")],
        ),
    )
    yield Written(
        "shares-beyond-the-capacity",
        "Shares of one claim do not consume more than there is.",
        f"{API}Device.allowMultipleAllocations",
        False,
        question(
            slice_of(shared()),
            claims=[claim(exactly("a", **wants(bw="6")), exactly("b", **wants(bw="5")))],
        ),
    )
    yield Written(
        "whole-device-while-it-is-shared",
        "A capacity request for a second device finds one that nobody shares.",
        f"{API}Device.allowMultipleAllocations",
        True,
        question(
            slice_of(shared("a"), shared("b")),
            claims=[claim(exactly(**wants(bw="10")))],
            allocated=[held_shares("a", "1")],
        ),
    )
    yield Written(
        "large-enough-device-behind-a-small-one",
        "A device with the capacity is found behind one without it.",
        f"{API}ExactDeviceRequest.capacity",
        True,
        question(
            slice_of(
                device("a", capacity={"memory": {"value": "15Gi"}}),
                device("b", capacity={"memory": {"value": "40Gi"}}),
            ),
            claims=[claim(exactly(**wants(memory="20Gi")))],
        ),
    )


def _nodes() -> Iterable[Written]:
    gpu = device("gpu-0")
    for identifier, sentence, fits, place, labels in (
        ("node-not-in", "NotIn matches a node without the label.", True,
         where("k", "NotIn", "a"), {}),
        ("node-that-is-in", "NotIn does not match a node with the value.", False,
         where("k", "NotIn", "a"), {"k": "a"}),
        ("node-with-a-label", "Exists matches any value.", True, where("k", "Exists"), {"k": "a"}),
        ("node-that-must-not-have-a-label", "DoesNotExist does not match a node with the label.",
         False, where("k", "DoesNotExist"), {"k": "a"}),
        ("node-with-more", "Gt compares values as integers: 10 is more than 9.", True,
         where("k", "Gt", "9"), {"k": "10"}),
        ("node-with-less", "Lt does not match a node whose value is no integer.", False,
         where("k", "Lt", "9"), {"k": "a"}),
    ):  # fmt: skip
        yield Written(
            identifier, sentence, _NODES, fits,
            question(slice_of(gpu, where=place), nodes=[node(**labels)]),
        )  # fmt: skip
    elsewhere = slice_of(
        device("gpu-1", {"x": "1"}), name="s1", pool="node-1", where={"nodeName": "node-1"}
    )
    yield Written(
        "selector-of-a-device-of-another-node",
        "A device of another node that the selector matches is not to be had.",
        f"{API}ResourceSliceSpec.nodeName",
        False,
        question(_one(x="2"), elsewhere, claims=[claim(exactly(**cel(f'{own("x")} == "1"')))]),
    )
    both = {"matchExpressions": [item["matchExpressions"][0] for item in (
        by_label("k", "a"), by_label("l", "a"))]}  # fmt: skip
    yield Written(
        "one-of-two-requirements",
        "A node must match all requirements of a term.",
        "v1 NodeSelectorTerm.matchExpressions",
        False,
        question(
            slice_of(gpu, where={"nodeSelector": {"nodeSelectorTerms": [both]}}),
            nodes=[node(k="a")],
        ),
    )
    yield Written(
        "device-of-all-nodes",
        "A slice with allNodes is for this node, too.",
        f"{API}ResourceSliceSpec.allNodes",
        True,
        question(slice_of(gpu, where={"allNodes": True})),
    )
    yield Written(
        "device-of-all-nodes-in-use-elsewhere",
        "A device of all nodes that is in use is in use on every node.",
        f"{API}ResourceSliceSpec.allNodes",
        False,
        question(slice_of(gpu, where={"allNodes": True}), allocated=[held("gpu-0")]),
    )
    yield Written(
        "slice-of-another-node",
        "A slice with the name of another node is not for this one.",
        f"{API}ResourceSliceSpec.nodeName",
        False,
        question(slice_of(gpu, where={"nodeName": "node-00"})),
    )
    yield Written(
        "device-for-all-nodes-of-a-slice",
        "With perDeviceNodeSelection a device may be for all nodes.",
        f"{API}Device.allNodes",
        True,
        question(slice_of(device("gpu-0", allNodes=True), where={"perDeviceNodeSelection": True})),
    )
    yield Written(
        "device-with-a-node-selector",
        "With perDeviceNodeSelection a device may have a node selector, which must match.",
        f"{API}Device.nodeSelector",
        False,
        question(
            slice_of(
                device("gpu-0", **where("k", "Exists")), where={"perDeviceNodeSelection": True}
            )
        ),
    )


def _pools() -> Iterable[Written]:
    yield Written(
        "newest-generation-is-incomplete",
        "While the newest generation is incomplete, the complete older one does not count.",
        f"{API}ResourcePool.generation",
        False,
        question(_one(), slice_of(device("gpu-0"), name="s1", generation=2, count=2)),
    )
    yield Written(
        "newest-generation-is-complete",
        "Devices of the newest generation are to be had while older slices are still there.",
        f"{API}ResourcePool.generation",
        True,
        question(slice_of(), slice_of(device("gpu-0"), name="s1", generation=2)),
    )
    yield Written(
        "selector-of-an-older-generation",
        "A device that only an older generation has is not selected.",
        f"{API}ResourcePool.generation",
        False,
        question(
            _one(x="1"),
            slice_of(device("gpu-1", {"x": "2"}), name="s1", generation=2),
            claims=[claim(exactly(**cel(f'{own("x")} == "1"')))],
        ),
    )
    yield Written(
        "device-in-use-since-an-older-generation",
        "A device stays in use when its pool has a new generation.",
        f"{API}ResourcePool.generation",
        False,
        question(slice_of(device("gpu-0"), generation=7), allocated=[held("gpu-0")]),
    )
    yield Written(
        "incomplete-pool-beside-a-complete-one",
        "An incomplete pool does not keep devices of another pool away.",
        f"{API}ResourcePool.resourceSliceCount",
        True,
        question(slice_of(device("x"), name="s1", pool="p", count=2), _one()),
    )
    yield Written(
        "pool-of-two-slices",
        "Devices of all slices of a pool may be in one claim.",
        f"{API}ResourcePool.resourceSliceCount",
        True,
        question(
            slice_of(device("a"), count=2),
            slice_of(device("b"), name="s1", count=2),
            claims=[claim(exactly(count=2))],
        ),
    )
    yield Written(
        "device-of-one-name-in-another-pool",
        "A device is driver, pool and name: one of the same name in another pool is free.",
        f"{API}DeviceRequestAllocationResult.pool",
        True,
        question(_one(), allocated=[held("gpu-0", pool="other")]),
    )
    yield Written(
        "device-of-one-name-of-another-driver",
        "A device is driver, pool and name: one of the same name of another driver is free.",
        f"{API}DeviceRequestAllocationResult.driver",
        True,
        question(_one(), allocated=[_held_of("nic.example.com", "gpu-0")]),
    )
    yield Written(
        "claim-without-devices-beside",
        "Another claim that was not allocated yet has nothing in use.",
        f"{API}ResourceClaimStatus.allocation",
        True,
        question(_one(), allocated=[claim(name="other")]),
    )
    yield Written(
        "device-that-is-prepared-first",
        "A device with binding conditions is to be had; the pod is bound when they are true.",
        f"{API}Device.bindingConditions",
        True,
        question(
            slice_of(
                device(
                    "gpu-0",
                    bindingConditions=["example.com/ready"],
                    bindingFailureConditions=["example.com/failed"],
                )
            )
        ),
    )


RULES: Final = (
    *_selectors(),
    *_constraints(),
    *_choices(),
    *_all(),
    *_taints(),
    *_counters(),
    *_capacity(),
    *_nodes(),
    *_pools(),
)
