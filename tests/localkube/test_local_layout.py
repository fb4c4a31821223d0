from __future__ import annotations

import sys
from pathlib import Path

import pytest

from localkube.base import ClusterUsageError
from localkube.layout import (
    SOCKET_PATH_BYTES,
    Layout,
    check_socket_paths,
    default_cache,
    default_root,
    make_layout,
)


def test_default_directories_follow_the_xdg_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/s")
    monkeypatch.setenv("XDG_CACHE_HOME", "/c")
    assert default_root() == Path("/s/dra-conformance/local")
    assert default_cache() == Path("/c/dra-conformance/binaries")
    if sys.platform == "linux":
        monkeypatch.setenv("HOME", "/h")
        monkeypatch.delenv("XDG_STATE_HOME")
        monkeypatch.delenv("XDG_CACHE_HOME")
        assert default_root() == Path("/h/.local/state/dra-conformance/local")
        assert default_cache() == Path("/h/.cache/dra-conformance/binaries")


def test_state_directory_is_the_given_one_made_absolute(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/tmp")
    monkeypatch.setenv("XDG_STATE_HOME", "/s")
    assert make_layout("a", Path("x")).dir == Path("/tmp/x")
    assert make_layout("a", None).dir == default_root() / "a"


@pytest.mark.parametrize("name", ["", "A", "a/b", "..", "-a", "a-", "a" * 33, "a b"])
def test_name_that_is_no_file_and_context_name_is_refused(name: str) -> None:
    with pytest.raises(ClusterUsageError, match="cluster name"):
        make_layout(name, None)


def test_interface_names_fit_the_kernels_limit_and_differ_between_clusters() -> None:
    one, other = Layout("a", Path("/s/a")), Layout("b", Path("/s/b"))
    assert len(one.name_veth(9)) <= 15
    assert one.bridge != other.bridge
    assert one.name_veth(1).startswith(one.bridge)


def test_default_state_directory_of_root_is_short_enough_for_our_drivers_sockets() -> None:
    layout = make_layout("default", Path("/root/.local/state/dra-conformance/local/default"))
    check_socket_paths(layout, 9, "gpu.nvidia.com")


def test_state_directory_too_long_for_unix_sockets_is_refused_with_the_excess() -> None:
    layout = Layout("a", Path("/" + "x" * 80))
    longest = layout.node(1).registrar / "gpu.nvidia.com-2-reg.sock"
    excess = len(str(longest)) - SOCKET_PATH_BYTES
    with pytest.raises(ClusterUsageError, match=f"{excess} bytes too long") as caught:
        check_socket_paths(layout, 1, "gpu.nvidia.com")
    assert str(longest) in str(caught.value)


def test_socket_path_that_just_fits_is_accepted() -> None:
    room = SOCKET_PATH_BYTES - len("/n1/k/plugins_registry/d-2-reg.sock")
    layout = Layout("a", Path("/" + "x" * (room - 1)))
    assert len(str(layout.node(1).registrar / "d-2-reg.sock")) == SOCKET_PATH_BYTES
    check_socket_paths(layout, 1, "d")
    with pytest.raises(ClusterUsageError):
        check_socket_paths(layout, 1, "dd")


def test_control_plane_alone_has_no_unix_sockets_to_be_too_long() -> None:
    check_socket_paths(Layout("a", Path("/" + "x" * 200)), 0, "gpu.nvidia.com")
