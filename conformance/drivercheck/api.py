"""The API server that a driver under check talks to: the reference's, over HTTP on loopback.

It has the node, what the driver publishes, and the claims of the checks. It also answers wrongly on
purpose.
"""

from __future__ import annotations

import secrets
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from conformance.drivercheck.objects import NAMESPACE, NODE, Objects
from conformance.drivercheck.rbac.policy import Policy
from kube.errors import ApiError
from kube.values import User
from kubesim.front.call import Call
from kubesim.front.server import Front

MAX_REFUSALS: Final = 100
_HOLD_SECONDS: Final = 120.0
_INVALID: Final = frozenset({400, 413, 415, 422})


@dataclass
class Faults:
    """The faults that the server has on purpose.

    Attributes:
        refuse: the status of every answer; 0: none.
        refuse_slices: it takes every ResourceSlice that is written for an invalid one.
        passing: what ResourceSlices that are written are answered with, one after the other.
        hold: claims whose GET it holds.
    """

    refuse: int = 0
    refuse_slices: bool = False
    passing: list[int] = field(default_factory=list)
    hold: set[str] = field(default_factory=set)


class HttpApi(Front):
    """The server, while it runs; its certificates and kubeconfig are in ``folder``.

    Attributes:
        refusals: invalid ResourceSlices: method, path and message, at most `MAX_REFUSALS`.
        turned_away: how many ResourceSlices were refused on purpose.
        lists: how often ResourceSlices were listed or watched.
        token: the driver's.
    """

    def __init__(self, folder: Path, policy: Policy | None) -> None:
        self.objects = Objects(policy)
        self.faults = Faults()
        self.refusals: list[str] = []
        self.turned_away = 0
        self.lists = 0
        self.held: set[str] = set()
        self._freed = threading.Condition()
        user = policy.user if policy is not None else User(NAMESPACE, "driver", NODE)
        self.token = secrets.token_urlsafe(32)
        super().__init__(self.objects, folder, "driver-check", {self.token: user})
        self.write_kubeconfig(self.kubeconfig, "driver", self.token)

    def before(self, method: str, call: Call | None) -> None:
        """Refuse a request (ApiError), or hold it, where the faults say so."""
        if self.faults.refuse:
            raise ApiError(self.faults.refuse, "ServiceUnavailable", "refused on purpose")
        if call is None:
            return
        writes = method in ("POST", "PUT", "PATCH") and call.kind.name == "ResourceSlice"
        if writes and self.faults.passing:
            self.turned_away += 1
            status = self.faults.passing.pop(0)
            reason = "Conflict" if status == 409 else "ServiceUnavailable"
            raise ApiError(status, reason, "refused on purpose, for once")
        if writes and self.faults.refuse_slices:
            self.turned_away += 1
            text = "is invalid: spec: Invalid value: refused by the check on purpose"
            raise ApiError(422, "Invalid", f'{call.kind.resource} "{call.name}" {text}')
        if method != "GET":
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
        invalid = invalid and not self.faults.refuse_slices
        if invalid and len(self.refusals) < MAX_REFUSALS:
            self.refusals.append(f"{method} {path}: {error.message}")

    def wait_held(self, name: str, seconds: float) -> None:
        """Wait until the GET of a held claim came, at most so long: a driver may know the claim."""
        with self._freed:
            self._freed.wait_for(lambda: name in self.held, seconds)

    def release(self) -> None:
        with self._freed:
            self.faults.refuse, self.faults.refuse_slices = 0, False
            self.faults.passing.clear()
            self.faults.hold.clear()
            self.held.clear()
            self._freed.notify_all()

    def close(self) -> None:
        self.release()
        super().close()
