"""What a run does to clusters that it did not start: nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from conformance.targets.opening import sources
from conformance.targets.opening.options import TargetOptions
from conformance.targets.opening.sources import open_cluster
from localkube import manifests
from localkube import options as local_options
from localkube.base import ClusterAccess, ClusterUsageError, Progress, silent
from localkube.binaries.versions import CONTROL_PLANE_BINARIES
from localkube.layout import make_layout
from localkube.state import write_state
from tests.targets.opening.test_options_without_effect import running

KIND: dict[str, Any] = {"target": "cluster", "cluster": "kind"}


def test_a_local_cluster_that_a_start_is_refused_for_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was started with `cluster up`, and its API server has died: its logs are wanted."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    layout = make_layout("n", tmp_path / "state/dra-conformance/local/n")
    write_state(layout, running())
    layout.logs.mkdir()
    layout.log("kube-apiserver").write_text("why it died\n")
    for name in CONTROL_PLANE_BINARIES:
        (tmp_path / name).touch(0o755)
    options = TargetOptions(target="cluster", cluster="local", name="n", nodes=0, binaries=tmp_path)
    with pytest.raises(ClusterUsageError, match="exists already"), open_cluster(options):
        pytest.fail("opened")
    assert layout.state.exists()
    assert layout.log("kube-apiserver").read_text() == "why it died\n"


@pytest.mark.parametrize(
    ("command", "nodes", "started"), [((), None, 4), (("a",), None, 1), (("a",), 3, 3)]
)
def test_a_driver_of_somebody_else_may_have_this_machines_devices_and_gets_one_node(
    command: tuple[str, ...], nodes: int | None, started: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Local:
        def __init__(self, options: TargetOptions) -> None:
            self.nodes = options.node_count

        def up(self, _progress: Progress) -> ClusterAccess:
            names = tuple(f"node-{number}" for number in range(self.nodes))
            return ClusterAccess(Path("kubeconfig"), "c", "v1.37.2", "image", names)

        def down(self, _progress: Progress) -> None:
            pass

    monkeypatch.setattr(sources, "local_cluster", Local)
    monkeypatch.setattr(sources, "find_local_access", lambda _local: None)
    monkeypatch.setattr(local_options, "count_suitable_nodes", lambda: 4)
    options = TargetOptions(target="cluster", cluster="local", nodes=nodes, driver_command=command)
    with open_cluster(options) as (access, given):
        assert (len(access.nodes), given.node_count) == (started, started)


class Kind:
    """A kind cluster as the opening sees it."""

    def __init__(self, *, there: bool = False) -> None:
        self.there = there
        self.refuses = False
        self.created = False

    def up(self, _progress: Progress = silent) -> ClusterAccess:
        if self.refuses:
            raise ClusterUsageError("not ours")
        self.created = not self.there
        self.there = True
        return ClusterAccess(Path("kubeconfig"), "c", "v1.37.1", "image", ())

    def down(self, _progress: Progress = silent) -> None:
        self.there = False


@pytest.fixture
def kind(monkeypatch: pytest.MonkeyPatch) -> Kind:
    made = Kind()
    monkeypatch.setattr(sources, "kind_cluster", lambda _options: made)
    return made


def test_a_kind_cluster_is_deleted_by_the_run_that_created_it(kind: Kind) -> None:
    with open_cluster(TargetOptions(**KIND)):
        assert kind.there
    assert not kind.there


def test_a_kind_cluster_that_was_kept_stays_for_the_next_run(kind: Kind) -> None:
    with open_cluster(TargetOptions(**KIND, keep=True)):
        pass
    with open_cluster(TargetOptions(**KIND)):
        pass
    assert kind.there


def test_a_kind_cluster_that_was_refused_stays(kind: Kind) -> None:
    kind.there = kind.refuses = True
    with pytest.raises(ClusterUsageError, match="not ours"), open_cluster(TargetOptions(**KIND)):
        pytest.fail("opened")
    assert kind.there


@pytest.mark.parametrize(
    ("there", "keep", "removes"), [(False, False, False), (True, False, True), (False, True, True)]
)
def test_a_driver_is_removed_unless_its_cluster_goes(
    kind: Kind, monkeypatch: pytest.MonkeyPatch, there: bool, keep: bool, removes: bool
) -> None:
    calls: list[Any] = []

    @contextmanager
    def installed(
        objects: Any, _access: Any, driver: str, _progress: Any, removes: bool
    ) -> Iterator[None]:
        assert kind.there
        calls.append((objects, driver, removes))
        yield
        assert kind.there
        calls.append("removed")

    monkeypatch.setattr(manifests, "render_manifests", lambda given: [given])
    monkeypatch.setattr(manifests, "install_objects", installed)
    kind.there = there
    with open_cluster(TargetOptions(**KIND, keep=keep, driver_manifests="deploy/")):
        assert calls == [(["deploy/"], "gpu.nvidia.com", removes)]
    assert calls[1:] == ["removed"]
    assert kind.there == removes


def test_manifests_that_are_not_there_are_said_before_a_cluster_is_created(
    kind: Kind, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "kubectl").touch(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    options = TargetOptions(**KIND, driver_manifests=str(tmp_path / "gone"))
    with pytest.raises(ClusterUsageError, match="no such file"), open_cluster(options):
        pytest.fail("opened")
    assert not kind.there
