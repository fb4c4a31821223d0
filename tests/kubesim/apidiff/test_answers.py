"""Our API server answers drawn and chosen requests as a real one did, whose answers are kept."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kubesim.apidiff.answers import Answer
from tests.kubesim.apidiff.core import core_case_of
from tests.kubesim.apidiff.differences import ask, compare
from tests.kubesim.apidiff.page import FILE, GATED_PAGE, GATES, PAGE, case_of_row
from tests.kubesim.apidiff.recorded import read_recording
from tests.kubesim.apidiff.requests import case_of
from tests.kubesim.apidiff.servers import Ours

_PAGE = json.loads(FILE.read_text(encoding="utf-8"))
_RECORDINGS = sorted(Path(__file__).parent.glob("recorded-*.ndjson.gz"))


@pytest.fixture(scope="module")
def ours() -> Iterator[Ours]:
    server = Ours("1.37.1")
    yield server
    server.close()


@pytest.mark.parametrize("name", GATED_PAGE)
def test_a_gated_row_is_answered_as_kubernetes_1_37_answers_it(name: str) -> None:
    server = Ours("1.37.1", GATES)
    answers = ask(server, case_of_row(name))
    server.close()
    assert answers == [Answer(**answer) for answer in _PAGE[name]]


@pytest.mark.parametrize("name", PAGE)
def test_a_row_is_answered_as_kubernetes_1_37_answers_it(ours: Ours, name: str) -> None:
    real = [Answer(**answer) for answer in _PAGE[name]]
    assert ask(ours, case_of_row(name)) == real


@pytest.mark.parametrize("path", _RECORDINGS, ids=lambda path: path.name.removesuffix(".ndjson.gz"))
def test_drawn_requests_are_answered_as_recorded(path: Path) -> None:
    version = path.name.removeprefix("recorded-").removesuffix(".ndjson.gz")
    draw = core_case_of if version.startswith("core-") else case_of
    version = version.removeprefix("core-")
    # 1.34 and 1.35 have no such gate.
    has_pool_status = draw is core_case_of and version >= "1.36"
    server = Ours(version, {"DRAResourcePoolStatus": True} if has_pool_status else {})
    unlike, count = [], 0
    for seed, number, real in read_recording(path):
        case = draw(seed, number)
        difference = compare(case, real, ask(server, case))
        count += 1
        if difference is not None:
            unlike.append(f"{seed}/{number}: {difference.kind}")
    server.close()
    assert count
    assert not unlike, "\n".join(unlike[:20])
