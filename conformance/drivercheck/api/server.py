"""The API server that a driver under check talks to: the reference's, with faults on purpose."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from conformance.drivercheck.api.objects import Objects
from conformance.kubeapi.errors import ApiError
from conformance.targets.reference.front.call import Call
from conformance.targets.reference.front.server import Front

MAX_REFUSALS: Final = 100
_HOLD_SECONDS: Final = 120.0
_INVALID: Final = frozenset({400, 413, 415, 422})


@dataclass
class Faults:
    """What the server does wrong: the status of every answer, and claims whose GET it holds."""

    refuse: int = 0
    hold: set[str] = field(default_factory=set)


class HttpApi(Front):
    """The server, while it runs; its certificates and kubeconfig are in ``folder``.

    Attributes:
        refusals: invalid ResourceSlices: method, path and message, at most `MAX_REFUSALS`.
        lists: how often ResourceSlices were listed or watched.
        held: names of claims whose GET came and was held.
    """

    def __init__(self, folder: Path) -> None:
        self.objects = Objects()
        self.faults = Faults()
        self.refusals: list[str] = []
        self.lists = 0
        self.held: set[str] = set()
        self._freed = threading.Condition()
        super().__init__(self.objects, folder, "driver-check")

    def before(self, method: str, call: Call | None) -> None:
        """Refuse every request, or hold it, where the faults say so.

        Raises:
            ApiError: refused on purpose.
        """
        if self.faults.refuse:
            raise ApiError(self.faults.refuse, "ServiceUnavailable", "refused on purpose")
        if method != "GET" or call is None:
            return
        if call.kind.name == "ResourceSlice":
            self.lists += 1
        if call.kind.name == "ResourceClaim":
            with self._freed:
                if call.name in self.faults.hold:
                    self.held.add(call.name)
                    self._freed.notify_all()
                self._freed.wait_for(lambda: call.name not in self.faults.hold, _HOLD_SECONDS)

    def refused(self, method: str, path: str, error: ApiError) -> None:
        invalid = error.code in _INVALID and "resourceslices" in path
        if invalid and len(self.refusals) < MAX_REFUSALS:
            self.refusals.append(f"{method} {path}: {error.message}")

    def wait_held(self, name: str, seconds: float) -> None:
        """Wait until the GET of a held claim came, at most so long: a driver may know the claim."""
        with self._freed:
            self._freed.wait_for(lambda: name in self.held, seconds)

    def release(self) -> None:
        with self._freed:
            self.faults.refuse = 0
            self.faults.hold.clear()
            self.held.clear()
            self._freed.notify_all()

    def close(self) -> None:
        self.release()
        super().close()
