"""The fake API server as a test of the driver sees it: objects by their URL path."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.kube.fake_api import FakeApi, key_of

SLICES = "/apis/resource.k8s.io/v1/resourceslices"


class StubApi:
    """A running server. ``server`` is the fake itself."""

    def __init__(self) -> None:
        self.server = FakeApi()
        self.changed = self.server.changed

    def close(self) -> None:
        self.server.close()

    def kubeconfig(self, folder: Path) -> Path:
        return self.server.kubeconfig(folder / "kubeconfig")

    def refuse(self, status: int, message: str) -> None:
        """Answer every request so, until `serve`."""
        self.server.refusal = (status, message)

    def serve(self) -> None:
        self.server.refusal = None

    @property
    def requests(self) -> list[tuple[str, str]]:
        return [(method, path) for method, path, _, _ in self.server.requests]

    def put(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Store an object as somebody else."""
        return self.server.put(key_of(path)[0], body)

    def get(self, path: str) -> dict[str, Any]:
        return self.server.objects[key_of(path)]

    def delete(self, path: str) -> None:
        """Delete an object as somebody else."""
        self.server.drop(*key_of(path))

    def slices(self) -> list[dict[str, Any]]:
        with self.changed:
            found = sorted(self.server.objects.items())
        return [body for (plural, _, _), body in found if plural == "resourceslices"]

    def wait(self, condition: Callable[[StubApi], object], timeout: float = 120.0) -> None:
        """Until the condition holds; it is looked at after each change."""
        with self.changed:
            assert self.changed.wait_for(lambda: condition(self), timeout), self.server.objects
