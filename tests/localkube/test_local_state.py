from __future__ import annotations

import dataclasses
import fcntl
import os
import socket
import sys
from pathlib import Path

import pytest

from kube.base.locks import file_lock
from kube.base.processes import Identity, identify_process
from localkube import LocalCluster, LocalOptions, stale_clusters
from localkube.base import ClusterError, ClusterUsageError
from localkube.layout import Layout
from localkube.node.cgroups import mount_points
from localkube.node.network import choose_network
from localkube.removal import wait_and_remove
from localkube.state import Network, Ports, State, free_ports, read_state, write_state

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are read from /proc")

GONE = Identity(pid=2**22, start_time=1, boot_id="of an earlier boot")


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    return Layout("a", tmp_path / "root" / "a")


def make_state(**changes: object) -> State:
    state = State(
        name="a",
        binaries=Path("/b"),
        nodes=1,
        feature_gates={"A": True},
        ports=Ports(1, 2, 3, 4, 5, 6),
        network=Network("10.213.7.0/24"),
        owner=identify_process(os.getpid()),
    )
    return dataclasses.replace(state, **changes)  # type: ignore[arg-type]


def cluster(layout: Layout) -> LocalCluster:
    return LocalCluster(LocalOptions(name=layout.name, state_dir=layout.dir, nodes=0))


def test_state_survives_its_file(layout: Layout) -> None:
    for state in (make_state(), make_state(network=None, owner=None, ready=True)):
        write_state(layout, state)
        assert read_state(layout) == state


def test_no_state_file_is_no_cluster(layout: Layout) -> None:
    assert read_state(layout) is None
    assert cluster(layout).status() == []


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"format": 999}', '{"format": 1}', '{"format": 2}']
)
def test_damaged_state_file_is_one_message_with_the_way_out(layout: Layout, text: str) -> None:
    layout.dir.mkdir(parents=True)
    layout.state.write_text(text)
    with pytest.raises(ClusterError, match="cluster down --name a") as caught:
        read_state(layout)
    assert str(layout.state) in str(caught.value)
    cluster(layout).down()
    assert not layout.dir.exists()


def test_cluster_is_abandoned_when_its_program_has_ended() -> None:
    assert make_state(owner=GONE).is_abandoned()
    assert not make_state().is_abandoned()
    assert not make_state(owner=None).is_abandoned()


def test_stale_clusters_are_those_of_ended_programs(tmp_path: Path) -> None:
    owners = {"dead": GONE, "mine": identify_process(os.getpid()), "kept": None}
    for name, owner in owners.items():
        write_state(Layout(name, tmp_path / name), make_state(name=name, owner=owner))
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / "dra-conformance-cluster.json").write_text("x")
    assert [one.layout.name for one in stale_clusters(tmp_path)] == ["dead"]
    assert stale_clusters(tmp_path / "none") == []


def test_reaper_removes_the_cluster_of_an_ended_program(layout: Layout) -> None:
    write_state(layout, make_state(owner=GONE))
    wait_and_remove(layout, GONE.pid)
    assert not layout.dir.exists()


def test_reaper_leaves_a_later_cluster_of_the_same_name(layout: Layout) -> None:
    write_state(layout, make_state(owner=None))
    wait_and_remove(layout, GONE.pid)
    assert layout.state.exists()


def test_cluster_that_does_not_run_cannot_be_used(layout: Layout) -> None:
    with pytest.raises(ClusterUsageError, match="cluster up --name a"):
        cluster(layout).access()
    write_state(layout, make_state(ready=True))
    with pytest.raises(ClusterUsageError, match="no local cluster named 'a' runs"):
        cluster(layout).access()


def test_state_directory_with_foreign_files_is_never_touched(
    layout: Layout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    layout.dir.mkdir(parents=True)
    (layout.dir / "thesis.txt").touch()
    monkeypatch.setattr("localkube.cluster.resolve_binaries", lambda *_arguments: tmp_path)
    with pytest.raises(ClusterUsageError, match=r"contains thesis\.txt"):
        cluster(layout).up()
    assert (layout.dir / "thesis.txt").exists()
    for ours in ("logs", "etcd"):  # names that a cluster makes too
        (layout.dir / ours).mkdir()
    with pytest.raises(ClusterUsageError, match=r"contains etcd, thesis\.txt"):
        cluster(layout).down()
    assert (layout.dir / "thesis.txt").exists()


def test_foreign_file_beside_a_cluster_is_not_removed_with_it(layout: Layout) -> None:
    write_state(layout, make_state(owner=None))
    (layout.dir / "thesis.txt").touch()
    with pytest.raises(ClusterUsageError, match=r"contains thesis\.txt"):
        cluster(layout).down()
    assert (layout.dir / "thesis.txt").exists()


def test_only_one_program_at_a_time_holds_a_cluster(layout: Layout) -> None:
    with file_lock(layout.lock), layout.lock.open("a") as other, pytest.raises(BlockingIOError):
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    with layout.lock.open("a") as other:
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_free_ports_differ_and_can_be_taken() -> None:
    ports = dataclasses.astuple(free_ports())
    assert len(set(ports)) == 6
    for port in ports:
        with socket.socket() as one:
            one.bind(("127.0.0.1", port))


def test_nodes_network_avoids_what_the_machine_uses() -> None:
    first = choose_network("00002a", [])
    assert first == Network("10.213.42.0/24")
    assert first.gateway == "10.213.42.1"
    assert first.node_address(2) == "10.213.42.12"
    assert choose_network("00002a", ["10.213.42.7"]) == Network("10.213.43.0/24")
    assert choose_network("0000ff", ["10.213.255.0/24"]) == Network("10.213.0.0/24")
    with pytest.raises(ClusterError, match="no free /24"):
        choose_network("00002a", ["10.0.0.0/8"])


def test_cgroup_hierarchies_of_this_machine_are_found() -> None:
    if not Path("/sys/fs/cgroup").is_dir():
        pytest.skip("no cgroups on this machine")
    for point in mount_points():
        assert (point / "cgroup.procs").exists()
