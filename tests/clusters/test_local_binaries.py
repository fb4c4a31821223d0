from __future__ import annotations

import sys
import threading
from pathlib import Path

import pytest

from conformance.clusters.base import ClusterError, ClusterUsageError
from conformance.clusters.local.binaries import resolve_binaries
from conformance.clusters.local.versions import (
    BUILDS,
    CONTROL_PLANE_BINARIES,
    NODE_BINARIES,
    cache_key,
)
from conformance.data import local_cluster_modules_dir

ALL = CONTROL_PLANE_BINARIES + NODE_BINARIES

FAKE_GO = """#!/bin/sh
# Stands in for `go build -v -o TARGET ... PACKAGE...`: counts its calls, makes empty programs.
case $1 in env) echo go1.99.0; exit;; esac
echo "$@" >> {calls}
{extra}
target=$4
if [ -d "$target" ]; then
    for argument in "$@"; do
        case $argument in "$target" | -* | *" "*) ;; */*) target_file=$target/${{argument##*/}}
            : > "$target_file"; chmod +x "$target_file";; esac
    done
else
    : > "$target"; chmod +x "$target"
fi
echo some/package >&2
"""


@pytest.fixture
def go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A `go` command of our own; the file that records its calls."""
    return fake_go(tmp_path, monkeypatch, "")


def fake_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, extra: str) -> Path:
    calls = tmp_path / "calls"
    directory = tmp_path / "path"
    directory.mkdir(exist_ok=True)
    program = directory / "go"
    program.write_text(FAKE_GO.format(calls=calls, extra=extra))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{directory}:/usr/bin:/bin")
    return calls


def make_programs(directory: Path, names: tuple[str, ...]) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    for name in names:
        (directory / name).touch(mode=0o755)


def test_given_directory_is_used_as_it_is(tmp_path: Path, go: Path) -> None:
    make_programs(tmp_path / "given", ALL)
    assert resolve_binaries(tmp_path / "given", tmp_path / "cache", ALL, print) == (
        tmp_path / "given"
    )
    assert not go.exists()


def test_given_directory_that_lacks_binaries_is_refused_naming_all(tmp_path: Path) -> None:
    make_programs(tmp_path, ("etcd", "kube-apiserver"))
    (tmp_path / "kubelet").touch(mode=0o644)  # there, but not executable
    with pytest.raises(ClusterUsageError) as caught:
        resolve_binaries(tmp_path, tmp_path / "cache", ("etcd", "kubelet", "ctr"), print)
    assert "kubelet, ctr" in str(caught.value)
    assert str(tmp_path) in str(caught.value)


def test_control_plane_alone_needs_no_node_binaries(tmp_path: Path) -> None:
    make_programs(tmp_path, CONTROL_PLANE_BINARIES)
    assert resolve_binaries(tmp_path, tmp_path, CONTROL_PLANE_BINARIES, print) == tmp_path


def test_filled_cache_is_used_without_a_go_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cached = tmp_path / cache_key(local_cluster_modules_dir())
    make_programs(cached, ALL)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert resolve_binaries(None, tmp_path, ALL, print) == cached


def test_missing_go_is_one_message_that_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    with pytest.raises(ClusterUsageError, match="not built yet") as caught:
        resolve_binaries(None, tmp_path / "cache", ALL, print)
    assert "--binaries" in str(caught.value)


def test_empty_cache_is_filled_by_one_build_per_module_with_progress(
    tmp_path: Path, go: Path
) -> None:
    lines: list[str] = []
    found = resolve_binaries(None, tmp_path / "cache", ALL, lines.append)
    assert sorted(path.name for path in found.iterdir()) == sorted(ALL)
    assert len(go.read_text().splitlines()) == len(BUILDS)
    for build in BUILDS:
        assert f"building {build.title}" in lines
    resolve_binaries(None, tmp_path / "cache", ALL, lines.append)
    assert len(go.read_text().splitlines()) == len(BUILDS)


def test_failed_build_names_its_log_and_leaves_no_cache_entry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_go(tmp_path, monkeypatch, 'case "$*" in *containerd*) echo "no luck" >&2; exit 1;; esac')
    with pytest.raises(ClusterError, match="no luck") as caught:
        resolve_binaries(None, tmp_path / "cache", ALL, print)
    left = sorted(path.suffix for path in (tmp_path / "cache").iterdir())
    assert left == [".lock", ".log"]
    assert ".log" in str(caught.value)


def test_leftovers_of_a_killed_build_are_removed_by_the_next(tmp_path: Path, go: Path) -> None:
    key = cache_key(local_cluster_modules_dir())
    stale = tmp_path / "cache" / f".building-{key}-x"
    make_programs(stale, ("etcd",))
    make_programs(tmp_path / "cache" / key, ("etcd",))  # as when somebody removed files by hand
    found = resolve_binaries(None, tmp_path / "cache", ALL, print)
    assert not stale.exists()
    assert sorted(path.name for path in found.iterdir()) == sorted(ALL)


def test_two_runs_at_once_build_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = tmp_path / "gate"
    calls = fake_go(tmp_path, monkeypatch, f"while [ ! -e {gate} ]; do sleep 0.02; done")
    waiting = threading.Event()

    def second_progress(line: str) -> None:
        if "waiting for another run" in line:
            waiting.set()

    first_started = threading.Event()
    first = threading.Thread(
        target=resolve_binaries,
        args=(None, tmp_path / "cache", ALL, lambda _line: first_started.set()),
    )
    first.start()
    assert first_started.wait(60)
    second = threading.Thread(
        target=resolve_binaries, args=(None, tmp_path / "cache", ALL, second_progress)
    )
    second.start()
    assert waiting.wait(60)
    gate.touch()
    first.join(30)
    second.join(30)
    assert len(calls.read_text().splitlines()) == len(BUILDS)
