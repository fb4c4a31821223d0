"""Whatever is killed, and whenever: a local cluster leaves nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from localkube import ComponentStatus, LocalCluster, LocalOptions, preflight, stale_clusters
from localkube.base import ClusterError, ClusterUsageError
from localkube.binaries.images import SCENARIO_IMAGE
from localkube.binaries.versions import CONTROL_PLANE_BINARIES
from localkube.layout import Layout
from localkube.processes import procfs
from localkube.processes.supervision import Processes
from tests.cli.dra_objects import pod
from tests.cli.plain_client import Api
from tests.cli.plain_client import eventually as wait_for
from tests.localkube import local_support as support
from tests.programs import ended

pytestmark = [pytest.mark.needs_root, pytest.mark.slow]

SERVICE_ACCOUNT = {"apiVersion": "v1", "kind": "ServiceAccount"}
REPOSITORY = Path(__file__).resolve().parents[2]

STARTER = """
import sys
from pathlib import Path
from localkube import LocalCluster, LocalOptions
directory, binaries, nodes, persistent = sys.argv[1:]
LocalCluster(LocalOptions(
    name=Path(directory).name, state_dir=Path(directory), binaries=Path(binaries),
    nodes=int(nodes), persistent=persistent == "persistent",
)).up(lambda line: print(line, flush=True))
print("READY", flush=True)
if persistent != "persistent":
    sys.stdin.read()
"""


@pytest.fixture
def layout() -> Iterator[Layout]:
    support.require_node_machine()
    with support.short_directory() as directory:
        layout = Layout("c", directory / "c")
        yield layout
        LocalCluster(LocalOptions(name="c", state_dir=layout.dir)).down()


def start(layout: Layout, nodes: int, persistence: str) -> subprocess.Popen[str]:
    arguments = (str(layout.dir), str(support.built_binaries()), str(nodes), persistence)
    return subprocess.Popen(
        [sys.executable, "-c", STARTER, *arguments],
        cwd=REPOSITORY,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def read_until(starter: subprocess.Popen[str], word: str) -> None:
    assert starter.stdout is not None
    for line in starter.stdout:
        if word in line:
            return
    pytest.fail(f"the starter ended before it said {word!r}")


def eventually(check: Callable[[], bool], seconds: float = 120) -> bool:
    deadline = time.monotonic() + seconds
    while not check():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True


def kill(starter: subprocess.Popen[str]) -> None:
    starter.send_signal(signal.SIGKILL)
    starter.communicate()


def test_killed_program_takes_its_cluster_with_it(layout: Layout) -> None:
    before = support.look_at_machine()
    with start(layout, 1, "owned") as starter:
        read_until(starter, "READY")
        run_pod(layout)
        cluster = LocalCluster(LocalOptions(name="c", state_dir=layout.dir))
        [node] = [one for one in cluster.status() if one.name == "node-1"]
        [init] = procfs.list_children(node.pid)
        inside = support.namespaces(init) - support.namespaces(os.getpid())
        assert len(inside) == 3
        lived = support.processes_in(inside)
        assert lived
        kill(starter)
    # The directory goes last, and after it the reaper that removed it.
    assert eventually(lambda: not support.remains(layout)), support.remains(layout)
    assert eventually(lambda: not any(one.is_running() for one in lived), 5)
    assert support.look_at_machine() == before
    cluster.down()  # again


def run_pod(layout: Layout) -> None:
    admin = Api.admin(LocalCluster(LocalOptions(name="c", state_dir=layout.dir)))
    account = {"name": "default", "namespace": "default"}  # made a moment after the namespace
    wait_for(lambda: admin.get({**SERVICE_ACCOUNT, "metadata": account}), "the account")
    manifest = {**pod("still-there", "", SCENARIO_IMAGE), "kind": "Pod"}
    del manifest["spec"]["resourceClaims"], manifest["spec"]["containers"][0]["resources"]
    admin.create(manifest)

    def runs() -> bool:
        found = admin.get(manifest)
        return found is not None and found["status"].get("phase") == "Running"

    wait_for(runs, "the pod runs")
    admin.close()


@pytest.mark.everything
def test_dead_cluster_of_a_killed_program_and_reaper_is_found_and_removed(layout: Layout) -> None:
    with start(layout, 1, "owned") as starter:
        read_until(starter, "READY")
        Processes(layout).stop("reaper", grace_seconds=0)
        kill(starter)
    (stale,) = stale_clusters(layout.dir.parent)
    assert stale.layout == layout
    for one in stale.status():
        if one.running:
            os.kill(one.pid, signal.SIGKILL)
    stale.down()
    assert support.remains(layout) == []
    assert stale_clusters(layout.dir.parent) == []


@pytest.mark.everything
def test_start_killed_half_way_is_removed_by_down(layout: Layout) -> None:
    with start(layout, 1, "persistent") as starter:
        read_until(starter, "kubelet")
        kill(starter)
    assert support.remains(layout)
    LocalCluster(LocalOptions(name="c", state_dir=layout.dir)).down()
    assert support.remains(layout) == []


def test_feature_gates_that_kubernetes_does_not_know_start_nothing(layout: Layout) -> None:
    options = LocalOptions(
        name="c",
        state_dir=layout.dir,
        binaries=support.built_binaries(),
        feature_gates={"NoSuchGate": True},
    )
    with pytest.raises(ClusterUsageError, match="unrecognized feature gate: NoSuchGate"):
        LocalCluster(options).up()
    assert support.remains(layout) == []


@pytest.mark.everything
def test_failed_start_leaves_its_logs_and_nothing_else(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preflight, "check_feature_gates", lambda *_: None)
    options = LocalOptions(
        name="c",
        state_dir=layout.dir,
        binaries=support.built_binaries(),
        feature_gates={"NoSuchGate": True},
        nodes=0,
    )
    with pytest.raises(ClusterError, match="unrecognized feature gate: NoSuchGate") as caught:
        LocalCluster(options).up()
    assert str(layout.log("kube-apiserver")) in str(caught.value)
    assert support.remains(layout) == [f"directory {layout.dir}"]
    assert list(layout.dir.iterdir()) == [layout.logs]


def test_control_plane_alone_runs_for_an_ordinary_user(layout: Layout) -> None:
    """Nothing of root's is left but the right to read all files: Python may lie in root's home."""
    home = layout.dir.parent
    layout = Layout("c", home / "dra-conformance" / "local" / "c")
    binaries = home / "bin"
    binaries.mkdir()
    for name in CONTROL_PLANE_BINARIES:
        os.link(support.built_binaries() / name, binaries / name)
    os.chown(home, 65534, 65534)
    command = [
        "setpriv",
        *("--reuid", "65534", "--regid", "65534", "--clear-groups"),
        *("--inh-caps", "-all,+dac_read_search", "--ambient-caps", "-all,+dac_read_search"),
        *("--bounding-set", "-all,+dac_read_search"),
        *(sys.executable, "-m", "conformance", "cluster"),
    ]

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return ended(
            [*command, *arguments, "--name", "c"],
            cwd=REPOSITORY,
            env={"PATH": os.environ["PATH"], "HOME": str(home), "XDG_STATE_HOME": str(home)},
            timeout=120,
        )

    refused = run("up", "--binaries", str(binaries), "--nodes", "1")
    assert (refused.returncode, "root" in refused.stderr) == (2, True)
    done = run("up", "--binaries", str(binaries), "--nodes", "0")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"export KUBECONFIG={layout.kubeconfig}\n")
    assert {Path(f"/proc/{one.pid}").stat().st_uid for one in statuses(layout)} == {65534}
    done = run("down")
    assert done.returncode == 0, done.stderr
    assert support.remains(layout) == []


def statuses(layout: Layout) -> list[ComponentStatus]:
    found = LocalCluster(LocalOptions(name="c", state_dir=layout.dir)).status()
    assert found
    return found
