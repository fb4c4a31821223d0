"""Fixtures of the driver's tests."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.nvml_driver.stub_api import StubApi


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """A folder with a short name: the path of a unix socket has at most 107 bytes."""
    with tempfile.TemporaryDirectory(prefix="dra-") as folder:
        yield Path(folder)


@pytest.fixture
def api() -> Iterator[StubApi]:
    """A running stub of the API server, with the node ``node-a``."""
    stub = StubApi()
    stub.put("/api/v1/nodes/node-a", {"metadata": {"name": "node-a", "uid": "node-uid"}})
    yield stub
    stub.close()
