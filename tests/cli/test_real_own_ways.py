"""Drivers whose devices show in their own way, on real nodes: only right ones are certified."""

from __future__ import annotations

import copy
import os
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from conformance.scenario.selection import Selection, select
from tests.cli.simulated_nodes import call, certified, records, running_cluster
from tests.scenario.shapes import OWN_WAYS
from tests.scenario.test_own_ways import ONE_EACH

CORE = ("--level", "core", "--tier", "node", "-n", "4")
pytestmark = [
    pytest.mark.needs_root,
    pytest.mark.needs_go,
    pytest.mark.slow,
    pytest.mark.everything,
]

ROOT = Path(__file__).resolve().parents[2]
ISOLATION = "core/isolation-pod-without-claim"


def real(shape: str) -> dict[str, Any]:
    """The profile of a shape, on a machine that may have fewer CPUs."""
    profile: dict[str, Any] = yaml.safe_load(Path(OWN_WAYS[shape]).read_text())
    spec = profile["spec"]
    spec["traits"] = [*spec["traits"], "refusesDevicesInUse"]
    spec["cannot"] = {}
    if shape in ONE_EACH:
        spec["cannot"]["severalDevicesOnOneNode"] = "A node has one device of this driver."
    if shape == "network":
        spec["cannot"] |= {
            "claimOfSeveralPods": "The interface is in the network namespace of one pod.",
            "deviceOfOneContainer": "All containers of a pod share its network namespace.",
        }
    if shape == "cpu":
        del spec["simulated"]["devices"][len(os.sched_getaffinity(0)) :]
    return profile


def seen(profile: dict[str, Any]) -> dict[str, Any]:
    """The same, as it is seen where the image has no ``ip``: the kernel lists addresses, too."""
    found = copy.deepcopy(profile)
    if "address" in (ways := found["spec"]["probe"]["ways"]):
        line, table = r" *\|-- (?P<device>192\.0\.2\.1)$", {"192.0.2.1": "rail-a"}
        ways["address"] = {"file": "/proc/net/fib_trie", "line": line, "table": table}
        found["spec"]["simulated"]["ways"]["address"] = ["|-- 192.0.2.1"]
    return found


def run(name: str, folder: Path, driver: Path, *scenarios: str) -> int:
    done = call(
        *("run", "--target", "cluster", "--cluster", "local", "--name", name),
        *("--driver", str(driver), "-o", str(folder), *scenarios),
        cwd=folder.parent,
    )
    return done.returncode


@pytest.mark.parametrize(
    ("shape", "nodes", "changes", "says"),
    [
        ("network", 2, [("{ifName}", "net9")], "ifName=net9"),
        # A driver that knows nothing of CPUs keeps a container to none.
        ("cpu", 1, [("kind: cpus", "kind: memory")], "by its kernel"),
        ("shared", 1, [("first", "second")], "'second' (not in the table)"),
        ("single", 2, [("/disks/{device}", "/disks/another")], "another"),
    ],
)
def test_a_driver_is_certified_unless_something_else_is_shown(
    shape: str, nodes: int, changes: list[tuple[str, str]], says: str, tmp_path: Path
) -> None:
    profile, of_driver = tmp_path / "profile.yaml", tmp_path / "driver.yaml"
    described = real(shape)
    of_driver.write_text(yaml.safe_dump(described, sort_keys=False))
    profile.write_text(yaml.safe_dump(seen(described), sort_keys=False))
    cannot = set(described["spec"]["cannot"])
    program = (sys.executable, "-m", "tests.cli.described_driver", str(of_driver))
    command = shlex.join(("/usr/bin/env", f"PYTHONPATH={ROOT}", *program))
    name = f"{shape}{os.getpid()}"
    options = ("--nodes", str(nodes), "--driver", str(profile), "--driver-command", command)
    with running_cluster(name, tmp_path, *options):
        core = select((), Selection(level=("core",), tier=("node",)))
        assert run(name, tmp_path / "out", profile, "--compare", *CORE) == 0
        ran = records(tmp_path / "out", "scenario")
        skipped = {one["scenario"] for one in ran if one["outcome"] == "skipped"}
        assert {one["outcome"] for one in ran} <= {"passed", "skipped"}
        needs = {item.id: item.scenario.spec.requires.of_the_driver for item in core}
        assert skipped == {name for name, needed in needs.items() if cannot.intersection(needed)}
        assert len(ran) == len(core)
        results = certified(tmp_path / "out", "Tests", shape, "1", command)
        assert results == {"dra-core-cluster": "partial", "dra-core-driver": "success"}
        for old, new in changes:
            text = of_driver.read_text()
            assert old in text
            of_driver.write_text(text.replace(old, new))
        assert run(name, tmp_path / "wrong", profile, "-k", ISOLATION) == 1
        [one] = records(tmp_path / "wrong", "scenario")
        assert says in one["message"]
