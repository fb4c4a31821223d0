"""`dra-conformance new`: what it writes lints without a word and runs on the reference."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from conformance.scenario.driver.probe_ways import published_attributes
from conformance.scenario.driver.profile import load_profile
from tests.cli.conftest import Call

DRIVER = "fpga.acme.example.com"


def slices(*devices: str, version: str = "v1", node: str = "a") -> str:
    return f"""
apiVersion: resource.k8s.io/{version}
kind: ResourceSlice
metadata: {{name: {node}-{DRIVER}}}
spec:
  driver: {DRIVER}
  nodeName: {node}
  pool: {{name: {node}, generation: 1, resourceSliceCount: 1}}
  devices: [{", ".join(devices)}]
"""


def new_profile(command: Call, folder: Path, *arguments: object) -> Path:
    file = folder / "profile.yaml"
    assert command("new", "profile", DRIVER, "-o", file, *arguments)[0] == 0
    return file


def test_what_is_written_lints_and_runs(tmp_path: Path, command: Call) -> None:
    profile, scenario = new_profile(command, tmp_path), tmp_path / "sees-its-device.yaml"
    assert command("new", "scenario", "sees-its-device", "-o", scenario)[0] == 0
    assert "0 errors, 0 warnings" in command("lint", profile, scenario)[1]
    out = tmp_path / "results"
    assert command("run", "--driver", profile, scenario, "-o", out)[0] == 0
    assert command("run", "--driver", profile, "--level", "core", "-o", out)[0] == 0


def test_devices_of_published_slices_are_taken_over(tmp_path: Path, command: Call) -> None:
    published = tmp_path / "slices.yaml"
    first = (
        '{name: f-0, attributes: {board: {string: A"10}, a/b: {int: 1}}, taints: [{key: k}],'
        " capacity: {memory: {value: 1Gi}}}"
    )
    published.write_text(slices(first, "{name: f-1}") + "---" + slices("{name: x}", node="b"))
    profile = new_profile(command, tmp_path, "--slices", published)
    spec = load_profile(str(profile), tmp_path).spec
    assert spec.simulated.devices == (
        {
            "name": "f-0",
            "attributes": {"board": {"string": 'A"10'}, "a/b": {"int": 1}},
            "capacity": {"memory": {"value": "1Gi"}},
        },
        {"name": "f-1"},
    )
    assert (spec.attributes, spec.capacity) == ({"board": "board"}, {"memory": "memory"})
    assert spec.traits == ("nodeLocal",)
    assert spec.selectors["match"] == f'device.attributes["{DRIVER}"].board == "A\\"10"'
    assert "0 errors, 0 warnings" in command("lint", profile)[1]


def test_a_way_is_guessed_from_the_names_of_attributes_and_said_to_be(
    tmp_path: Path, command: Call
) -> None:
    published = tmp_path / "slices.yaml"
    port = "{name: %s, attributes: {dra.net/ifName: {string: %s}, mac: {string: '02:0%s'}}}"
    shared = "{name: s, allowMultipleAllocations: true}"
    published.write_text(slices(port % ("a", "net0", 1), port % ("b", "net1", 2), shared))
    profile = new_profile(command, tmp_path, "--slices", published)
    assert "CHANGE: how a container shows which devices it got. Guessed" in profile.read_text()
    spec = load_profile(str(profile), tmp_path).spec
    assert {name: way.attribute for name, way in spec.probe.ways.items()} == {
        "ifName": "dra.net/ifName",
        "mac": "mac",
    }
    lines = ["lo mac 00:00", "eth0 mac 0a:00", "net1 mac 02:02"]
    known = published_attributes(spec.simulated.devices, DRIVER)
    assert all(way.find_device_names(lines, known) == {"b"} for way in spec.probe.ways.values())
    assert spec.simulated.devices[2]["allowMultipleAllocations"] is True
    assert "0 errors, 0 warnings" in command("lint", profile)[1]


def test_a_list_as_kubectl_prints_it_is_read(tmp_path: Path, command: Call) -> None:
    published = tmp_path / "slices.yaml"
    item = yaml.safe_load(slices("{name: f0, attributes: {fw: {version: 1.2.3}}}"))
    published.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": [item]}))
    spec = load_profile(str(new_profile(command, tmp_path, "--slices", published)), tmp_path).spec
    assert 'fw.compareTo(semver("1.2.3")) >= 0' in spec.selectors["match"]


@pytest.mark.parametrize(
    ("arguments", "content", "said"),
    [
        (["profile", "Not A Name"], "", "the name 'Not A Name'"),
        (["scenario", "../outside"], "", "the name '../outside'"),
        (["profile", DRIVER, "--slices", "slices.yaml"], "{}", "no device in a ResourceSlice"),
        (["profile", DRIVER, "--slices", "slices.yaml"], slices(), "no device in a ResourceSlice"),
        (
            ["profile", DRIVER, "--slices", "slices.yaml"],
            slices("{name: f}", version="v1beta1"),
            "kubectl get resourceslices.v1.resource.k8s.io -o yaml",
        ),
        (["profile", DRIVER, "--slices", "slices.yaml"], "a: [", "slices.yaml:1"),
        (["profile", DRIVER, "--slices", "slices.yaml"], slices("{no: name}"), "device without"),
        (["profile", DRIVER, "--slices", "nowhere.yaml"], "", "nowhere.yaml"),
    ],
)
def test_what_is_refused(
    arguments: list[str],
    content: str,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: Call,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("slices.yaml").write_text(content)
    code, _, err = command("new", *arguments)
    assert (code, said in err) == (2, True), err
    assert [file.name for file in tmp_path.iterdir()] == ["slices.yaml"]


def test_no_file_is_written_over(tmp_path: Path, command: Call) -> None:
    file = new_profile(command, tmp_path)
    file.write_text("mine")
    code, _, err = command("new", "profile", DRIVER, "-o", file)
    assert code == 2
    assert "already exists" in err
    assert file.read_text() == "mine"
