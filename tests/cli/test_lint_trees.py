"""`lint` of whole repositories: charts and other tools' files, and files that cannot be read."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from conformance.scenario.documents.yamlfile import MAX_BYTES
from tests.cli.conftest import Call
from tests.go_programs import build_helm

CLASS = "apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: %s}\n"
CHART = "apiVersion: v2\nname: driver\nversion: 0.1.0\n"


def write(path: str, text: str) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(text, encoding="utf-8")


@pytest.fixture
def chart(call: Call) -> None:
    """A driver's chart, with a dependency, beside a demo."""
    write("deploy/driver/Chart.yaml", CHART)
    write("deploy/driver/values.yaml", "image: x\n")
    write("deploy/driver/values-test.yaml", "image: y\n")
    write("deploy/driver/templates/class.yaml", CLASS % "{{ .Values.name }}")
    write("deploy/driver/templates/plain.yaml", CLASS % "Plain")
    write("deploy/driver/charts/inner/Chart.yaml", CHART)
    write("deploy/driver/charts/inner/templates/x.yaml", "{{ if true }}\na: b\n{{ end }}\n")
    write("demo/class.yaml", CLASS % "gpu.example.org")


@pytest.mark.usefixtures("chart")
def test_a_chart_is_helms_but_for_what_is_plain(call: Call) -> None:
    done = call("lint", ".")
    first, *others = done.out.splitlines()
    assert first.startswith(
        'deploy/driver/templates/plain.yaml:3: $.metadata.name: Invalid value: "P'
    )
    assert others == [
        "deploy/driver: note: 6 files of a Helm chart not checked; --helm renders it",
        "2 files checked, 1 error, 0 warnings; 6 files of other tools skipped",
    ]
    assert call("lint", "deploy/driver/Chart.yaml", "deploy/driver/values.yaml").code == 0


@pytest.mark.usefixtures("chart")
@pytest.mark.parametrize(
    ("script", "expected"),
    [
        (
            f"cat <<EOF\n---\n# Source: driver/templates/class.yaml\n{CLASS % 'A_b'}EOF",
            'driver/templates/class.yaml (rendered):4: $.metadata.name: Invalid value: "A_b"',
        ),
        (
            "echo 'Error: values must have x' >&2; exit 1",
            "failed: Error: values must have x; values",
        ),
        ("printf 'a: ['", "deploy/driver (rendered):1: is not YAML"),
    ],
)
def test_what_helm_renders_is_checked(
    script: str, expected: str, call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    helm = tmp_path / "bin/helm"
    write(
        str(helm), f'#!/bin/sh\n[ "$*" = "template checked {tmp_path}/deploy/driver" ] || exit 9\n'
    )
    with helm.open("a", encoding="utf-8") as opened:
        opened.write(f"{script}\n")
    helm.chmod(0o755)
    monkeypatch.setenv("PATH", f"{helm.parent}:{os.environ['PATH']}")
    done = call("lint", "--helm", "deploy", "demo", "--exclude", "plain.yaml")
    assert (done.code, expected in done.out, "note" in done.out) == (2, True, False), done
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "there is no `helm` command" in call("lint", "--helm", "deploy").out


def test_a_file_that_cannot_be_read_is_one_error_of_its_own(call: Call) -> None:
    write("a/good.yaml", CLASS % "A")
    Path("a/gone.yaml").symlink_to("nothing")
    Path("a/loop.yaml").symlink_to("loop.yaml")
    Path("a/folder.yaml").mkdir()
    os.mkfifo("a/pipe.yaml")
    write("a/huge.yaml", "{{ " + "x" * MAX_BYTES)
    write("a/binary.yaml", "a: \0\n")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("a/socket.yaml")
        done = call("lint", "a")
    assert done.code == 2
    assert [line.partition(": ")[0].partition(":")[0] for line in done.out.splitlines()] == [
        *(
            f"a/{name}.yaml"
            for name in ("binary", "gone", "good", "huge", "loop", "pipe", "socket")
        ),
        "7 files checked, 7 errors, 0 warnings",
    ]


TOOLS = Path(__file__).parent / "other_tools"
"""A small file of each kind that lies in repositories of drivers and is of another tool."""


@pytest.mark.parametrize("tool", sorted(path.name for path in TOOLS.iterdir()))
def test_other_tools_files_are_not_red(tool: str, call: Call) -> None:
    write(f"tree/{tool}", (TOOLS / tool).read_text(encoding="utf-8"))
    done = call("lint", "tree")
    assert (done.code, "0 errors, 0 warnings" in done.out) == (0, True), done


@pytest.mark.parametrize(
    "text",
    [
        # A driver makes objects of such files itself.
        CLASS % "{{ .Name }}" + "  {{- if .Labels }}\n  labels: {}\n",
        # A script fills in lines by envsubst.
        "apiVersion: eksctl.io/v1alpha5\nkind: ClusterConfig\nzones:\n${ZONES}\nnodes: []\n",
    ],
    ids=["Go", "envsubst"],
)
def test_a_template_outside_of_a_chart_is_said_to_be_one(text: str, call: Call) -> None:
    write("tree/daemon.tmpl.yaml", text)
    done = call("lint", "tree")
    assert (done.code, "daemon.tmpl.yaml: warning: is a template" in done.out) == (0, True), done
    assert call("lint", "tree/daemon.tmpl.yaml").code == 2


@pytest.mark.usefixtures("chart")
@pytest.mark.needs_clients
@pytest.mark.slow
@pytest.mark.everything
def test_what_helm_itself_renders_is_checked(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Helpers, a dependency, a hook, notes, a template that renders nothing, and a failure."""
    (tmp_path / "bin").mkdir()
    build_helm(tmp_path / "bin")
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    templates = Path("deploy/driver/templates")
    (templates / "plain.yaml").unlink()
    write("deploy/driver/values.yaml", "name: A_b\nadmin: false\n")
    write("deploy/driver/charts/inner/Chart.yaml", CHART.replace("driver", "inner"))
    write("deploy/driver/charts/inner/templates/x.yaml", CLASS % "{{ .Release.Name }}.Inner")
    write(f"{templates}/_helpers.tpl", '{{ define "of" }}{{ .Release.Name }}-gpu{{ end }}\n')
    hook = '{{ include "of" . }}, annotations: {helm.sh/hook: test}'
    write(f"{templates}/hook.yaml", CLASS % hook)
    write(f"{templates}/none.yaml", "{{ if .Values.admin }}\n" + CLASS % "x" + "{{ end }}\n")
    write(f"{templates}/NOTES.txt", "Installed {{ .Chart.Name }}: {\n")
    done = call("lint", "--helm", "deploy")
    first, second, last = done.out.splitlines()
    for line, source in ((first, "charts/inner/templates/x"), (second, "templates/class")):
        place = f"driver/{source}.yaml (rendered):4: $.metadata.name: Invalid value: "
        assert line.startswith(place), line
    assert last == "3 files checked, 2 errors, 0 warnings; 8 files of other tools skipped"
    write(f"{templates}/class.yaml", CLASS % '{{ required "say a name" .Values.none }}')
    assert "`helm template` failed: " in call("lint", "--helm", "deploy").out
