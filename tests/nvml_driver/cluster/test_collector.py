"""Claims that no longer exist give their devices back."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

from nvml_driver.cluster.collector import Collector
from nvml_driver.errors import KubeError
from tests.nvml_driver.helpers import make_claim, make_core, result


class Claims:
    """What the API server has, by name; ``fail`` stands for an API server that is away."""

    def __init__(self, *claims: dict[str, Any]) -> None:
        self.objects = {claim["metadata"]["name"]: claim for claim in claims}
        self.fail = False

    def get(self, _namespace: str, name: str) -> dict[str, Any] | None:
        if self.fail:
            raise KubeError("HTTP 500: away")
        return self.objects.get(name)


def test_only_what_was_missing_twice_is_unprepared(tmp_path: Path) -> None:
    core = make_core(tmp_path)
    here, gone = make_claim(result("gpu-0"), uid="here"), make_claim(result("gpu-1"), uid="gone")
    core.prepare(here)
    core.prepare(gone)
    collector = Collector(core, Claims(here).get)
    first = collector.find_missing()
    assert first == {"gone"}
    assert set(core.list_prepared()) == {"here", "gone"}, "its container may be stopping still"
    core.prepare(make_claim(result("gpu-2"), uid="new"))
    assert collector.unprepare_missing(first) == {"gone", "new"}
    assert set(core.list_prepared()) == {"here", "new"}


def test_a_claim_of_the_same_name_is_another_claim(tmp_path: Path) -> None:
    core = make_core(tmp_path)
    core.prepare(make_claim(result("gpu-0"), uid="old"))
    successor = make_claim(result("gpu-1"), uid="new")
    successor["metadata"]["name"] = "claim-old"
    assert Collector(core, Claims(successor).get).find_missing() == {"old"}


def test_an_api_server_that_does_not_answer_proves_nothing(tmp_path: Path) -> None:
    core = make_core(tmp_path)
    core.prepare(make_claim(result("gpu-0"), uid="u"))
    claims = Claims()
    claims.fail = True
    assert Collector(core, claims.get).find_missing() == set()


def test_it_looks_at_start_and_then_from_time_to_time(tmp_path: Path) -> None:
    core = make_core(tmp_path)
    claims = Claims()
    rounds = threading.Semaphore(0)

    def get(namespace: str, name: str) -> dict[str, Any] | None:
        rounds.release()
        return claims.get(namespace, name)

    core.prepare(make_claim(result("gpu-0"), uid="u1"))
    unprepared = threading.Event()
    original = core.unprepare

    def unprepare(uid: str) -> None:
        original(uid)
        unprepared.set()

    core.unprepare = unprepare  # type: ignore[method-assign]
    collector = Collector(core, get, interval=0.05, confirm=0.01)
    collector.start()
    try:
        assert unprepared.wait(10)
        assert core.list_prepared() == {}
        unprepared.clear()
        core.prepare(make_claim(result("gpu-1"), uid="u2"))
        assert unprepared.wait(10)
    finally:
        collector.stop()
    assert core.list_prepared() == {}


def test_of_two_instances_only_the_newest_collects(tmp_path: Path) -> None:
    core = make_core(tmp_path)
    core.prepare(make_claim(result("gpu-0"), uid="u"))
    asked = threading.Event()

    def active() -> bool:
        asked.set()
        return False

    collector = Collector(core, Claims().get, interval=0.01, confirm=0.0, active=active)
    collector.start()
    assert asked.wait(10)
    collector.stop()
    assert set(core.list_prepared()) == {"u"}
