"""``deviceNodes``: device files can be opened, have numbers of their own, and others cannot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from conformance.scenario.driver.devicefiles import (
    NAME,
    OTHERS,
    SCRIPT,
    DeviceFile,
    format_device_files,
    read_device_files,
)
from conformance.scenario.driver.profile import load_profile
from conformance.scenario.expectations.base import Cluster
from conformance.scenario.expectations.container_hardware import DeviceNodesExpectation
from kube.observations import ContainerView
from tests.scenario.shipped import ROOT

PROFILE = load_profile("nvml-dra-driver", ROOT / "drivers")
EPERM = "sh: 1: cannot open /dev/x: Operation not permitted"
EACCES = "sh: 1: cannot open /dev/x: Permission denied"
ENXIO = "open /dev/x: no such device or address"


def other(number: str, said: str = EPERM) -> DeviceFile:
    return DeviceFile(f"{OTHERS}{number.replace(':', '-')}", number, said)


CONTROL = DeviceFile("/dev/nvidiactl", "195:255")
OWN = DeviceFile("/dev/nvidia0", "195:0")
NEXT = DeviceFile("/dev/nvidia1", "195:1")


@pytest.mark.parametrize(
    ("files", "found"),
    [
        ([CONTROL, OWN, other("195:1")], "as described"),
        ([CONTROL, DeviceFile("/dev/nvidia0", "195:0", ENXIO), other("195:1")], "as described"),
        ([CONTROL, OWN, other("195:255", ""), other("195:0", "")], "as described"),
        ([DeviceFile("/dev/nvidia0", "10:7")], "as described"),
        ([CONTROL, other("195:1")], "has no device file of the driver"),
        ([DeviceFile("/dev/nvidia0", "195:0", EPERM), other("195:1")], "may not open /dev/nvidia0"),
        ([DeviceFile("/dev/nvidia0", "195:0", EACCES), other("195:1")], "as described"),
        ([OWN, other("195:1", EACCES)], "as described"),
        ([OWN, DeviceFile("/dev/nvidia1", "195:0"), other("195:1")], "which are both 195:0"),
        ([OWN, other("195:1", ""), other("195:2")], "may open 195:1, which it was not given"),
        ([OWN, other("195:3", ENXIO)], "may open 195:3, which it was not given"),
        ([OWN], "cannot make device files"),
        (None, "does not run ${probe.open}"),
    ],
)
def test_a_container_opens_its_own_files_alone(files: list[DeviceFile] | None, found: str) -> None:
    seen = evaluate({"p/a": files}, noOthers=True)
    assert seen.holds == (found == "as described")
    assert found in seen.finding


def test_who_need_not_make_files_need_not_be_refused_others() -> None:
    assert evaluate({"p/a": [OWN]}).holds


@pytest.mark.parametrize(
    ("one", "two", "relation", "found"),
    [
        ([OWN], [OWN], "same", "as described"),
        ([OWN], [OWN], "different", "p/a and p/b both have 195:0"),
        ([OWN], [NEXT], "different", "as described"),
        ([CONTROL, OWN], [CONTROL, NEXT], "different", "as described"),
        ([OWN], [NEXT], "same", "p/a has 195:0, p/b 195:1"),
        ([OWN, NEXT], [NEXT], "different", "p/a and p/b both have 195:1"),
    ],
)
def test_numbers_of_containers_are_compared(
    one: list[DeviceFile], two: list[DeviceFile], relation: str, found: str
) -> None:
    seen = evaluate({"p/a": one, "p/b": two}, relation=relation)
    assert seen.holds == (found == "as described")
    assert found in seen.finding


def test_shares_of_a_device_have_its_files_in_common() -> None:
    files = {"p/a": [OWN], "p/b": [OWN]}
    shared = [RESULT | {"shareID": "s"}]
    assert evaluate(files, shared, relation="different").holds
    assert not evaluate(files, [RESULT], relation="different").holds


def test_an_image_without_the_commands_is_told() -> None:
    view = ContainerView({}, (), {NAME: "sh: stat: not found\n"})
    cluster = SimpleNamespace(profile=PROFILE, observe=SimpleNamespace(container=lambda *_: view))
    wanted = DeviceNodesExpectation.model_validate({"deviceNodes": {"seenBy": ["p/a"]}})
    assert "p/a says sh: stat: not found" in wanted.evaluate(cast("Cluster", cluster)).finding


def test_what_is_printed_is_read_back() -> None:
    files = [CONTROL, DeviceFile("/dev/nvidia0", "195:0", EPERM), other("195:1")]
    assert read_device_files("find: /dev/fd: no\n" + format_device_files(files)) == files


def test_the_command_fits_into_a_probe() -> None:
    assert " 2>&1;" not in SCRIPT
    assert "'" not in SCRIPT


POD = {
    "metadata": {"name": "p"},
    "spec": {
        "containers": [{"name": n, "resources": {"claims": [{"name": "gpu"}]}} for n in ("a", "b")]
    },
}
RESULT = {"driver": PROFILE.driver, "pool": "n0", "device": "gpu-0", "request": "gpu"}


def evaluate(
    files: Mapping[str, list[DeviceFile] | None], results: Sequence[Any] = (), **wanted: Any
) -> Any:
    views = {
        entry: ContainerView({}, (), {} if found is None else {NAME: format_device_files(found)})
        for entry, found in files.items()
    }
    cluster = SimpleNamespace(
        profile=PROFILE,
        observe=SimpleNamespace(container=lambda pod, name: views[f"{pod}/{name}"]),
        get=lambda _kind, _name: POD,
        claim_of=lambda _pod, _claim: {"status": {"allocation": {"devices": {"results": results}}}},
    )
    document = {"deviceNodes": {"seenBy": [*files], **wanted}}
    return DeviceNodesExpectation.model_validate(document).evaluate(cast("Cluster", cluster))
