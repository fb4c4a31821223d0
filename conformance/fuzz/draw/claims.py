"""Draws claims: what a pod asks for, in every form that the API knows."""

from __future__ import annotations

from collections.abc import Iterator

from conformance.fuzz.draw.dice import Dice
from conformance.fuzz.draw.inventories import CPU, DRIVERS, FABRIC, GPU, MIG, NIC, PCIE_ROOT, Json
from reference_allocator.api.defaulting import default_claim

SELECTORS = {
    GPU: (
        'device.attributes["gpu.example.com"].productName == "Tesla T4"',
        'device.attributes["gpu.example.com"].cudaComputeCapability.isGreaterThan(semver("7.9.0"))',
        'device.capacity["gpu.example.com"].memory.compareTo(quantity("16Gi")) >= 0',
        'device.attributes["gpu.example.com"].?ecc.orValue(false)',
        'device.attributes["gpu.example.com"].index % 2 == 0',
        'device.attributes["resource.kubernetes.io"].pcieRoot in ["pci0", "pci1"]',
        '"rack" in device.attributes["gpu.example.com"]',
    ),
    MIG: (
        'device.attributes["mig.example.com"].type == "mig"',
        'device.attributes["mig.example.com"].profile.startsWith("1g")',
        'device.capacity["mig.example.com"].memory.isGreaterThan(quantity("5Gi"))',
    ),
    NIC: (
        "device.allowMultipleAllocations",
        'device.attributes["nic.example.com"].numa == 0',
        'device.capacity["nic.example.com"].bandwidth.isLessThan(quantity("9G"))',
    ),
    CPU: ('device.attributes["cpu.example.com"].numa == 0', "device.allowMultipleAllocations"),
    FABRIC: (
        'device.attributes["fabric.example.com"].rack == "a"',
        'device.attributes["fabric.example.com"].lanes == 8',
        'device.attributes["fabric.example.com"].?lanes.hasValue()',
    ),
}
_ANY = ("true", "true", "false", 'has(device.attributes["none.example.com"].x)')
_RARE = (
    'device.attributes["gpu.example.com"].missing == 1',
    'device.attributes["none.example.com"].x == 1',
    "device.attributes.exists(domain, domain == 'gpu.example.com')",
    "1 / size(device.capacity) == 1",
    "device.driver",
    "device.nonsense",
    "device.driver == ",
    "",
)
_CONSTRAINED = {
    GPU: (PCIE_ROOT, PCIE_ROOT, "gpu.example.com/productName", "gpu.example.com/tags"),
    MIG: ("mig.example.com/parent", "mig.example.com/parent", "mig.example.com/profile"),
    NIC: (PCIE_ROOT, PCIE_ROOT, "nic.example.com/numa"),
    CPU: ("cpu.example.com/numa",),
    FABRIC: ("fabric.example.com/rack", "fabric.example.com/lanes"),
}
DERIVED = "example.com/derived"
_ODD = ("gpu.example.com/rack", "nic.example.com/mixed", DERIVED, "none.example.com/x")
_DERIVED = (
    "device.driver",
    "size(device.attributes)",
    'device.attributes["gpu.example.com"].?productName.orValue("none")',
    'device.attributes["resource.kubernetes.io"].pcieRoot',
    'device.attributes["gpu.example.com"].index / 2',
    '["a", device.driver]',
    'device.attributes["gpu.example.com"].?tags.orValue(["none"])',
    'device.attributes["gpu.example.com"].cudaComputeCapability',
    "device.allowMultipleAllocations",
    'device.attributes["mig.example.com"].parent',
)
_ODD_DERIVED = (
    "1.5",
    "device.nonsense",
    "device.capacity",
    "[]",
    'dyn(device.attributes["nic.example.com"].numa)',
    'device.attributes["fabric.example.com"].lanes',
)


def draw_classes(dice: Dice) -> list[Json]:
    """Draw a class per driver and one for any device."""
    built: list[Json] = []
    for driver in DRIVERS:
        spec: Json = {"selectors": [{"cel": {"expression": f'device.driver == "{driver}"'}}]}
        if dice.about("config", 4):
            spec["config"] = [_config(dice, driver) for _ in range(dice.pick([1, 2]))]
        if dice.rare(30):
            spec["selectors"].append({"cel": {"expression": dice.pick(_RARE)}})
        built.append({"metadata": {"name": driver}, "spec": spec})
    built.append({"metadata": {"name": "any"}, "spec": {}})
    dice.shuffle(built)
    return built


def _config(dice: Dice, driver: str) -> Json:
    return {"opaque": {"driver": driver, "parameters": {"level": dice.number(3)}}}


def draw_claim(dice: Dice, index: int, driver: str) -> Json:
    """Draw a claim that mostly asks for devices of one driver."""
    requests: list[Json] = []
    names: list[str] = []
    for number in range(dice.pick([1, 1, 1, 2, 2, 3] if dice.focus is None else [1, 1, 2])):
        name = f"r{number}"
        names.append(name)
        if dice.allowed("prioritizedList", 4):
            alternatives: list[Json] = []
            for option in range(dice.pick([1, 2, 2, 3])):
                alternatives.append({"name": f"s{option}", **_body(dice, driver, sub=True)})
                names.append(f"{name}/s{option}")
            requests.append({"name": name, "firstAvailable": alternatives})
        else:
            requests.append({"name": name, "exactly": _body(dice, driver, sub=False)})
    devices: Json = {"requests": requests}
    counts = [0, 0, 0, 1, 1, 2]
    if dice.focus is not None:
        counts = [1, 1, 2] if "constraints" in dice.focus else [0]
    constraints = [_constraint(dice, driver, names) for _ in range(dice.pick(counts))]
    deriving = [name for name, body in _bodies(requests) if "derivedAttributes" in body]
    if deriving and not dice.one_in(4):
        kind = dice.pick(["matchAttribute", "matchAttribute", "distinctAttribute"])
        about = {"requests": deriving} if len(deriving) < len(names) else _subset(dice, names)
        constraints.append({kind: dice.pick([DERIVED, DERIVED, PCIE_ROOT]), **about})
    if constraints:
        devices["constraints"] = constraints
    if dice.about("config", 5):
        devices["config"] = [
            {**_subset(dice, names), **_config(dice, driver)} for _ in range(dice.pick([1, 2, 3]))
        ]
    metadata = {"name": f"claim-{index}", "namespace": "default", "uid": f"uid-{index}"}
    return default_claim({"metadata": metadata, "spec": {"devices": devices}})


def _bodies(requests: list[Json]) -> Iterator[tuple[str, Json]]:
    for request in requests:
        if "exactly" in request:
            yield request["name"], request["exactly"]
        for option in request.get("firstAvailable", ()):
            yield f"{request['name']}/{option['name']}", option


def _subset(dice: Dice, names: list[str]) -> Json:
    if dice.one_in(2):
        return {}
    return {"requests": dice.some(names, 1 + dice.number(len(names)))}


def _constraint(dice: Dice, driver: str, names: list[str]) -> Json:
    kind = dice.pick(["matchAttribute", "matchAttribute", "distinctAttribute"])
    if dice.rare(100):
        return _subset(dice, names)
    attributes = _CONSTRAINED[driver]
    if "listTypeAttributes" in dice.features and dice.one_in(3):
        attributes = (f"{driver}/tags",)
    if dice.one_in(12) or dice.rare(3):
        attributes = (*_ODD, *_CONSTRAINED[dice.pick(DRIVERS)])
    return {kind: dice.pick(attributes), **_subset(dice, names)}


def _body(dice: Dice, driver: str, *, sub: bool) -> Json:
    if dice.one_in(30) or dice.rare(6):
        driver = dice.pick(DRIVERS)
    body: Json = {"deviceClassName": "any" if dice.one_in(8) else driver}
    if dice.rare(60):
        body["deviceClassName"] = "missing"
    if dice.about("all", 10):
        body["allocationMode"] = "All"
    else:
        body["count"] = dice.pick([1, 1, 1, 1, 1, 1, 1, 2, 2, 3])
        if dice.rare(40):
            body["count"] = dice.pick([8, 17, 31, 32, 33])
    if dice.about("selectors", 3):
        body["selectors"] = [
            {"cel": {"expression": _selector(dice, driver)}} for _ in range(dice.pick([1, 1, 2]))
        ]
    if not sub and dice.allowed("adminAccess", 12):
        body["adminAccess"] = not dice.one_in(6)
    rules = dice.focus is not None and dice.about("deviceTaintRules", 2)
    if rules or dice.about("deviceTaints", 6):
        body["tolerations"] = [_toleration(dice) for _ in range(dice.pick([1, 2]))]
    if dice.allowed("consumableCapacity", 2 if driver in (NIC, CPU) else 30):
        body["capacity"] = {"requests": _capacity(dice, driver)}
    if dice.allowed("derivedAttributes", 12):
        name = dice.pick([DERIVED, DERIVED, PCIE_ROOT])
        expressions = _ODD_DERIVED if dice.rare(4) or dice.one_in(10) else _DERIVED
        body["derivedAttributes"] = [{"name": name, "expression": dice.pick(expressions)}]
    if dice.rare(80):
        body.update(dice.pick(_UNSUPPORTED))
    return body


_UNSUPPORTED: tuple[Json, ...] = (
    {"selectors": [{}]},
    {"selectors": [{"cel": {"expression": "true"}}, {}]},
    {"allocationMode": "Some"},
    {"deviceClassName": ""},
)
"""What the API server would not have let in, or what a later version may have."""


def _selector(dice: Dice, driver: str) -> str:
    if dice.one_in(20):
        return dice.pick(_ANY)
    if dice.rare(15):
        return dice.pick(_RARE)
    return dice.pick(SELECTORS[driver])


def _toleration(dice: Dice) -> Json:
    toleration: Json = {"operator": dice.pick(["Exists", "Equal"])}
    if dice.one_in(2):
        toleration["key"] = dice.pick(["example.com/unhealthy", "example.com/maintenance"])
    if toleration["operator"] == "Equal" and dice.one_in(2):
        toleration["value"] = dice.pick(["a", "b"])
    if dice.one_in(2):
        toleration["effect"] = dice.pick(["NoSchedule", "NoExecute"])
    if dice.one_in(4):
        toleration["tolerationSeconds"] = 60
    return toleration


def _capacity(dice: Dice, driver: str) -> Json:
    name = {CPU: "cpu", NIC: "bandwidth"}.get(driver, "memory")
    small = ("0", "1", "1", "2", "2", "3", "4", "250m", "300m", "2500m")
    large = ("1Ki", "1024", "1Gi", "1500Mi", "1G", "2G")
    impossible = ("9E", "-1")
    if dice.one_in(30):
        requirements: Json = {name: dice.pick(impossible)}
    elif dice.small and not dice.one_in(20):
        requirements = {name: dice.pick(small)}
    else:
        requirements = {name: dice.pick((*small, *large))}
    if dice.one_in(10):
        requirements["queues"] = "1"
    return requirements
