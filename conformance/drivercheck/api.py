"""The API server that a driver under check talks to: the reference's, over HTTP on loopback.

It has the node, what the driver publishes, and the claims of the checks. It also answers wrongly on
purpose.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from starlette.responses import JSONResponse, Response

from conformance.drivercheck.objects import NAMESPACE, NODE, Objects
from conformance.drivercheck.rbac.policy import Policy
from kube.credentials import Authority, write_kubeconfig
from kube.errors import ApiError
from kube.values import User
from kubesim.front.answers import Form, Warnings
from kubesim.front.body import Sent, build_status
from kubesim.front.call import Call
from kubesim.front.server import Front

MAX_REFUSALS: Final = 100
_HOLD_SECONDS: Final = 120.0
_SEEN_ANNOTATION: Final = "dra-conformance.dev/seen"
_UNKNOWN_FIELD: Final = "draConformanceUnknown"
_INVALID: Final = frozenset({400, 413, 415, 422})
_REASONS: Final = {403: "Forbidden", 409: "Conflict", 503: "ServiceUnavailable"}


@dataclass
class Faults:
    """The faults that the server has on purpose.

    Attributes:
        refuse: the status of every answer; 0: none.
        refuse_slices: it takes every ResourceSlice that is written for an invalid one.
        passing: what ResourceSlices that are written are answered with, one after the other.
        expired_watches: so many watches of ResourceSlices begin with an ERROR event, 410 Expired.
        unknown_fields: claims that are read have fields that a newer API may have.
        hold: claims whose GET it holds.
    """

    refuse: int = 0
    refuse_slices: bool = False
    passing: list[int] = field(default_factory=list)
    expired_watches: int = 0
    unknown_fields: bool = False
    hold: set[str] = field(default_factory=set)


class HttpApi(Front):
    """The server, while it runs; its certificates and kubeconfig are in ``folder``.

    Attributes:
        refusals: invalid ResourceSlices: method, path and message, at most `MAX_REFUSALS`.
        turned_away: how many ResourceSlices were refused on purpose.
        lists: how often ResourceSlices were listed or watched.
        requests: how many requests of the driver were carried out or refused, for discovery, too.
        token: the driver's.
    """

    def __init__(self, folder: Path, policy: Policy | None, token: str = "") -> None:
        self.objects = Objects(policy)
        self.faults = Faults()
        self.refusals: list[str] = []
        self.turned_away = 0
        self.lists = 0
        self.requests = 0
        self.held: set[str] = set()
        self._freed = threading.Condition()
        user = policy.user if policy is not None else User(NAMESPACE, "driver", NODE)
        self.token = token or secrets.token_urlsafe(32)
        super().__init__(self.objects, folder, "driver-check", {self.token: user})
        self.write_kubeconfig(self.kubeconfig, "driver", self.token)

    def write_untrusted_kubeconfig(self, folder: Path) -> Path:
        """Write a kubeconfig for this server with the certificate of another authority."""
        folder.mkdir(mode=0o755, exist_ok=True)
        authority = Authority(folder, "somebody-else")
        path = folder / "kubeconfig"
        write_kubeconfig(
            path,
            cluster="driver-check",
            server=self.url,
            ca=authority.certificate,
            user="driver",
            token=self.token,
        )
        return path

    def before(self, method: str, call: Call | None) -> None:
        """Refuse a request (ApiError), or hold it, where the faults say so."""
        self.requests += 1
        if self.faults.refuse:
            raise ApiError(self.faults.refuse, "ServiceUnavailable", "refused on purpose")
        if call is None:
            return
        writes = method in ("POST", "PUT", "PATCH") and call.kind.name == "ResourceSlice"
        if writes and self.faults.passing:
            self.turned_away += 1
            status = self.faults.passing.pop(0)
            raise ApiError(status, _REASONS[status], "refused on purpose, for once")
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

    def begin_watch(self, call: Call, form: Form, loop: asyncio.AbstractEventLoop) -> Response:
        if call.kind.name == "ResourceSlice" and self.faults.expired_watches:
            self.faults.expired_watches -= 1
            error = build_status(ApiError(410, "Expired", "the resource version is too old"))
            line = json.dumps({"type": "ERROR", "object": error}) + "\n"
            return Response(line, media_type="application/json")
        return super().begin_watch(call, form, loop)

    def carry_out(self, call: Call, accept: str, sent: Sent, warnings: Warnings) -> Response:
        response = super().carry_out(call, accept, sent, warnings)
        is_claim = call.kind.name == "ResourceClaim" and call.method == "GET" and call.name
        if is_claim and self.faults.unknown_fields and response.status_code == 200:
            claim = json.loads(bytes(response.body))
            devices = claim["status"]["allocation"]["devices"]
            for part in (claim["spec"], claim["status"], devices, *devices["results"]):
                part[_UNKNOWN_FIELD] = {"value": 1}
            return JSONResponse(claim)
        return response

    def refused(self, method: str, path: str, error: ApiError) -> None:
        invalid = error.code in _INVALID and "resourceslices" in path
        invalid = invalid and not self.faults.refuse_slices
        if invalid and len(self.refusals) < MAX_REFUSALS:
            self.refusals.append(f"{method} {path}: {error.message}")

    def expire_watches(self) -> None:
        """End all watches as a compaction of etcd does; who goes on from there gets 410 Expired."""
        # With a newer resourceVersion than anybody has seen.
        node = self.objects.get_node()
        version = node["metadata"]["resourceVersion"]
        self.objects.change(node, metadata={"annotations": {_SEEN_ANNOTATION: version}})
        self.faults.expired_watches = 1  # also for who lists before it watches again
        self.objects.history.expire()

    def wait_held(self, name: str, seconds: float) -> None:
        """Wait until the GET of a held claim came, at most so long: a driver may know the claim."""
        with self._freed:
            self._freed.wait_for(lambda: name in self.held, seconds)

    def release(self) -> None:
        with self._freed:
            self.faults.refuse, self.faults.refuse_slices = 0, False
            self.faults.passing.clear()
            self.faults.expired_watches, self.faults.unknown_fields = 0, False
            self.faults.hold.clear()
            self.held.clear()
            self._freed.notify_all()

    def close(self) -> None:
        self.release()
        super().close()
