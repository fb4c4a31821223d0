from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from conformance.clusters.base import ClusterUsageError
from conformance.clusters.local.preflight import (
    CNI_PLUGINS,
    Machine,
    check_nodes,
    check_platform,
    find_cni_plugins,
    missing_for_nodes,
)

ABLE = Machine(
    platform="linux",
    effective_uid=lambda: 0,
    locate=lambda name: f"/usr/bin/{name}",
    cni_directory=lambda: Path("/usr/lib/cni"),
    busybox=lambda: Path("/bin/busybox"),
    namespaces=lambda: "",
)


def test_able_machine_misses_nothing() -> None:
    assert missing_for_nodes(ABLE) == []
    check_nodes(ABLE)
    check_platform(ABLE)


def test_bare_machine_hears_everything_at_once_with_debian_packages() -> None:
    bare = dataclasses.replace(
        ABLE,
        effective_uid=lambda: 1000,
        locate=lambda _name: None,
        cni_directory=lambda: None,
        busybox=lambda: None,
    )
    with pytest.raises(ClusterUsageError) as caught:
        check_nodes(bare)
    message = str(caught.value)
    for part in ("root", "runc", "nsenter", "CNI plugins bridge, host-local, loopback", "busybox"):
        assert part in message
    packages = message.split("apt-get install ")[1].splitlines()[0].split()
    assert packages == [
        "busybox-static",
        "containernetworking-plugins",
        "coreutils",
        "iproute2",
        "mount",
        "runc",
        "util-linux",
    ]


def test_only_root_missing_names_no_package() -> None:
    lines = missing_for_nodes(dataclasses.replace(ABLE, effective_uid=lambda: 1000))
    assert len(lines) == 1
    assert lines[0].startswith("root")


def test_root_in_an_unprivileged_container_hears_about_namespaces() -> None:
    confined = dataclasses.replace(ABLE, namespaces=lambda: "Operation not permitted")
    (line,) = missing_for_nodes(confined)
    assert "Operation not permitted" in line
    assert "--privileged" in line


def test_other_operating_systems_are_refused() -> None:
    with pytest.raises(ClusterUsageError, match="needs Linux, this is darwin"):
        check_platform(dataclasses.replace(ABLE, platform="darwin"))


def test_cni_directory_must_have_every_plugin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    partial, full = tmp_path / "partial", tmp_path / "full"
    for directory, names in ((partial, CNI_PLUGINS[:1]), (full, CNI_PLUGINS)):
        directory.mkdir()
        for name in names:
            (directory / name).touch()
    monkeypatch.setattr("conformance.clusters.local.preflight.CNI_PLACES", (partial, full))
    assert find_cni_plugins() == full
    (full / CNI_PLUGINS[-1]).unlink()
    assert find_cni_plugins() is None
