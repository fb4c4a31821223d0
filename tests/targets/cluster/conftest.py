from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from conformance.targets.cluster import ClusterTarget
from conformance.targets.cluster.scope import ClusterScope
from localkube.base import ClusterAccess
from tests.kube.fake_api import FakeApi

MakeTarget = Callable[..., ClusterTarget]


@dataclass
class RecordingControl:
    """A `ComponentControl` that notes what it is asked for, and has one answer for all metrics."""

    answer: str | None = None
    requests: list[tuple[str, str]] = field(default_factory=list)  # component, what is asked

    def disturb(self, component: str, action: str) -> None:
        self.requests.append((component, action))

    def set_gates(self, component: str, gates: Mapping[str, bool]) -> None:
        self.requests.append((component, f"gates {dict(gates)}"))

    def peak_memory(self) -> int:
        return 3 << 20

    def metrics(self, component: str) -> str | None:
        self.requests.append((component, "metrics"))
        return self.answer


def until(condition: Callable[[], object]) -> None:
    """Return once something holds."""
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline, "did not happen"
        time.sleep(0.005)


@pytest.fixture
def access(api: FakeApi, tmp_path: Path) -> ClusterAccess:
    return ClusterAccess(
        kubeconfig=api.kubeconfig(tmp_path / "kubeconfig"),
        context="fake",
        kubernetes_version="v1.37.1",
        image="probe",
        nodes=("node-1",),
    )


@pytest.fixture
def make_target(access: ClusterAccess) -> Iterator[MakeTarget]:
    made: list[ClusterTarget] = []

    def make(**options: Any) -> ClusterTarget:
        target = ClusterTarget(access, **options)
        made.append(target)
        return target

    yield make
    for target in made:
        target.close()


@pytest.fixture
def target(make_target: MakeTarget) -> ClusterTarget:
    return make_target()


@pytest.fixture
def scope(target: ClusterTarget) -> Iterator[ClusterScope]:
    opened = target.scope("demo")
    yield opened
    opened.close()
