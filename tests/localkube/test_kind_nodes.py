"""CDI specs that are read from the nodes of a kind cluster, with a stand-in for the engine."""

from __future__ import annotations

import io
import sys
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from conformance.targets.opening.options import TargetOptions
from conformance.targets.opening.sources import find_reach
from localkube.base import ClusterAccess, ClusterError
from localkube.kind.command import cdi_files, engine_of

_ENGINE = """#!{python}
import pathlib, subprocess, sys
home = pathlib.Path({home!r})
arguments = sys.argv[1:]
if arguments[0] == "inspect":
    sys.exit(not (home / arguments[1]).is_dir())
_, _, _, node, shell, *rest = arguments
if (home / "noise").exists():
    sys.stdout.buffer.write((home / "noise").read_bytes())
    sys.exit()
sys.exit(subprocess.run([shell, *rest], cwd=home / node).returncode)
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    engine = tmp_path / "podman"
    engine.write_text(_ENGINE.format(python=sys.executable, home=str(tmp_path)))
    engine.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("KIND_EXPERIMENTAL_PROVIDER", "podman")
    for node in ("n-control-plane", "n-worker"):
        (tmp_path / node / "var/run/cdi").mkdir(parents=True)
    return tmp_path


def test_the_engine_is_the_one_that_has_the_node(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert engine_of("n-worker") == "podman"
    assert engine_of("other") == ""
    monkeypatch.delenv("KIND_EXPERIMENTAL_PROVIDER")
    monkeypatch.setenv("PATH", str(home))  # and no docker
    assert engine_of("n-worker") == "podman"


def test_a_kind_cluster_has_the_ability_where_its_engine_is_found(home: Path) -> None:
    (home / "n-worker/var/run/cdi/claim.json").write_text("{}")
    options = TargetOptions(target="cluster", cluster="kind")
    access = ClusterAccess(Path("kubeconfig"), "c", "v1.37.1", "i", ("n-worker",))
    reader = find_reach(options, access).cdi
    assert reader is not None
    assert list(reader()) == [("claim.json", b"{}")]
    assert find_reach(options, replace(access, nodes=("other",))).cdi is None


def test_the_files_of_both_folders_of_every_node_are_read(home: Path) -> None:
    static = home / "n-worker/etc/cdi"
    static.mkdir(parents=True)
    (static / "static.yaml").write_text("a: 1")
    (home / "n-worker/var/run/cdi/claim.json").write_text("{}")
    (home / "n-control-plane/var/run/cdi/other.json").write_text("[]")
    (home / "n-control-plane/var/run/cdi/link.json").symlink_to("/etc/passwd")
    found = list(cdi_files("podman", ["n-control-plane", "n-worker"]))
    assert sorted(found) == [("claim.json", b"{}"), ("other.json", b"[]"), ("static.yaml", b"a: 1")]


def test_a_node_without_the_folders_has_no_files(home: Path) -> None:
    (home / "empty").mkdir()
    assert list(cdi_files("podman", ["empty"])) == []


def test_a_node_that_cannot_be_asked_is_said(home: Path) -> None:
    with pytest.raises(ClusterError, match="node gone cannot be read by podman"):
        list(cdi_files("podman", ["gone"]))


def packed() -> bytes:
    """A compressed archive: 32 MiB in as many KiB."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w:gz") as tar:
        entry = tarfile.TarInfo("claim.json")
        entry.size = 32 << 20
        tar.addfile(entry, io.BytesIO(bytes(entry.size)))
    return archive.getvalue()


@pytest.mark.parametrize("sent", [b"no tar", packed()], ids=["text", "compressed"])
def test_a_node_that_sends_something_else_is_said(home: Path, sent: bytes) -> None:
    (home / "noise").write_bytes(sent)
    with pytest.raises(ClusterError, match="n-worker sent CDI specs that are not a tar archive"):
        list(cdi_files("podman", ["n-worker"]))
