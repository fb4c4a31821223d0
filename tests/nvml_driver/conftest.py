"""Fixtures of the driver's tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.nvml_driver.stub_api import StubApi


@pytest.fixture
def api() -> Iterator[StubApi]:
    """A running stub of the API server, with the node ``node-a``."""
    stub = StubApi()
    stub.put("/api/v1/nodes/node-a", {"metadata": {"name": "node-a", "uid": "node-uid"}})
    yield stub
    stub.close()
