from __future__ import annotations

import json
import sys
import threading
from pathlib import Path

import pytest

from localkube.base import ClusterError, ClusterUsageError
from localkube.binaries.build import resolve_binaries
from localkube.binaries.versions import (
    CONTROL_PLANE_BINARIES,
    KUBERNETES,
    NODE_BINARIES,
    cache_key,
    list_builds,
)
from localkube.data import local_cluster_modules_dir

ALL = CONTROL_PLANE_BINARIES + NODE_BINARIES
BUILDS = list_builds(KUBERNETES)

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


def test_each_version_is_built_from_its_own_go_mod_into_its_own_directory(
    tmp_path: Path, go: Path
) -> None:
    latest = resolve_binaries(None, tmp_path / "cache", ALL, print)
    oldest = resolve_binaries(None, tmp_path / "cache", ALL, print, "v1.34.4")
    assert latest != oldest
    assert "kubernetes-v1.34.4-" in oldest.name
    calls = [line for line in go.read_text().splitlines() if "cmd/kube-apiserver" in line]
    assert ["kubernetes/go.mod" in line for line in calls] == [True, False]
    assert ["minors/1.34/go.mod" in line for line in calls] == [False, True]
    assert ["gitVersion=v1.34.4" in line for line in calls] == [False, True]


RESOLVING = """
case "$1 $2" in
    "env GOSUMDB") printf '%s\\n%s\\n' "{database}" ""; exit;;
    "list -m") {answer};;
    "mod edit") cat {upstream}; exit;;
    "mod tidy") : > "${{3#-modfile=}}.tidied"; exit;;
esac
"""


def fake_resolving_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: str) -> Path:
    """A `go` that resolves modules: `answer` is what it does when asked for Kubernetes'."""
    upstream = tmp_path / "upstream.json"
    required = {"k8s.io/api": "v0.0.0", "k8s.io/klog/v2": "v2.1.0"}
    required["go.etcd.io/etcd/server/v3"] = "v3.6.4"
    listed = [{"Path": path, "Version": version} for path, version in required.items()]
    upstream.write_text(json.dumps({"Go": "1.24.0", "Require": listed}))
    extra = RESOLVING.format(database="sum.golang.org", answer=answer, upstream=upstream)
    calls = fake_go(tmp_path, monkeypatch, extra)
    program = tmp_path / "path" / "go"
    text = program.read_text()
    program.write_text(
        text.replace("env) echo go1.99.0", '"env GOVERSION") echo go1.99.0').replace(
            "case $1 in", 'case "$1 $2" in', 1
        )
    )
    return calls


def test_a_patch_that_is_not_pinned_is_resolved_and_said_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = """echo '{"GoMod": "/its/go.mod"}'; exit"""
    calls = fake_resolving_go(tmp_path, monkeypatch, answer)
    lines: list[str] = []
    found = resolve_binaries(None, tmp_path / "cache", ALL, lines.append, "v1.34.0")
    text = (found / "go.mod").read_text()
    assert "k8s.io/api => k8s.io/api v0.34.0\n" in text
    assert "klog/v2 =>" not in text
    assert "require go.etcd.io/etcd/server/v3 v3.6.4\n" in text
    assert (found / "go.mod.tidied").exists()
    assert any("v1.34.0 is not pinned here" in line and "sum.golang.org" in line for line in lines)
    assert "gitVersion=v1.34.0" in calls.read_text()


def test_a_version_that_cannot_be_had_is_one_message_before_anything_is_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = "echo 'go: downloading x' >&2; echo 'go: no matching versions' >&2; exit 1"
    calls = fake_resolving_go(tmp_path, monkeypatch, answer)
    with pytest.raises(ClusterUsageError, match="nothing was built") as caught:
        resolve_binaries(None, tmp_path / "cache", ALL, print, "v1.34.99")
    assert "go: no matching versions\n" in str(caught.value)
    assert "1.34 is v1.34.4" in str(caught.value)
    assert "downloading" not in str(caught.value)
    assert "build " not in calls.read_text()


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
