"""Drivers whose devices show in their own way, on real nodes: right ones are certified, others not.

What CDI cannot give is shown otherwise: interfaces by files, as an interface is the pod's and no
edit of a container; and the kernel's CPUs not at all, for which a driver needs NRI.
"""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

import pytest
import yaml

from conformance.scenario.selection import Selection, select
from tests.cli.simulated_nodes import call, certified, records, running_cluster
from tests.scenario.shapes import OWN_WAYS
from tests.scenario.test_own_ways import ONE_EACH, TWO_TOGETHER

CORE = ("--level", "core", "--tier", "node", "-n", "4")
pytestmark = [
    pytest.mark.needs_root,
    pytest.mark.needs_go,
    pytest.mark.slow,
    pytest.mark.everything,
]

ROOT = Path(__file__).resolve().parents[2]
ISOLATION = "core/isolation-pod-without-claim"


def real(shape: str) -> str:
    """The profile of a shape, with what a driver can show without NRI."""
    profile = yaml.safe_load(Path(OWN_WAYS[shape]).read_text())
    spec = profile["spec"]
    spec["traits"] = [*spec["traits"], "refusesDevicesInUse"]
    if shape in ONE_EACH:
        spec["cannot"] = {"severalDevicesOnOneNode": "A node has one device of this driver."}
    probe, simulated = spec["probe"], spec["simulated"]
    for name, way in list(probe["ways"].items()):
        if way.get("kind") == "interfaces":
            probe["ways"][name] = {**way, "kind": None, "file": f"/run/net/{name}"}
        elif way.get("kind") == "cpus":
            del probe["ways"][name], simulated["ways"][name]
    return yaml.safe_dump(profile, sort_keys=False)


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
        ("network", 2, [("{ifName}", "net9"), ("net0", "net9")], "ifName=net9"),
        # Its driver's own copy reads the first of two CPUs alone, and so takes them for right.
        ("cpu", 1, [("{indexes}", "{indexes},7"), (">.*)$", r">\d+)")], "cpudev007"),
        ("shared", 1, [("first", "second")], "'second' (not in the table)"),
        ("single", 2, [], ""),
    ],
)
def test_a_driver_is_certified_unless_something_else_is_shown(
    shape: str, nodes: int, changes: list[tuple[str, str]], says: str, tmp_path: Path
) -> None:
    profile, of_driver = tmp_path / "profile.yaml", tmp_path / "driver.yaml"
    for file in (profile, of_driver):
        file.write_text(real(shape))
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
        assert skipped == (TWO_TOGETHER if shape in ONE_EACH else set())
        assert len(ran) == len(core)
        results = certified(tmp_path / "out", "Tests", shape, "1", command)
        assert results == {"dra-core-cluster": "partial", "dra-core-driver": "success"}
        for old, new in changes:
            text = of_driver.read_text()
            assert old in text
            of_driver.write_text(text.replace(old, new))
        if changes:
            assert run(name, tmp_path / "wrong", profile, "-k", ISOLATION) == 1
            [one] = records(tmp_path / "wrong", "scenario")
            assert says in one["message"]
