"""The API over HTTP: get, list, watch, create, update, patch and delete of what DRA drivers touch.

Plain HTTP on loopback, answers in JSON, no authentication: the driver gets a kubeconfig. Requests
are those of kube-apiserver (staging/src/k8s.io/apiserver/pkg/endpoints/handlers); server-side apply
is taken as a merge patch, which is the same for a driver that owns all of its slice's fields.
"""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

import yaml

from conformance.drivercheck.api import protobuf
from conformance.drivercheck.api.discovery import discovery
from conformance.drivercheck.api.objects import Objects
from conformance.drivercheck.api.request import Request, read_request
from conformance.drivercheck.api.watching import Changes
from conformance.kubeapi.errors import ApiError
from conformance.targets.base import Obj
from conformance.targets.reference.apiserver import conversion

MAX_BODY: Final = 3 << 20
"""Bytes of a request (MaxRequestBodyBytes of apiserver's config)."""

MAX_REFUSALS: Final = 100
_WATCH_SECONDS: Final = 300.0
_IDLE_SECONDS: Final = 120.0
_INITIAL_END: Final = "k8s.io/initial-events-end"
_BODIES: Final = frozenset({"application/json", protobuf.CONTENT_TYPE})
_PATCHES: Final = frozenset(
    {
        "application/merge-patch+json",
        "application/strategic-merge-patch+json",
        "application/apply-patch+yaml",
    }
)


@dataclass
class Faults:
    """What the server does wrong on purpose.

    Attributes:
        refuse: status of every answer; 0: answer as it should be.
        hold: names of claims whose GET is not answered until they are taken out.
    """

    refuse: int = 0
    hold: set[str] = field(default_factory=set)


class HttpApi:
    """The server, while it runs.

    Attributes:
        objects: what it serves.
        changes: what happened to them.
        faults: what it does wrong.
        refused: what it refused of ResourceSlices: verb and message, at most `MAX_REFUSALS`.
        lists: how often ResourceSlices were listed or watched.
        held: names of claims whose GET came and was held.
    """

    def __init__(self) -> None:
        """Serve on a free port of loopback."""
        self.objects = Objects()
        self.changes = Changes(self.objects)
        self.faults = Faults()
        self.refused: list[str] = []
        self.lists = 0
        self.held: set[str] = set()
        self.freed = threading.Condition()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True
        )
        self._thread.start()

    def write_kubeconfig(self, path: Path) -> None:
        """Write the file that the driver reads."""
        server = f"http://127.0.0.1:{self._server.server_port}"
        name = "driver-check"
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": name, "cluster": {"server": server}}],
            "users": [{"name": name, "user": {}}],
            "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
            "current-context": name,
        }
        path.write_text(yaml.safe_dump(config), encoding="utf-8")

    def wait_held(self, name: str, seconds: float) -> None:
        """Wait until the GET of a held claim came, not longer: a driver may know it otherwise."""
        with self.freed:
            self.freed.wait_for(lambda: name in self.held, seconds)

    def release(self) -> None:
        """Do nothing wrong any more."""
        with self.freed:
            self.faults.refuse = 0
            self.faults.hold.clear()
            self.held.clear()
            self.freed.notify_all()

    def close(self) -> None:
        """Stop serving."""
        self.release()
        self.changes.close()
        self._server.shutdown()
        self._server.server_close()


def _handler(api: HttpApi) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        """One connection."""

        protocol_version = "HTTP/1.1"
        timeout = _IDLE_SECONDS

        def log_message(self, *_: object) -> None:
            """Say nothing: the terminal is for checks."""

        def _serve(self) -> None:
            split = urlsplit(self.path)
            query = dict(parse_qsl(split.query))
            try:
                body = self._body()
                if api.faults.refuse:
                    raise ApiError(api.faults.refuse, "ServiceUnavailable", "refused on purpose")
                found = discovery(split.path) if self.command == "GET" else None
                if found is not None:
                    return self._answer(200, found)
                request = read_request(split.path, query)
                self._hold(request)
                if self.command == "GET" and request.kind.name == "ResourceSlice":
                    api.lists += 1
                if self.command == "GET" and query.get("watch") in ("1", "true"):
                    return self._watch(request)
                self._answer(201 if self.command == "POST" else 200, self._do(request, body))
            except ApiError as error:
                self._refuse(split.path, error)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _serve  # noqa: N815 -- http.server's

        def _body(self) -> Any:
            length = int(self.headers.get("Content-Length") or 0)
            if length > MAX_BODY or "chunked" in self.headers.get("Transfer-Encoding", ""):
                self.close_connection = True
                raise ApiError(413, "RequestEntityTooLarge", f"at most {MAX_BODY} bytes")
            data = self.rfile.read(length)
            if not data or self.command not in ("POST", "PUT", "PATCH"):
                return None
            kind = self.headers.get("Content-Type", "application/json").split(";")[0]
            allowed = _PATCHES if self.command == "PATCH" else _BODIES
            if kind not in allowed:
                wanted = ", ".join(sorted(allowed))
                raise ApiError(415, "UnsupportedMediaType", f"{kind} is not one of {wanted}")
            try:
                if kind == protobuf.CONTENT_TYPE:
                    return protobuf.decode(data)
                found = yaml.safe_load(data) if kind.endswith("+yaml") else json.loads(data)
            except (ValueError, RecursionError, yaml.YAMLError) as error:
                raise ApiError(400, "BadRequest", f"the body cannot be decoded: {error}") from None
            if not isinstance(found, dict):
                raise ApiError(400, "BadRequest", "the body is not an object")
            return found

        def _hold(self, request: Request) -> None:
            if self.command == "GET" and request.kind.name == "ResourceClaim":
                with api.freed:
                    if request.name in api.faults.hold:
                        api.held.add(request.name)
                        api.freed.notify_all()
                    api.freed.wait_for(lambda: request.name not in api.faults.hold, _IDLE_SECONDS)

        def _do(self, request: Request, body: Any) -> Obj:
            server, namespace = api.objects.api, request.namespace or ""
            with api.objects.lock:
                match self.command:
                    case "GET" if request.name:
                        found = server.get(request.ref, namespace)
                        if found is None:
                            raise request.not_found()
                        return found
                    case "GET":
                        return self._list(request)
                    case "POST":
                        named = {"apiVersion": request.api_version, "kind": request.kind.name}
                        return server.create({**named, **body}, namespace)
                    case "PUT":
                        return server.update(request.ref, body, request.sub, namespace)
                    case "PATCH":
                        return self._patch(request, body, namespace)
            if server.get(request.ref, namespace) is None:
                raise request.not_found()
            server.delete(request.ref, None, namespace)
            return {"kind": "Status", "apiVersion": "v1", "status": "Success"}

        def _patch(self, request: Request, body: Any, namespace: str) -> Obj:
            server = api.objects.api
            applied = self.headers.get("Content-Type", "").startswith("application/apply-patch")
            if applied and server.get(request.ref, namespace) is None:
                return server.create(body, namespace)
            return server.patch(request.ref, body, request.sub, namespace)

        def _list(self, request: Request) -> Obj:
            found = [
                conversion.to_version(one, request.api_version)
                for one in api.objects.store.all(request.kind.name)
                if request.matches(one)
            ]
            return {
                "kind": f"{request.kind.name}List",
                "apiVersion": request.api_version,
                "metadata": {"resourceVersion": str(api.objects.store.revision)},
                "items": found,
            }

        def _watch(self, request: Request) -> None:
            query = request.query
            initial = query.get("sendInitialEvents") == "true"
            with api.objects.lock:
                now = api.objects.store.revision
                from_start = initial or query.get("resourceVersion", "0") in ("", "0")
                listed = self._list(request)["items"] if from_start else []
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for one in listed:
                self._event("ADDED", one)
            if initial:
                end = {"resourceVersion": str(now), "annotations": {_INITIAL_END: "true"}}
                marked = {"kind": request.kind.name, "apiVersion": request.api_version}
                self._event("BOOKMARK", {**marked, "metadata": end})
            after = now if from_start else int(query["resourceVersion"])
            seconds = min(float(query.get("timeoutSeconds", _WATCH_SECONDS)), _WATCH_SECONDS)
            for change in api.changes.follow(request.kind.name, after, seconds, request.matches):
                self._event(change.type, conversion.to_version(change.obj, request.api_version))
            self.wfile.write(b"0\r\n\r\n")

        def _event(self, kind: str, obj: Obj) -> None:
            line = json.dumps({"type": kind, "object": obj}).encode() + b"\n"
            self.wfile.write(b"%x\r\n%b\r\n" % (len(line), line))
            self.wfile.flush()

        def _refuse(self, path: str, error: ApiError) -> None:
            invalid = error.code in (400, 413, 415, 422)
            if invalid and "resourceslices" in path and len(api.refused) < MAX_REFUSALS:
                api.refused.append(f"{self.command} {path}: {error.message}")
            causes = [
                {"field": one.field, "reason": one.reason, "message": one.message}
                for one in error.causes
            ]
            body = {
                "kind": "Status",
                "apiVersion": "v1",
                "status": "Failure",
                "code": error.code,
                "reason": error.reason,
                "message": error.message,
                "details": {"causes": causes},
            }
            self._answer(error.code, body)

        def _answer(self, code: int, body: Obj) -> None:
            data = json.dumps(body).encode()
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def handle(self) -> None:
            """Serve until the peer has left, however it leaves."""
            try:
                super().handle()
            except (OSError, ValueError):
                self.close_connection = True

    return Handler
