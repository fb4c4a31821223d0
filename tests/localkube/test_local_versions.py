from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from conformance.targets.opening.options import DEFAULT_VERSION
from localkube.binaries import versions
from localkube.binaries.versions import (
    KUBERNETES,
    PINNED,
    PRERELEASES,
    cache_key,
    full_version,
    list_builds,
    pinned_go_mod,
)
from localkube.data import local_cluster_modules_dir
from reference_allocator.gates import MINORS

BUILDS = list_builds(KUBERNETES)


def go_mod(version: str) -> str:
    path = pinned_go_mod(local_cluster_modules_dir(), version)
    assert path is not None
    return path.read_text()


@pytest.mark.parametrize("version", PINNED.values())
def test_pinned_version_is_the_one_in_go_mod(version: str) -> None:
    assert f"\tk8s.io/kubernetes {version} //" in go_mod(version)


def test_each_minor_that_the_reference_knows_is_pinned() -> None:
    assert (*PINNED, *PRERELEASES) == MINORS
    assert f"v{DEFAULT_VERSION}" == KUBERNETES == list(PINNED.values())[-1]
    for minor, version in PINNED.items():
        assert version.startswith(f"v{minor}.")
    minors = local_cluster_modules_dir() / "kubernetes" / "minors"
    assert {path.name for path in minors.iterdir()} == PINNED.keys() - {"1.37"}


@pytest.mark.parametrize(
    ("given", "version"),
    [
        ("1.34", PINNED["1.34"]),
        ("v1.36", PINNED["1.36"]),
        ("1.34.0", "v1.34.0"),
        ("v1.35.10", "v1.35.10"),
        ("1.37.0-rc.1", "v1.37.0-rc.1"),
        ("1.38", "v1.38.0-beta.0"),
    ],
)
def test_a_minor_is_its_pinned_patch(given: str, version: str) -> None:
    assert full_version(given) == version


@pytest.mark.parametrize(
    "given", ["1", "1.34.", "1.34.0.1", "1.34.0 -x", "latest", "1.34.0\n", "1.33"]
)
def test_what_is_no_version_is_refused(given: str) -> None:
    with pytest.raises(ValueError, match=r"1\.34"):
        full_version(given)


def test_only_pinned_patches_have_a_go_mod_here() -> None:
    assert pinned_go_mod(local_cluster_modules_dir(), "v1.34.0") is None


def test_kubernetes_own_driver_is_of_the_same_release() -> None:
    text = (local_cluster_modules_dir().parent / "test-driver" / "go.mod").read_text()
    assert f"k8s.io/kubernetes {versions.KUBERNETES}" in text


@pytest.mark.parametrize("version", PINNED.values())
def test_kubernetes_staging_modules_have_the_same_minor_and_patch(version: str) -> None:
    staged = version.replace("v1.", "v0.")
    lines = go_mod(version).splitlines()
    replaced = [line.split("=>")[1].split()[1] for line in lines if "=>" in line]
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


@pytest.mark.parametrize("version", [*PINNED.values(), "v1.35.0"])
def test_kubernetes_version_is_stamped_into_its_binaries(version: str) -> None:
    flags = " ".join(next(b.flags for b in list_builds(version) if b.module == "kubernetes"))
    assert f"gitVersion={version} " in flags
    assert "gitMajor=1 " in flags
    assert f"gitMinor={version.split('.')[1]} " in flags


def test_cache_key_of_a_version_does_not_change_with_another_minors_go_mod(tmp_path: Path) -> None:
    copy = tmp_path / "modules"
    shutil.copytree(local_cluster_modules_dir(), copy)
    keys = {version: cache_key(copy, version) for version in [*PINNED.values(), "v1.34.0"]}
    assert len(set(keys.values())) == len(keys)
    with (copy / "kubernetes/minors/1.34/go.sum").open("a") as changed:
        changed.write("x")
    different = {version for version, key in keys.items() if cache_key(copy, version) != key}
    assert different == {PINNED["1.34"]}


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
