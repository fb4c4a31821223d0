"""The kind cluster against a recording stand-in for the kind command: no engine is needed.

What the real command makes of the configs is in test_kind_command.py.
"""

from __future__ import annotations

import json
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from conformance.targets.opening.options import TargetOptions
from conformance.targets.opening.sources import open_cluster
from localkube.base import ClusterError, ClusterUsageError
from localkube.kind import KindCluster, kind_command
from localkube.kind.command import summarize_errors
from tests.kube.fake_api import FakeApi
from tests.localkube.test_gocommand import put_go

READY = {
    "conditions": [{"type": "Ready", "status": "True"}],
    "nodeInfo": {"kubeletVersion": "v1.37.1"},
}

_STAND_IN = """#!{python}
import json, pathlib, sys, time
home = pathlib.Path({home!r})
arguments = sys.argv[1:]
with (home / "calls").open("a") as calls:
    calls.write(json.dumps(arguments) + "\\n")
value = dict(zip(arguments, arguments[1:]))
what = " ".join(arguments[:2])
clusters = home / "clusters"
names = clusters.read_text().split() if clusters.exists() else []
failure = home / ("fail " + what)
if failure.exists():
    sys.exit(failure.read_text())
if what == "create cluster":
    if value["--name"] in names:
        sys.exit("ERROR: failed to create cluster: node(s) already exist for a cluster with the "
                 "name \\"" + value["--name"] + "\\"")
    clusters.write_text("\\n".join([*names, value["--name"]]))
    text = (home / "kubeconfig").read_text()
    if (home / "slow").exists():
        (home / "creating").touch()
        time.sleep(60)
        (home / "a child went on").touch()
    pathlib.Path(value["--kubeconfig"]).write_text(text)
elif what == "get clusters":
    print("\\n".join(names))
elif what == "get kubeconfig":
    print((home / "kubeconfig").read_text())
elif what == "get nodes":
    print(value["--name"] + "-control-plane\\n" + value["--name"] + "-worker")
elif what == "delete cluster":
    clusters.write_text("\\n".join(name for name in names if name != value["--name"]))
"""


class StandIn:
    def __init__(self, home: Path) -> None:
        self.home = home
        self.command = home / "kind"
        self.command.write_text(_STAND_IN.format(python=sys.executable, home=str(home)))
        self.command.chmod(0o755)

    @property
    def calls(self) -> list[list[str]]:
        path = self.home / "calls"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    @property
    def verbs(self) -> list[str]:
        return [" ".join(call[:2]) for call in self.calls]

    @property
    def clusters(self) -> list[str]:
        path = self.home / "clusters"
        return path.read_text().split() if path.exists() else []

    def exists(self, name: str) -> None:
        (self.home / "clusters").write_text(name)

    def fail(self, what: str, said: str) -> None:
        (self.home / f"fail {what}").write_text(said)


@pytest.fixture
def api() -> Iterator[FakeApi]:
    fake = FakeApi()
    for node in ("control-plane", "worker"):
        meta = {"name": f"dra-conformance-ci-{node}"}
        fake.put("nodes", {"metadata": meta, "status": READY})
    yield fake
    fake.close()


@pytest.fixture
def kind(api: FakeApi, tmp_path: Path) -> StandIn:
    home = tmp_path / "stand-in"
    home.mkdir()
    config = api.kubeconfig(home / "kubeconfig")
    config.write_text(config.read_text().replace(": fake", ": kind-dra-conformance-ci"))
    return StandIn(home)


def cluster(kind: StandIn, tmp_path: Path, **options: Any) -> KindCluster:
    made = KindCluster("ci", command=[str(kind.command)], state_dir=tmp_path / "state", **options)
    assert made.kubeconfig == tmp_path / "state" / "kubeconfig"
    return made


def test_a_cluster_is_created_with_a_kubeconfig_of_its_own_and_used(
    kind: StandIn, tmp_path: Path
) -> None:
    archive = tmp_path / "image.tar"
    archive.touch()
    made = cluster(kind, tmp_path, images=[archive], node_image="kindest/node:v1.36.1", image="i:1")
    access = made.up()
    create, load, *_ = kind.calls
    assert create[:4] == ["create", "cluster", "--name", "dra-conformance-ci"]
    assert made.created
    # Only a cluster that could be created gets its kubeconfig to the place of it.
    assert create[create.index("--kubeconfig") + 1] == str(tmp_path / "state/kubeconfig.new")
    assert not (tmp_path / "state/kubeconfig.new").exists()
    assert create[create.index("--config") + 1].endswith("kind/cluster.yaml")
    assert create[create.index("--image") + 1] == "kindest/node:v1.36.1"
    assert "--wait" in create
    assert load == ["load", "image-archive", str(archive), "--name", "dra-conformance-ci"]
    assert access.kubeconfig == made.kubeconfig
    assert access.context == "kind-dra-conformance-ci"
    assert access.nodes == ("dra-conformance-ci-control-plane", "dra-conformance-ci-worker")
    assert access.image == "i:1"


def test_what_options_say_of_a_kind_cluster_reaches_kind(
    kind: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(kind.home))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    config, archive = tmp_path / "mine.yaml", tmp_path / "image.tar"
    config.touch()
    archive.touch()
    options = TargetOptions(
        target="cluster",
        cluster="kind",
        name="ci",
        node_image="kindest/node:v1.36.1",
        kind_config=config,
        image_archives=(archive,),
        image="i:1",
    )
    with open_cluster(options) as (access, _):
        assert access.image == "i:1"
    create, load, *_ = kind.calls
    assert create[create.index("--config") + 1] == str(config)
    assert create[create.index("--image") + 1] == "kindest/node:v1.36.1"
    assert str(archive) in load


def test_a_cluster_waits_for_every_node_by_a_watch(
    api: FakeApi, kind: StandIn, tmp_path: Path
) -> None:
    worker = {"metadata": {"name": "dra-conformance-ci-worker"}, "status": {}}
    api.put("nodes", worker)
    lines: list[str] = []

    def progress(line: str) -> None:
        lines.append(line)
        if line.startswith("waiting"):
            # Becomes ready once the watch is there, from a thread of the server's own.
            threading.Timer(0.2, lambda: api.put("nodes", {**worker, "status": READY})).start()

    access = cluster(kind, tmp_path).up(progress)
    assert "dra-conformance-ci-worker" in access.nodes
    assert api.count("GET", "/nodes?watch=true") == 1
    assert "waiting for 2 nodes to be ready" in lines


def test_a_cluster_is_used_again_and_created_again_when_it_vanished(
    kind: StandIn, tmp_path: Path
) -> None:
    cluster(kind, tmp_path).up()
    again = cluster(kind, tmp_path)
    again.up()
    assert kind.verbs.count("create cluster") == 1
    assert not again.created
    kind.exists("")
    cluster(kind, tmp_path).up()
    assert kind.verbs.count("create cluster") == 2


def test_a_cluster_is_not_used_for_another_node_image(kind: StandIn, tmp_path: Path) -> None:
    cluster(kind, tmp_path, node_image="kindest/node:v1.36.1").up()
    cluster(kind, tmp_path, node_image="kindest/node:v1.36.1").up()
    with pytest.raises(ClusterUsageError, match=r"created with kindest/node:v1\.36\.1, not with"):
        cluster(kind, tmp_path, node_image="kindest/node:v1.37.1").up()
    assert kind.clusters == ["dra-conformance-ci"]


def test_a_later_cluster_of_the_name_is_not_taken_for_the_one_that_was_made(
    kind: StandIn, tmp_path: Path
) -> None:
    with_authority(kind, "Zmlyc3Q=")
    made = cluster(kind, tmp_path)
    made.up()
    assert made.exists()
    with_authority(kind, "c2Vjb25k")  # deleted by hand, and created again by somebody
    assert not made.exists()
    made.down()
    assert kind.clusters == ["dra-conformance-ci"]
    assert "delete cluster" not in kind.verbs


def with_authority(kind: StandIn, authority: str) -> None:
    path = kind.home / "kubeconfig"
    config = yaml.safe_load(path.read_text())
    config["clusters"][0]["cluster"]["certificate-authority-data"] = authority
    path.write_text(yaml.safe_dump(config))


def test_a_cluster_whose_creation_was_killed_is_deleted_by_down_and_never_used(
    kind: StandIn, tmp_path: Path
) -> None:
    made = cluster(kind, tmp_path)
    made.up()
    made.kubeconfig.unlink()
    with pytest.raises(ClusterUsageError, match="cluster down --cluster kind --name ci"):
        cluster(kind, tmp_path).up()
    made.down()
    assert kind.clusters == []


def test_an_interrupted_creation_ends_kind_and_leaves_nothing(
    kind: StandIn, tmp_path: Path
) -> None:
    (kind.home / "slow").touch()

    class Interrupted(BaseException):
        pass

    def interrupt(*_: object) -> None:
        raise Interrupted

    before = signal.signal(signal.SIGUSR1, interrupt)

    def when_creating() -> None:
        while not (kind.home / "creating").exists():
            time.sleep(0.01)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)

    waiting = threading.Thread(target=when_creating)
    try:
        waiting.start()
        with pytest.raises(Interrupted):
            cluster(kind, tmp_path).up()
    finally:
        waiting.join()
        signal.signal(signal.SIGUSR1, before)
    assert kind.verbs[-2:] == ["create cluster", "delete cluster"]
    assert kind.clusters == []
    assert not (tmp_path / "state").exists()
    assert not (kind.home / "a child went on").exists()


def test_a_creation_that_cannot_be_undone_is_remembered(kind: StandIn, tmp_path: Path) -> None:
    kind.fail("create cluster", "ERROR: interrupted")
    kind.fail("delete cluster", "ERROR: failed to delete: busy")
    kind.exists("dra-conformance-ci")
    made = cluster(kind, tmp_path)
    with pytest.raises(ClusterError, match="interrupted"):
        made.up()
    (kind.home / "fail delete cluster").unlink()
    made.down()
    assert kind.clusters == []


def test_the_certificates_of_a_cluster_that_is_gone_say_nothing_of_the_next(
    kind: StandIn, tmp_path: Path
) -> None:
    with_authority(kind, "Zmlyc3Q=")
    made = cluster(kind, tmp_path)
    made.up()
    kind.exists("")
    kind.fail("create cluster", "ERROR: interrupted")
    kind.fail("delete cluster", "ERROR: failed to delete: busy")
    with pytest.raises(ClusterError, match="interrupted"):
        made.up()
    for what in ("create", "delete"):
        (kind.home / f"fail {what} cluster").unlink()
    kind.exists("dra-conformance-ci")  # what the interrupted creation has left
    with_authority(kind, "c2Vjb25k")
    made.down()
    assert kind.clusters == []


def test_down_deletes_the_cluster_and_all_that_was_kept_of_it(
    kind: StandIn, tmp_path: Path
) -> None:
    made = cluster(kind, tmp_path)
    made.up()
    made.down()
    assert kind.clusters == []
    assert kind.calls[-1] == [
        *("delete", "cluster", "--name", "dra-conformance-ci"),
        *("--kubeconfig", str(made.kubeconfig)),
    ]
    assert not (tmp_path / "state").exists()
    made.down()
    assert kind.verbs.count("delete cluster") == 1


def test_a_cluster_of_somebody_else_is_neither_used_nor_deleted(
    kind: StandIn, tmp_path: Path
) -> None:
    kind.exists("dra-conformance-ci")
    made = cluster(kind, tmp_path)
    with pytest.raises(ClusterUsageError, match="was not created here, so it is left alone"):
        made.up()
    made.down()
    assert kind.clusters == ["dra-conformance-ci"]
    assert "delete cluster" not in kind.verbs
    assert not (tmp_path / "state").exists()


def test_the_kubeconfig_of_a_cluster_whose_record_was_lost_is_kept(
    kind: StandIn, tmp_path: Path
) -> None:
    made = cluster(kind, tmp_path)
    made.up()
    text = made.kubeconfig.read_text()
    (tmp_path / "state/created.json").unlink()
    with pytest.raises(ClusterUsageError, match="was not created here"):
        cluster(kind, tmp_path).up()
    assert made.kubeconfig.read_text() == text


@pytest.mark.parametrize(
    ("said", "advice"),
    [
        ("ERROR: failed to create cluster: failed to get docker info: command", "engine"),
        ("Cannot connect to the Docker daemon at unix:///var/run/docker.sock.", "engine"),
        ('ERROR: failed to pull image "x": command "docker pull x" failed', "--node-image"),
        ('ERROR: command "docker exec --privileged n kubeadm init" failed', ""),
    ],
)
def test_what_kind_says_gets_the_advice_that_fits(said: str, advice: str) -> None:
    found = summarize_errors(said)
    assert found.startswith(said)
    told = found[len(said) :]
    assert (advice in told) if advice else not told


def test_a_failed_creation_says_why_and_leaves_nothing(kind: StandIn, tmp_path: Path) -> None:
    kind.fail("create cluster", "ERROR: failed to create cluster: no space left on device")
    made = cluster(kind, tmp_path)
    with pytest.raises(ClusterError, match="no space left on device") as caught:
        made.up()
    assert "create cluster --name dra-conformance-ci" in str(caught.value)
    assert kind.verbs == ["create cluster", "delete cluster"]
    made.down()
    assert kind.verbs.count("delete cluster") == 1
    assert "no space left" in (tmp_path / "state" / "kind.log").read_text()


def test_an_image_that_cannot_be_loaded_takes_the_new_cluster_with_it_but_no_older_one(
    kind: StandIn, tmp_path: Path
) -> None:
    archive = tmp_path / "image.tar"
    archive.touch()
    kind.fail("load image-archive", "ERROR: not an archive")
    with pytest.raises(ClusterError, match="not an archive"):
        cluster(kind, tmp_path, images=[archive]).up()
    assert kind.clusters == []
    cluster(kind, tmp_path).up()
    with pytest.raises(ClusterError, match="not an archive"):
        cluster(kind, tmp_path, images=[archive]).up()
    assert kind.clusters == ["dra-conformance-ci"]


def test_a_deletion_that_fails_can_be_tried_again(kind: StandIn, tmp_path: Path) -> None:
    made = cluster(kind, tmp_path)
    made.up()
    kind.fail("delete cluster", "ERROR: failed to delete: busy")
    with pytest.raises(ClusterError, match="busy"):
        made.down()
    (kind.home / "fail delete cluster").unlink()
    made.down()
    assert kind.clusters == []


@pytest.mark.parametrize("missing", ["config", "images"])
def test_a_missing_file_is_named_before_anything_is_created(
    kind: StandIn, tmp_path: Path, missing: str
) -> None:
    path = tmp_path / "gone"
    options = {missing: [path] if missing == "images" else path}
    with pytest.raises(ClusterUsageError, match=f"{path}: no such file"):
        cluster(kind, tmp_path, **options).up()
    assert kind.calls == []


@pytest.mark.parametrize("name", ["", "Upper", "a_b", "-a", "a" * 31, "../x"])
def test_a_name_that_no_cluster_can_have_is_refused(name: str) -> None:
    with pytest.raises(ClusterUsageError, match="cannot name a kind cluster"):
        KindCluster(name)


def test_a_command_that_is_not_there_is_said(tmp_path: Path) -> None:
    made = KindCluster("ci", command=[str(tmp_path / "kind")], state_dir=tmp_path / "state")
    with pytest.raises(ClusterError, match="cannot be run: No such file"):
        made.up()


def test_without_kind_and_go_it_is_said_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(ClusterUsageError, match=r"kind\.sigs\.k8s\.io.*there is no `go` command"):
        kind_command()


def test_kind_is_built_by_the_go_beside_python_where_the_machines_is_too_old(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_go(tmp_path / "path", "go1.19")
    ours = Path(put_go(tmp_path / "venv", "go1.26.6"))
    ours.write_text('#!/bin/sh\nif [ "$1" = env ]; then echo go1.26.6; else shift 5; : >"$1"; fi\n')
    monkeypatch.setenv("PATH", f"{tmp_path / 'path'}")
    monkeypatch.setattr(sys, "executable", str(tmp_path / "venv/python"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    [built] = kind_command()
    assert Path(built).exists()


def test_a_kind_on_the_path_is_preferred(kind: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(kind.home))
    assert kind_command() == (str(kind.command),)
