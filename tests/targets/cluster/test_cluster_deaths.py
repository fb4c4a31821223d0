from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from conformance.targets.cluster import ClusterTarget
from kube.base.errors import TargetError
from kube.values import Ref
from localkube.base import ClusterAccess
from tests.kube.fake_api import FakeApi

POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "pod0"}, "spec": {}}
DEATH = "node-1/driver has ended; its log ends with:\n  boo"


class Watched:
    """A cluster of which the test says when a part of it ends."""

    def __init__(self) -> None:
        self.tell: Callable[[str], None] = lambda _message: None
        self.ended = False

    def __call__(self, tell: Callable[[str], None]) -> Callable[[], None]:
        self.tell = tell
        return self.end

    def end(self) -> None:
        self.ended = True


@pytest.fixture
def watched() -> Watched:
    return Watched()


@pytest.fixture
def target(access: ClusterAccess, watched: Watched) -> Iterator[ClusterTarget]:
    target = ClusterTarget(dataclasses.replace(access, watch=watched))
    yield target
    target.close()


def test_a_wait_ends_at_once_when_a_part_of_the_cluster_ends(
    target: ClusterTarget, watched: Watched
) -> None:
    scope = target.scope("demo")
    timer = threading.Timer(0.3, watched.tell, [DEATH])
    timer.start()
    begin = time.monotonic()
    with pytest.raises(TargetError) as caught:
        scope.wait(lambda: scope.get(Ref("v1", "Pod", "never")), 60)
    assert time.monotonic() - begin < 10
    assert str(caught.value) == DEATH
    timer.join()


def test_afterwards_nothing_is_made(api: FakeApi, target: ClusterTarget, watched: Watched) -> None:
    watched.tell(DEATH)
    with pytest.raises(TargetError, match="boo"):
        target.scope("one").create(POD)
    assert api.count("POST", "/") == 0


def test_afterwards_what_was_made_can_be_removed_and_what_holds_is_no_error(
    target: ClusterTarget, watched: Watched
) -> None:
    scope = target.scope("demo")
    scope.create(POD)
    watched.tell(DEATH)
    ref = Ref("v1", "Pod", "pod0", "demo")
    assert scope.wait(lambda: scope.get(ref), 5) is not None
    scope.delete(ref)
    assert scope.wait(lambda: scope.get(ref) is None or None, 5)


def test_closing_ends_the_watch(target: ClusterTarget, watched: Watched) -> None:
    target.close()
    assert watched.ended
