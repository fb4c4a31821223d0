"""What a driver was asked, read from its log as it is written."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from conformance.targets.cluster.driverlog import read_driver_calls
from kube.kubelet import dra_v1_pb2 as dra
from kube.observations import DriverCall
from kube.values import Obj
from nvml_driver.errors import PrepareError
from nvml_driver.kubelet.service import ClaimWork
from nvml_driver.logs import TextFormatter


class Core:
    """Refuses the claim ``bad``, and has no devices."""

    options = type("Options", (), {"driver_name": "d.example.com"})

    def prepare(self, claim: Obj, **_: object) -> list[object]:
        if claim["metadata"]["name"] == "bad":
            raise PrepareError("no: of that none")
        return []

    def unprepare(self, uid: str) -> None:
        pass


def get(namespace: str, name: str) -> Obj:
    return {"metadata": {"namespace": namespace, "name": name, "uid": f"uid-{name}"}}


def ask(work: ClaimWork, namespace: str, *names: str) -> None:
    claims = [dra.Claim(namespace=namespace, name=name, uid=f"uid-{name}") for name in names]
    list(work.prepare_each(claims, seconds=5, still_wanted=lambda: True))
    list(work.unprepare_each(claims))


def test_calls_of_a_namespace_are_read_from_what_the_driver_logs(tmp_path: Path) -> None:
    handler = logging.FileHandler(tmp_path / "driver.log")
    handler.setFormatter(TextFormatter())
    logger = logging.getLogger("nvml_driver")
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        work = ClaimWork(Core(), get)  # type: ignore[arg-type]
        ask(work, "mine", "good", "bad")
        ask(work, "theirs", "good")
    finally:
        logger.removeHandler(handler)
        handler.close()
    logs = {"node-1/driver": tmp_path / "driver.log", "node-2/driver": tmp_path / "missing.log"}
    assert read_driver_calls(logs, "mine") == [
        DriverCall("good", "prepare"),
        DriverCall("bad", "prepare", "no: of that none"),
        DriverCall("good", "unprepare"),
        DriverCall("bad", "unprepare"),
    ]
    assert read_driver_calls(logs, "nobody's") == []


@pytest.mark.parametrize("text", ["", "I1128 prepared something else\n"])
def test_of_another_driver_nothing_is_known(tmp_path: Path, text: str) -> None:
    (tmp_path / "driver.log").write_text(text, encoding="utf-8")
    assert read_driver_calls({"node-1/driver": tmp_path / "driver.log"}, "mine") is None
