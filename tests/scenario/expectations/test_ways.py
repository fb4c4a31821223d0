"""Ways in which containers show devices: what a shell prints, and whom it names."""

from __future__ import annotations

import json
import os
import subprocess
from typing import Any

import pytest
from pydantic import ValidationError

from conformance import probe
from conformance.scenario.driver.probe_ways import MOST_NUMBERS, SCRIPTS, Way, parse_number_set
from conformance.scenario.driver.probe_ways import published_attributes as published
from conformance.scenario.driver.probing import Probe
from kube.observations import ContainerView

DRIVER = "net.example.com"
KNOWN = published(
    [
        {
            "name": "port-a",
            "attributes": {
                f"{DRIVER}/mac": {"string": "02:00:00:00:00:01"},
                "up": {"bool": True},
                "vlans": {"ints": [3, 4]},
            },
        },
        {"name": "port-b", "attributes": {"mac": {"string": "02:00:00:00:00:02"}}},
    ],
    DRIVER,
)
RUN: dict[str, Any] = {"run": "show"}


@pytest.mark.parametrize(
    ("way", "lines", "devices"),
    [
        ({"line": r"dev (?P<device>\S+)"}, ["dev port-a up", "devport-b", "a dev x"], ["port-a"]),
        ({"line": r"\w+"}, ["x1 and more"], ["x1"]),
        ({"line": r"eth(?P<n>\d)", "deviceName": "port-{n}"}, ["eth3"], ["port-3"]),
        ({"attribute": "mac"}, ["02:00:00:00:00:02"], ["port-b"]),
        ({"attribute": "mac"}, ["02:ff:ff:ff:ff:ff"], ["mac=02:ff:ff:ff:ff:ff"]),
        ({"attribute": "up"}, ["true"], ["port-a"]),
        ({"attribute": "vlans", "set": True}, ["3-4"], ["port-a"]),
        ({"attribute": "absent"}, ["port-a"], ["absent=port-a"]),
        (
            {"table": {"card0": "port-a"}},
            ["card0", "card1"],
            ["port-a", "'card1' (not in the table)"],
        ),
        ({"set": True, "deviceName": "cpu-{0}"}, ["0-2,7"], ["cpu-0", "cpu-1", "cpu-2", "cpu-7"]),
        ({"set": True, "line": "CPUS=(?P<device>.*)"}, ["CPUS="], []),
        ({"set": True}, ["0-1,x"], ["0-1,x"]),
        ({}, ["", "port-a"], ["port-a"]),
    ],
)
def test_a_line_names_devices(way: dict[str, Any], lines: list[str], devices: list[str]) -> None:
    assert Way.model_validate(RUN | way).find_device_names(lines, KNOWN) == set(devices)


@pytest.mark.parametrize(
    ("way", "says"),
    [
        ({}, "give one of kind, file and run"),
        ({"kind": "cpus", "file": "/a"}, "give one of kind, file and run"),
        ({"kind": "gpus"}, "kind"),
        ({"file": "/a; reboot"}, "file"),
        ({"file": "relative"}, "file"),
        ({"run": ["show"]}, "run"),
        ({"run": "a'b"}, "run"),
        ({"run": "a\nb"}, "run"),
        (RUN | {"table": {"a": ["port-a"]}}, "table"),
        (RUN | {"table": {"a": "b"}, "attribute": "c"}, "give one of deviceName, attribute"),
        (RUN | {"line": "("}, "is not a regular expression"),
        (RUN | {"deviceName": "port-{n}"}, "{n} is not one of {0}"),
        (RUN | {"deviceName": "{0:>999999999}"}, "{0} is not one of {0}"),
        (RUN | {"deviceName": "{0.__class__}"}, "is not one of {0}"),
        (RUN | {"deviceName": "{"}, "deviceName '{'"),
    ],
)
def test_a_way_that_cannot_work_is_refused(way: dict[str, Any], says: str) -> None:
    with pytest.raises(ValidationError) as refused:
        Way.model_validate(way)
    assert says in str(refused.value)


def test_a_set_is_not_longer_than_a_machine_can_have_cpus() -> None:
    assert len(list(parse_number_set("0-999999999,5"))) == MOST_NUMBERS


CPUS = {"kind": "cpus", "set": True, "deviceName": "cpu-{0}", "confirms": True}
OF_CPUS = Probe.model_validate({"env": "CPU_(?P<device>.*)=1", "ways": {"kernel": CPUS}})


@pytest.mark.parametrize(
    ("environment", "allowed", "seen"),
    [
        ({}, "0-63", {"environment variables": set()}),
        ({"CPU_cpu-3": "1"}, "3", {"environment variables": {"cpu-3"}, "kernel": {"cpu-3"}}),
        ({"CPU_cpu-3": "1"}, "4", {"environment variables": {"cpu-3"}, "kernel": {"cpu-4"}}),
    ],
)
def test_what_confirms_says_nothing_of_a_container_without_devices(
    environment: dict[str, str], allowed: str, seen: dict[str, set[str]]
) -> None:
    view = ContainerView(environment, (), {f"{DRIVER}/kernel": allowed})
    assert OF_CPUS.read_devices(view, DRIVER, {}) == seen


def test_there_must_be_something_to_confirm() -> None:
    with pytest.raises(ValidationError, match=r"ways\.kernel confirms what another way shows"):
        Probe.model_validate({"ways": {"kernel": CPUS}})


@pytest.mark.parametrize(
    ("content", "devices"),
    [
        (json.dumps({"requests": [{"devices": [{"name": "port-a"}, {"name": "port-b"}]}]}), 2),
        ("not json", 1),
        ("[" * 100_000, 1),
        ('{"requests": [{"devices": [3]}]}', 1),
    ],
)
def test_metadata_files_name_devices(content: str, devices: int) -> None:
    path = f"{probe.METADATA}/resourceclaims/c/r/{DRIVER}-metadata.json"
    other = path.replace(DRIVER, "other.example.com")
    view = ContainerView({}, (), {path: content, other: '{"requests": [{"devices": ["x"]}]}'})
    found = Probe.model_validate({"ways": {"told": {"kind": "metadata"}}}).read_devices(
        view, DRIVER, {}
    )
    assert found["told"] == ({"port-a", "port-b"} if devices == 2 else {path})


def printed(*commands: str) -> dict[str, str]:
    """What a shell prints as a container would."""
    words = probe.Probe(holds=False, commands={f"d/{i}": c for i, c in enumerate(commands)}).words
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True)
    parsed = probe.parse(done.stdout)
    assert parsed is not None
    return parsed.outputs


def test_a_shell_prints_what_the_kernel_says() -> None:
    interfaces, cpus, memory, mounts = printed(
        *(SCRIPTS[kind] for kind in ("interfaces", "cpus", "memory", "mounts"))
    ).values()
    assert "lo mac 00:00:00:00:00:00" in interfaces.splitlines()
    assert set(parse_number_set(cpus.strip())) == os.sched_getaffinity(0)
    assert memory.startswith("mems 0")
    assert any(line.startswith("/proc / proc proc ") for line in mounts.splitlines())


def test_what_is_not_there_says_nothing() -> None:
    ways = ({"file": "/etc/no/such*"}, {"run": "no-such-command"}, {"file": "/proc/self/comm"})
    scripts = [Way.model_validate(way).script for way in ways]
    outputs = printed(*(script for script in scripts if script is not None)).values()
    assert [output.strip() for output in outputs] == ["", "", "cat"]


def test_a_command_is_bounded_and_does_not_spoil_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "SECONDS", 0.2)
    monkeypatch.setattr(probe, "BYTES", 1000)
    endless, slow, last = printed("while true; do echo aaaa; done", "sleep 50", "echo b").values()
    assert (len(endless.strip()), slow.strip(), last.strip()) == (999, "", "b")
