"""The two programs of ours among a node's binaries: the pods' shell, and what keeps seccomp off."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from conformance import probe
from conformance.scenario.driver.probe_ways import SCRIPTS, parse_number_set
from localkube.binaries.images import COMMANDS
from localkube.binaries.versions import POD_SHELL, RUNTIME
from tests.localkube import local_support as support

pytestmark = pytest.mark.needs_go  # they are built by then


@pytest.fixture
def image(tmp_path: Path) -> Path:
    """A directory as the image's /bin."""
    for command in COMMANDS:
        (tmp_path / command).symlink_to(support.built_binaries() / POD_SHELL)
    return tmp_path


def start(image: Path, command: tuple[str, ...]) -> subprocess.Popen[str]:
    program, *arguments = command
    return subprocess.Popen(
        [str(image / program), *arguments],
        env={"PATH": str(image), "A": "b c"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def test_the_probe_prints_environment_and_devices_and_ends(image: Path) -> None:
    process = start(image, probe.EXIT)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    seen = probe.parse(output)
    assert seen is not None
    assert seen.environment["A"] == "b c"
    assert {"/dev/null", "/dev/zero"} <= set(seen.device_nodes)
    assert all(Path(path).is_char_device() for path in seen.device_nodes)


def test_the_probe_prints_every_way_in_which_devices_show(image: Path) -> None:
    words = probe.Probe(holds=False, commands=SCRIPTS).words
    output, _ = start(image, words).communicate(timeout=60)
    seen = probe.parse(output)
    assert seen is not None
    assert "lo mac 00:00:00:00:00:00" in seen.outputs["interfaces"].splitlines()
    assert set(parse_number_set(seen.outputs["cpus"].strip())) == os.sched_getaffinity(0)
    assert seen.outputs["memory"].startswith("mems 0")
    assert any(line.startswith("/proc / proc ") for line in seen.outputs["mounts"].splitlines())


@pytest.mark.parametrize(
    ("command", "ready", "status"),
    [
        (probe.HOLD, probe.END, 0),
        (("sh", "-c", "trap 'echo bye; exit 4' TERM; echo ready; sleep 100 & wait"), "ready", 4),
    ],
)
def test_a_trap_is_run_when_the_container_is_terminated(
    image: Path, command: tuple[str, ...], ready: str, status: int
) -> None:
    process = start(image, command)
    assert process.stdout is not None
    assert any(ready in line for line in process.stdout)
    assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    try:
        assert process.wait(60) == status
    finally:
        # Its background job, which a container would not outlive; it may not have begun yet.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


@pytest.mark.parametrize(
    ("script", "status", "output"),
    [
        ("exit 3", 3, ""),
        ("echo a | cat; nothing-like-this", 127, "a\n"),
        ('for i in 1 2; do echo $i; done && echo "$A"', 0, "1\n2\nb c\n"),
        ("find /proc/self/ns -name net -exec echo is {} ';'", 0, "is /proc/self/ns/net\n"),
        ("find / -nonsense x", 1, "find: -nonsense: not supported\n"),
        ("stat -c '%t:%T %n' /dev/null /dev/zero", 0, "1:3 /dev/null\n1:5 /dev/zero\n"),
        ("stat -c %t /nothing-like-this", 1, "stat: stat /nothing-like-this: no such file"),
        ("mknod x b 1 3", 1, "mknod: needs FILE c MAJOR MINOR\n"),
        ("echo abc | head -c 2; echo abc | head -c 9", 0, "ababc\n"),
        ("timeout 60 sh -c 'echo a; exit 3'", 3, "a\n"),
        ("timeout 0.2 sh -c 'echo a; sleep 60' | cat", 0, "a\n"),
    ],
)
def test_the_shell_runs_commands(image: Path, script: str, status: int, output: str) -> None:
    process = start(image, ("sh", "-c", script))
    said, _ = process.communicate(timeout=60)
    assert process.returncode == status
    assert said.startswith(output)


@pytest.mark.needs_root
@pytest.mark.parametrize("number", [(1, 3), (120, 4097), (4095, 0xFFFFF)])
def test_device_files_are_made_with_their_number(
    image: Path, tmp_path: Path, number: tuple[int, int]
) -> None:
    file = tmp_path / "made"
    major, minor = number
    script = f"mknod {file} c {major} {minor} && stat -c %t:%T {file}"
    said, _ = start(image, ("sh", "-c", script)).communicate(timeout=60)
    assert said == f"{major:x}:{minor:x}\n"
    found = file.stat()
    assert (os.major(found.st_rdev), os.minor(found.st_rdev)) == number


def test_commands_from_standard_input_run_as_they_come(image: Path) -> None:
    process = start(image, ("sh",))
    output, _ = process.communicate("echo one\necho two\nexit 5\n", timeout=60)
    assert (output, process.returncode) == ("one\ntwo\n", 5)


CONFIG = {
    "ociVersion": "1.3.0",
    "process": {"args": ["sh", "<&>"], "user": {"uid": 4294967295}},
    "linux": {
        "seccomp": {"defaultAction": "SCMP_ACT_ERRNO"},
        "resources": {"memory": {"limit": 9223372036854771712}},
    },
}


@pytest.mark.parametrize(
    ("arguments", "kept"),
    [
        (["--root", "/r", "create", "--bundle", "{bundle}", "id"], False),
        (["run", "--bundle={bundle}", "id"], False),
        (["--root", "/r", "delete", "--bundle", "{bundle}", "id"], True),
    ],
)
def test_runc_gets_a_new_container_without_seccomp_and_all_else_unchanged(
    tmp_path: Path, arguments: list[str], kept: bool
) -> None:
    (tmp_path / "runc").write_text('#!/bin/sh\necho "$@"\n')
    (tmp_path / "runc").chmod(0o755)
    shutil.copy(support.built_binaries() / RUNTIME, tmp_path)
    bundle = tmp_path / "bundle"
    bundle.mkdir()
    (bundle / "config.json").write_text(json.dumps(CONFIG))
    arguments = [argument.format(bundle=bundle) for argument in arguments]
    output = support.output(str(tmp_path / RUNTIME), *arguments)
    assert output == " ".join(arguments)
    expected = json.loads(json.dumps(CONFIG))
    if not kept:
        del expected["linux"]["seccomp"]
    assert json.loads((bundle / "config.json").read_text()) == expected
