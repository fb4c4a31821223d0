"""For all tests: warnings are errors, so no connection may be left to the garbage collector."""

from __future__ import annotations

import ssl
from collections.abc import Iterator

import pytest
from hypothesis import settings

from tests.kube.fake_api import FakeApi
from tests.localkube.pool import _one_control_plane, _one_of_two_nodes, control_plane, two_nodes

__all__ = ["_one_control_plane", "_one_of_two_nodes", "control_plane", "two_nodes"]


class ResetClosedSocket(ssl.SSLSocket):
    """A TLS socket that is closed where its server is gone before TLS begins.

    Python before 3.11.8 and 3.12.2 forgets it there (python/cpython#113280). Its `ResourceWarning`
    would fail whatever test runs when it is found.
    """

    def recv(self, buflen: int = 1024, flags: int = 0) -> bytes:
        """As the socket's own, which its constructor calls to see whether it is connected."""
        try:
            return super().recv(buflen, flags)
        except ConnectionResetError:
            self.close()
            raise


ssl.SSLContext.sslsocket_class = ResetClosedSocket


def pytest_configure(config: pytest.Config) -> None:
    """Have Hypothesis try few examples in `make test`, and many in `make everything`."""
    few = "not everything" in config.option.markexpr
    settings.register_profile("here", max_examples=25 if few else 200, deadline=None)
    settings.load_profile("here")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests of properties belong to `make everything`, too."""
    expression: str = config.option.markexpr
    if "everything" in expression and "not everything" not in expression:
        for item in items:
            if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
                item.add_marker(pytest.mark.everything)


@pytest.fixture
def api() -> Iterator[FakeApi]:
    """An API server on loopback that answers what a test tells it to."""
    fake = FakeApi()
    yield fake
    fake.close()
