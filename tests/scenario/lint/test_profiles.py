"""A driver profile that cannot work is found by lint; what the shipped scenarios need is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.scenario.documents.yamlfile import read_documents
from conformance.scenario.lint.files import lint_documents

PROFILE = """\
apiVersion: dra-conformance/v1
kind: DriverProfile
metadata: {name: fpga.acme.example}
spec:
  driver: fpga.acme.example
  classes:
    gpu:
      name: fpga.acme.example
      spec: {selectors: [{cel: {expression: 'device.driver == "fpga.acme.example"'}}]}
  selectors:
    match: device.driver == "fpga.acme.example"
    noMatch: device.driver == "nobody.acme.example"
  probe:
    env: ^FPGA_(?P<device>.+)=1$
"""


def lint(tmp_path: Path, text: str) -> list[str]:
    file = tmp_path / "profile.yaml"
    file.write_text(text, encoding="utf-8")
    return [line.text.removeprefix(f"{file}:") for line in lint_documents(read_documents(file))]


def test_a_right_profile_is_not_complained_about(tmp_path: Path) -> None:
    assert lint(tmp_path, PROFILE) == []


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        pytest.param(
            "  probe:",
            "  stimulus: {file: ../control, health: {Healthy: [well]}}\n  probe:",
            "13: $.spec.stimulus.file: ",
            id="a file elsewhere",
        ),
        pytest.param(
            "  probe:",
            "  stimulus: {file: control, health: {Unhealthy: [break]}}\n  probe:",
            "13: $.spec.stimulus.health: must define how a device gets Healthy again",
            id="a stimulus that cannot be undone",
        ),
        pytest.param(
            "      name: fpga.acme.example",
            "      name: NOT A NAME",
            "8: $.spec.classes.gpu.name: a lowercase RFC 1123 subdomain must consist of",
            id="class name",
        ),
        pytest.param(
            "  driver: fpga.acme.example",
            "  driver: FPGA",
            "5: $.spec.driver: a lowercase RFC 1123 subdomain must consist of",
            id="driver name",
        ),
        pytest.param(
            'match: device.driver == "fpga.acme.example"',
            "match: device.drivr == 1",
            "11: $.spec.selectors.match: is not valid CEL: undefined field 'drivr' (line 1, column",
            id="selector",
        ),
        pytest.param(
            "'device.driver == \"fpga.acme.example\"'",
            "device.driver ==",
            "9: $.spec.classes.gpu.spec.selectors[0].cel.expression: is not valid CEL: Syntax",
            id="selector of a class",
        ),
        pytest.param(
            "{selectors: [",
            "{selctors: [",
            "9: $.spec.classes.gpu.spec.selctors: unknown field 'selctors'; did you mean select",
            id="field of a class",
        ),
        pytest.param(
            '    noMatch: device.driver == "nobody.acme.example"\n',
            "",
            "4: $.spec: warning: shipped scenarios use ${selector.noMatch}, which this profile",
            id="a selector that the shipped scenarios use",
        ),
        pytest.param(
            "    gpu:\n",
            "    fpga:\n",
            "4: $.spec: warning: shipped scenarios use ${class.gpu}, which this profile does",
            id="the class that the shipped scenarios use",
        ),
        pytest.param(
            "  probe:\n    env: ^FPGA_(?P<device>.+)=1$\n",
            "",
            "4: $.spec.probe: warning: neither env, deviceNodes, ways nor requestEnv: no container",
            id="no probe",
        ),
    ],
)
def test_a_mistake_is_told_with_its_place(old: str, new: str, says: str, tmp_path: Path) -> None:
    assert old in PROFILE
    [line] = lint(tmp_path, PROFILE.replace(old, new))
    assert line.startswith(says)


ONE_PROBE = "  probe:\n    env: ^FPGA_(?P<device>.+)=1$\n"


@pytest.mark.parametrize(
    ("way", "says"),
    [
        ("kind: mounts", None),
        ("kind: mounts, attribute: mac", None),
        (
            "kind: mounts, attribute: mca",
            ".attribute: warning: no device below simulated has the at",
        ),
        ("kind: mounts, table: {a: fpga-1}", ".table.a: warning: no device below simulated has th"),
        ("run: [a, b]", ".run: "),
        ("kind: mounts, file: /a", ": give one of kind, file and run"),
        ("kind: mounts, line: '['", ".line: is not a regular expression"),
        ("kind: mount", ".kind: "),
    ],
)
def test_a_way_is_checked(way: str, says: str | None, tmp_path: Path) -> None:
    device = "{name: fpga-0, attributes: {mac: {string: a}}}"
    simulated = f"{{devices: [{device}], env: {{'FPGA_{{device}}': '1'}}}}"
    more = f"    ways: {{way: {{{way}}}}}\n  simulated: {simulated}\n"
    found = lint(tmp_path, PROFILE.replace(ONE_PROBE, ONE_PROBE + more))
    assert bool(found) is (says is not None)
    assert all(one.startswith(f"15: $.spec.probe.ways.way{says}") for one in found)


@pytest.mark.parametrize(
    ("simulated", "says"),
    [
        ("ways: {wya: ['{device}']}", "simulated: ways.wya: did you mean way"),
        ("ways: {way: ['{device} {mac}']}", "{mac}: the device fpga-0 has no attribute mac"),
        ("ways: {way: [fpga-1]}", "probe: reads ['fpga-1'] from the way that simulated shows of"),
    ],
)
def test_what_a_way_reads_must_be_what_is_simulated(
    simulated: str, says: str, tmp_path: Path
) -> None:
    own = "  probe: {ways: {way: {kind: mounts}}}\n  simulated: {devices: [{name: fpga-0}], "
    [line] = lint(tmp_path, PROFILE.replace(ONE_PROBE, f"{own}{simulated}}}\n"))
    assert says in line
