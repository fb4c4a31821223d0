"""Genuine evidence, made once for all tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.results.events.scenario import PlannedScenario
from tests.certify.evidence import Forgery, genuine
from tests.certify.submitted import Submitted

Source = tuple[Path, list[PlannedScenario]]


@pytest.fixture(scope="session")
def source(tmp_path_factory: pytest.TempPathFactory) -> Source:
    path = tmp_path_factory.mktemp("genuine") / "results.ndjson"
    return path, genuine(path)


@pytest.fixture
def forgery(source: Source, tmp_path: Path) -> Forgery:
    return Forgery(source[0], tmp_path, source[1])


@pytest.fixture
def submitted(source: Source, tmp_path: Path) -> Submitted:
    return Submitted(tmp_path, *source)
