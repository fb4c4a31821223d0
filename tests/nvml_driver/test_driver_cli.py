"""The command line, as a process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from nvml_driver.cli import main
from nvml_driver.cluster.kube import KubeClient
from nvml_driver.errors import KubeError
from tests import programs
from tests.nvml_driver.helpers import makes_device_files
from tests.nvml_driver.stub_api import StubApi

COMMAND = [sys.executable, "-m", "nvml_driver"]


def call(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    environment = {
        name: value for name, value in os.environ.items() if name not in ("KUBECONFIG", "NODE_NAME")
    }
    return programs.ended([*COMMAND, *map(str, arguments)], env=environment, timeout=60)


def test_slices_prints_what_the_node_would_publish() -> None:
    done = call("slices", "--simulate", "a100-40x8", "--node-name", "n1", "--driver-name", "d.io")
    assert (done.returncode, done.stderr) == (0, "")
    [slice_] = yaml.safe_load_all(done.stdout)
    assert slice_["kind"] == "ResourceSlice"
    assert slice_["spec"]["driver"] == "d.io"
    assert slice_["spec"]["pool"] == {"name": "n1", "generation": 1, "resourceSliceCount": 1}
    assert [device["name"] for device in slice_["spec"]["devices"]] == [
        f"gpu-{minor}" for minor in range(8)
    ]


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["slices", "--simulate", "t5x5"], 2, "a100-40x8, "),
        (["slices", "--symulate", "t4x4"], 2, "No such option"),
        (
            ["run", "--simulate", "t4x4", "--kubeconfig", "/absent"],
            1,
            "/absent cannot be used: it does not exist",
        ),
        (["run", "--simulate", "t4x4"], 1, "no --kubeconfig was given"),
        (["run", "--container-prefix", "other"], 2, "requires simulated GPUs (--simulate)"),
        (["run", "--container-prefix", "/x"], 2, "starting with a letter"),
        (["run", "--metrics-port", "99999"], 2, "less than or equal to 65535"),
        (["run", "--driver-name", "../../x"], 2, "'../../x' must be a DNS subdomain"),
        (["slices", "--driver-name", "A B"], 2, "'A B' must be a DNS subdomain"),
        (["slices", "--driver-name", "d" * 64], 2, "at most 63 characters"),
        (["slices", "--node-name", "x/y"], 2, "'x/y' must be a DNS subdomain"),
        (["slices", "--simulate", "/dev/zero"], 2, "it is not a regular file"),
        (["slices", "--simulate", "{nested}"], 2, "{nested}: not readable as JSON"),
        (["run", "--container-driver-root", "{broken}"], 1, "cannot load {broken}/usr/lib64/lib"),
    ],
)
def test_an_error_is_one_message(
    arguments: list[str],
    status: int,
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    library = tmp_path / "usr" / "lib64" / "libnvidia-ml.so.1"
    library.parent.mkdir(parents=True)
    library.write_text("not a library")
    nested = tmp_path / "nested.json"
    nested.write_text("[" * 200_000)

    def filled(text: str) -> str:
        return text.replace("{broken}", str(tmp_path)).replace("{nested}", str(nested))

    code: object
    if status == 1:  # a command that has begun its work: NVML is loaded once in a process
        done = call(*map(filled, arguments))
        told, code = (done.stdout, done.stderr), done.returncode
    else:
        monkeypatch.setattr(sys, "argv", ["nvml-dra-driver", *map(filled, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        told, code = capsys.readouterr(), ended.value.code
    assert code == status
    assert told[0] == ""
    assert filled(message) in told[1]
    assert "Traceback" not in told[1]


CLUSTER = {"name": "a", "cluster": {"server": "https://127.0.0.1:1"}}
CONTEXT = {"name": "a", "context": {"cluster": "a", "user": "a"}}
USER = {"name": "a", "user": {"token": "t"}}
KUBECONFIG: dict[str, object] = {
    "current-context": "a",
    "clusters": [CLUSTER],
    "contexts": [CONTEXT],
    "users": [USER],
}


def served_by(server: object) -> dict[str, object]:
    return KUBECONFIG | {"clusters": [{"name": "a", "cluster": {"server": server}}]}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "cannot be used"),
        ("clusters: [a: {", "cannot be used: while parsing a flow"),
        ("[" * 4_000, "recursion"),
        ("a: !!python/object/apply:os.system [touch x]", "could not determine a constructor"),
        ("- a\n- b\n", "cannot be used"),
        (json.dumps(KUBECONFIG | {"clusters": 5}), "cannot be used"),
        (json.dumps(KUBECONFIG | {"contexts": [3]}), "cannot be used"),
        (json.dumps({**KUBECONFIG, "current-context": "b"}), "b"),
        (json.dumps(served_by("not a url")), "must be an https:// URL, found 'not a url'"),
        (json.dumps(served_by("")), "must be an https:// URL"),
    ],
)
def test_a_kubeconfig_that_cannot_be_used_is_one_message(
    content: str, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(content)
    with pytest.raises(KubeError) as caught:
        KubeClient.connect(path)
    assert message in str(caught.value)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value).strip()


@pytest.mark.parametrize("place", ["/", "/dev/zero", "/absent"])
def test_a_kubeconfig_that_is_no_file_is_refused(place: str) -> None:
    with pytest.raises(KubeError, match="is not a regular file"):
        KubeClient.connect(Path(place))


def test_it_says_its_version() -> None:
    done = call("--version")
    assert done.returncode == 0
    assert done.stdout.startswith("nvml-dra-driver ")


@pytest.mark.needs_root
@makes_device_files
def test_run_serves_and_publishes_until_sigterm(api: StubApi, tmp_path: Path) -> None:
    with subprocess.Popen(
        [
            *COMMAND,
            *("run", "--node-name", "node-a", "--simulate", "t4x4"),
            *("--kubeconfig", str(api.kubeconfig(tmp_path))),
            *("--cdi-root", str(tmp_path / "cdi")),
            *("--kubelet-plugins-directory-path", str(tmp_path / "p")),
            *("--kubelet-registrar-directory-path", str(tmp_path / "r")),
            *("--metrics-port", "0", "--healthcheck-port", "0", "--logging-format", "json"),
        ],
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            api.wait(lambda api: len(api.slices()) == 1)
            assert (tmp_path / "r" / "gpu.nvidia.com-reg.sock").is_socket()
            assert (tmp_path / "p" / "gpu.nvidia.com" / "dev" / "nvidia3").is_char_device()
            process.send_signal(signal.SIGTERM)
            _, log = process.communicate(timeout=120)
        finally:
            process.kill()
    assert process.returncode == 0
    # gRPC's C library writes its own lines when the machine is slow.
    lines = [line for line in log.splitlines() if line.startswith("{")]
    messages = [json.loads(line)["msg"] for line in lines]
    assert "driver gpu.nvidia.com on node node-a: 4 simulated devices" in messages
    assert any(message.startswith("metrics on port ") for message in messages)
    assert any(message.startswith("health checks on port ") for message in messages)
    assert "Traceback" not in log
    assert not (tmp_path / "r" / "gpu.nvidia.com-reg.sock").exists()
    assert len(api.slices()) == 1


@pytest.mark.needs_root
@makes_device_files
def test_mig_devices_that_somebody_changes_are_published_as_a_new_generation(
    api: StubApi, tmp_path: Path
) -> None:
    def published(api: StubApi) -> set[str]:
        return {d["name"] for s in api.slices() for d in s["spec"].get("devices", ())}

    def generations(api: StubApi) -> set[int]:
        return {s["spec"]["pool"]["generation"] for s in api.slices()}

    control = tmp_path / "p" / "gpu.nvidia.com" / "nvml-control"
    with subprocess.Popen(
        [
            *COMMAND,
            *("run", "--node-name", "node-a", "--simulate", "mixed", "--dynamic-mig"),
            *("--kubeconfig", str(api.kubeconfig(tmp_path))),
            *("--cdi-root", str(tmp_path / "cdi")),
            *("--kubelet-plugins-directory-path", str(tmp_path / "p")),
            *("--kubelet-registrar-directory-path", str(tmp_path / "r")),
        ],
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            api.wait(lambda api: "gpu-1-mig-3g20gb-9-4" in published(api))
            assert "gpu-1-mig-2g10gb-14-4" not in published(api)
            before = max(generations(api))
            with control.open("a") as lines:
                lines.write("mig 1 destroy 2\n")
            api.wait(lambda api: "gpu-1-mig-2g10gb-14-4" in published(api))
            api.wait(lambda api: generations(api) == {before + 1})
            assert "gpu-1-mig-3g20gb-9-4" in published(api), "now as a partition"
            assert "gpu-1-mig-1g5gb-19-2" in published(api), "static still"
            process.send_signal(signal.SIGTERM)
            _, log = process.communicate(timeout=120)
        finally:
            process.kill()
    assert "Traceback" not in log
    assert "MIG devices were changed by another process" in log


@pytest.mark.parametrize("command", ["run", "slices", "dump"])
def test_help_fits_80_columns_and_shows_no_python_type(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["nvml-dra-driver", command, "--help"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code
    shown = capsys.readouterr().out
    assert [line for line in shown.splitlines() if len(line) > 80] == []
    assert "<str>" not in shown
