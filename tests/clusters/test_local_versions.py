from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from conformance.clusters.local import versions
from conformance.clusters.local.versions import BUILDS, cache_key
from conformance.data import local_cluster_modules_dir


def test_pinned_version_is_the_one_in_go_mod() -> None:
    text = (local_cluster_modules_dir() / "kubernetes" / "go.mod").read_text()
    assert f"k8s.io/kubernetes {versions.KUBERNETES}" in text


def test_kubernetes_own_driver_is_of_the_same_release() -> None:
    text = (local_cluster_modules_dir().parent / "test-driver" / "go.mod").read_text()
    assert f"k8s.io/kubernetes {versions.KUBERNETES}" in text


def test_kubernetes_staging_modules_have_the_same_minor_and_patch() -> None:
    text = (local_cluster_modules_dir() / "kubernetes" / "go.mod").read_text()
    staged = versions.KUBERNETES.replace("v1.", "v0.")
    replaced = [line.split("=>")[1].split()[1] for line in text.splitlines() if "=>" in line]
    assert replaced
    assert set(replaced) == {staged}


def test_every_binary_is_a_tool_of_its_module_or_lies_in_it() -> None:
    for build in BUILDS:
        directory = local_cluster_modules_dir() / build.module
        text = (directory / "go.mod").read_text()
        tools = text.partition("\ntool ")[2].partition("\n)")[0].split()
        for package in build.binaries.values():
            assert package in tools or (directory / package / "main.go").is_file()


def test_builds_make_exactly_the_binaries_that_clusters_need() -> None:
    made = {name for build in BUILDS for name in build.binaries}
    assert made == {*versions.CONTROL_PLANE_BINARIES, *versions.NODE_BINARIES}


def test_kubernetes_version_is_stamped_into_its_binaries() -> None:
    flags = " ".join(next(b.flags for b in BUILDS if b.module == "kubernetes"))
    assert f"gitVersion={versions.KUBERNETES}" in flags
    assert "gitMajor=1 " in flags
    assert f"gitMinor={versions.KUBERNETES.split('.')[1]} " in flags


@pytest.mark.parametrize("file", ["node/go.sum", "node/pod-shell/main.go"])
def test_cache_key_changes_with_any_source_and_not_with_the_place(
    tmp_path: Path, file: str
) -> None:
    copy = tmp_path / "modules"
    shutil.copytree(local_cluster_modules_dir(), copy)
    key = cache_key(copy)
    assert key == cache_key(local_cluster_modules_dir())
    assert versions.KUBERNETES in key
    with (copy / file).open("a") as changed:
        changed.write("x")
    assert cache_key(copy) != key


def test_cache_key_changes_with_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = cache_key(local_cluster_modules_dir())
    monkeypatch.setattr("platform.machine", lambda: "other64")
    assert cache_key(local_cluster_modules_dir()) != key
