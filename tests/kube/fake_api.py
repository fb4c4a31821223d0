"""A small API server over HTTP on loopback: enough of list, watch, create, patch and delete.

Controllers are not in it: a test plays them by calling `put` and `drop`. It can be told to fail.
"""

from __future__ import annotations

import json
import re
import socket
import struct
import threading
import time
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import yaml

from kube.errors import ApiError
from kubesim.apiserver.patches import as_merge_patch, merge

TOKEN = "secret-of-the-test-user"

# group/version -> plural -> (kind, namespaced)
KINDS: dict[str, dict[str, tuple[str, bool]]] = {
    "v1": {
        "namespaces": ("Namespace", False),
        "nodes": ("Node", False),
        "pods": ("Pod", True),
        "events": ("Event", True),
        "serviceaccounts": ("ServiceAccount", True),
    },
    "batch/v1": {"jobs": ("Job", True)},
    **{
        f"resource.k8s.io/{version}": {
            "deviceclasses": ("DeviceClass", False),
            "resourceslices": ("ResourceSlice", False),
            "resourceclaims": ("ResourceClaim", True),
            "resourceclaimtemplates": ("ResourceClaimTemplate", True),
            **({"devicetaintrules": ("DeviceTaintRule", False)} if version == "v1" else {}),
        }
        for version in ("v1", "v1beta1")
    },
}

_PATH = re.compile(
    r"^/(?:api|apis)/(?P<gv>v1|[^/]+/v[^/]+)"
    r"(?:/namespaces/(?P<ns>[^/]+))?/(?P<plural>[a-z]+)(?:/(?P<name>[^/]+))?(?:/(?P<sub>[^/]+))?$"
)


def key_of(path: str) -> tuple[str, str, str]:
    """Plural, namespace and name of an object's path."""
    found = _PATH.match(path)
    assert found is not None
    return found["plural"], found["ns"] or "", found["name"] or ""


class FakeApi:
    """The server. ``requests`` holds (method, path with query, headers, body) of each request."""

    def __init__(self) -> None:
        self.changed = threading.Condition(threading.RLock())
        self.version = 100
        self.objects: dict[tuple[str, str, str], dict[str, Any]] = {}  # (plural, ns, name)
        self.events: list[tuple[int, str, str, dict[str, Any]]] = []
        self.forgotten = 0
        self.requests: list[tuple[str, str, Mapping[str, str], Any]] = []
        self.failures: list[tuple[str, str, int, Mapping[str, str]]] = []
        self.refusal: tuple[int, str] | None = None  # of every request
        self.cut_watches = 0
        self.git_version = "v1.37.1+fake"
        self.served = {gv: dict(kinds) for gv, kinds in KINDS.items()}
        self.logs: dict[str, str] = {}
        self.finalized: set[str] = set()  # plurals whose objects stay when deleted
        self.mute = False  # watches deliver nothing
        self.deaf = False  # requests are taken and never answered
        self.answers: dict[str, tuple[int, str]] = {}  # path -> status and body, whatever is asked
        self.metrics = ""  # closed
        self.dry_run: Callable[[dict[str, Any]], dict[str, Any]] = lambda body: body
        self.stale: set[str] = set()  # versions of an extension server that does not answer
        self.stopped = False
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        )
        self._thread.start()

    def kubeconfig(self, path: Path) -> Path:
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "fake", "cluster": {"server": self.url}}],
            "users": [{"name": "user", "user": {"token": TOKEN}}],
            "contexts": [{"name": "fake", "context": {"cluster": "fake", "user": "user"}}],
            "current-context": "fake",
        }
        path.write_text(yaml.safe_dump(config))
        return path

    def fail(self, method: str, path: str, status: int, times: int = 1, **headers: str) -> None:
        """Answer the next requests whose path contains ``path`` with ``status``.

        0 hangs up at once, -1 hangs up after the request was carried out, -2 resets the
        connection in the middle of the answer.
        """
        self.failures += [(method, path, status, headers)] * times

    def put(self, plural: str, obj: dict[str, Any]) -> dict[str, Any]:
        """Create or replace, as a controller would."""
        with self.changed:
            meta = obj["metadata"]
            key = (plural, meta.get("namespace", ""), meta["name"])
            present = self.objects.get(key)
            self.version += 1
            uid = present["metadata"]["uid"] if present else f"uid-{self.version}"
            obj = {**obj, "metadata": {"uid": uid, **meta, "resourceVersion": str(self.version)}}
            self.objects[key] = obj
            self._record("MODIFIED" if present else "ADDED", plural, obj)
            return obj

    def drop(self, plural: str, namespace: str, name: str) -> None:
        """Remove for good."""
        with self.changed:
            obj = self.objects.pop((plural, namespace, name))
            self.version += 1
            gone = {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(self.version)}}
            self._record("DELETED", plural, gone)

    def forget(self) -> None:
        """Cut the watches and answer 410 to those that ask for what was before now."""
        with self.changed:
            self.version += 1
            self.forgotten = self.version
            self.cut()

    def cut(self) -> None:
        """Cut every open watch."""
        with self.changed:
            self.cut_watches += 1
            self.changed.notify_all()

    def unmute(self) -> None:
        with self.changed:
            self.mute = False
            self.changed.notify_all()

    def count(self, method: str, part: str) -> int:
        return sum(1 for m, path, _, _ in self.requests if m == method and part in path)

    def close(self) -> None:
        self.stopped = True
        self.cut()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)

    def _record(self, change: str, plural: str, obj: dict[str, Any]) -> None:
        self.events.append((self.version, change, plural, obj))
        self.changed.notify_all()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        fake = self

        class Handler(_Handler):
            api = fake

        return Handler


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    api: FakeApi
    silent = False
    broken = False

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        pass

    def _serve(self) -> None:
        method = self.command
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length)) if length else None
        self.api.requests.append((method, self.path, dict(self.headers), body))
        with self.api.changed:
            while self.api.deaf and not self.api.stopped:
                self.api.changed.wait(1)
        if self.api.stopped:
            self.close_connection = True
            return
        for failure in self.api.failures:
            if failure[0] == method and failure[1] in self.path:
                self.api.failures.remove(failure)
                if failure[2] < 0:
                    self.silent = failure[2] == -1
                    self.broken = failure[2] == -2
                    break
                if failure[2] == 0:
                    self.close_connection = True
                    return
                self._status(failure[2], "InternalError", "told to fail", headers=failure[3])
                return
        if self.api.refusal is not None:
            self._status(self.api.refusal[0], "Refused", self.api.refusal[1])
            return
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            self._status(401, "Unauthorized", "Unauthorized")
            return
        url = urlsplit(self.path)
        query = dict(parse_qsl(url.query))
        if url.path in self.api.answers:
            self._send(*self.api.answers[url.path])
            return
        if "apidiscovery" in self.headers.get("Accept", "") and url.path in ("/api", "/apis"):
            self._send(200, self._aggregated(url.path))
            return
        fixed = self._fixed(url.path)
        if fixed is not None:
            self._send(200, fixed)
            return
        if url.path == "/metrics" and self.api.metrics:
            self._send(200, self.api.metrics)
            return
        if url.path == "/metrics":
            self._status(403, "Forbidden", 'forbidden: User "user" cannot get path "/metrics"')
            return
        found = _PATH.match(url.path)
        # "/api/v1/namespaces/x" is the namespace, not a kind in it.
        if found and found["plural"] not in self.api.served.get(found["gv"], {}):
            found = re.match(
                r"^/api/(?P<gv>v1)(?P<ns>)/(?P<plural>namespaces)/(?P<name>[^/]+)(?P<sub>)$",
                url.path,
            )
        if not found or found["plural"] not in self.api.served.get(found["gv"], {}):
            self._status(404, "NotFound", "the server could not find the requested resource")
            return
        with self.api.changed:
            self._resource(method, found, query, body)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _serve  # noqa: N815

    def _aggregated(self, path: str) -> Any:
        """Every group with its versions and kinds, as KEP-3352 has it."""
        groups: dict[str, list[Any]] = {}
        for gv, kinds in self.api.served.items():
            name, _, version = gv.rpartition("/")
            resources = [
                {
                    "resource": plural,
                    "responseKind": {"kind": kind},
                    "scope": "Namespaced" if namespaced else "Cluster",
                    "verbs": ["list", "delete"] if kind != "Event" else ["list"],
                }
                for plural, (kind, namespaced) in kinds.items()
            ]
            freshness = "Stale" if gv in self.api.stale else "Current"
            entry = {"version": version, "resources": resources, "freshness": freshness}
            if ("/" in gv) == (path == "/apis"):
                groups.setdefault(name, []).append(entry)
        return {"items": [{"metadata": {"name": n}, "versions": v} for n, v in groups.items()]}

    def _fixed(self, path: str) -> Any:
        served = self.api.served
        if path == "/version":
            return {"gitVersion": self.api.git_version}
        if path == "/api":
            return {"versions": ["v1"]}
        if path == "/apis":
            groups: dict[str, list[dict[str, str]]] = {}
            for gv in served:
                if "/" in gv:
                    groups.setdefault(gv.split("/")[0], []).append({"groupVersion": gv})
            return {"groups": [{"name": n, "versions": v} for n, v in groups.items()]}
        gv = path.removeprefix("/apis/").removeprefix("/api/")
        if gv in served and path in (f"/api/{gv}", f"/apis/{gv}"):
            return {
                "resources": [
                    {"name": plural, "kind": kind, "namespaced": namespaced}
                    for plural, (kind, namespaced) in served[gv].items()
                ]
                + [{"name": "pods/status", "kind": "Pod", "namespaced": True}]
            }
        return None

    def _resource(self, method: str, found: re.Match[str], query: Any, body: Any) -> None:
        api, gv, plural = self.api, found["gv"], found["plural"]
        namespace, name = found["ns"] or "", found["name"] or ""
        kind = api.served[gv][plural][0]
        typed = {"apiVersion": gv, "kind": kind}
        if method == "POST":
            meta = dict(body["metadata"])
            if "bogus" in (body.get("spec") or {}):
                self._status(400, "BadRequest", 'strict decoding error: unknown field "spec.bogus"')
                return
            if namespace:
                meta["namespace"] = namespace
            if query.get("dryRun"):
                self._dry_run({**body, "metadata": meta})
                return
            if (plural, namespace, meta["name"]) in api.objects:
                self._status(409, "AlreadyExists", f'{plural} "{meta["name"]}" already exists')
                return
            self._send(201, {**api.put(plural, {**body, "metadata": meta}), **typed})
            return
        if not name:
            if query.get("watch"):
                self._watch(plural, namespace, query, typed)
            else:
                self._list(plural, namespace, query, typed)
            return
        if found["sub"] == "log":
            self._send(200, api.logs.get(f"{namespace}/{name}/{query.get('container')}", ""))
            return
        obj = api.objects.get((plural, namespace, name))
        if obj is None:
            self._status(404, "NotFound", f'{plural} "{name}" not found')
        elif method == "PUT":
            if body["metadata"]["resourceVersion"] != obj["metadata"]["resourceVersion"]:
                self._status(409, "Conflict", "the object has been modified")
                return
            self._send(200, {**api.put(plural, body), **typed})
        elif method == "PATCH":
            if self.headers["Content-Type"] == "application/strategic-merge-patch+json":
                body = as_merge_patch(obj, body)
            self._send(200, {**api.put(plural, merge(obj, body)), **typed})
        elif method == "DELETE":
            if plural in api.finalized:
                stamped = merge(obj, {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}})
                self._send(200, {**api.put(plural, stamped), **typed})
            else:
                api.drop(plural, namespace, name)
                self._send(200, {"kind": "Status", "status": "Success"})
        else:
            self._send(200, {**obj, **typed})

    def _dry_run(self, body: dict[str, Any]) -> None:
        try:
            self._send(201, self.api.dry_run(body))
        except ApiError as error:
            self._status(error.code, error.reason, error.message)

    def _list(self, plural: str, namespace: str, query: Any, typed: dict[str, str]) -> None:
        label = query.get("labelSelector", "")
        name, _, value = label.partition("=")
        items = []
        for (p, ns, _), obj in sorted(self.api.objects.items()):
            labels = obj["metadata"].get("labels") or {}
            chosen = not label or (name in labels and value in ("", labels[name]))
            if p == plural and namespace in ("", ns) and chosen:
                items.append({k: v for k, v in obj.items() if k not in ("apiVersion", "kind")})
        self._send(
            200,
            {
                "kind": typed["kind"] + "List",
                "apiVersion": typed["apiVersion"],
                "metadata": {"resourceVersion": str(self.api.version)},
                "items": items,
            },
        )

    def _watch(self, plural: str, namespace: str, query: Any, typed: dict[str, str]) -> None:
        """Called with the lock held; lets it go while it waits."""
        api = self.api
        since = int(query.get("resourceVersion") or 0)
        if since and since < api.forgotten:
            self._chunked([{"type": "ERROR", "object": {"kind": "Status", "code": 410}}])
            return
        cut = api.cut_watches
        self._begin_chunks()
        deadline = time.monotonic() + 20
        position = 0
        if not since:  # the present state first, as the real one does
            position = len(api.events)
            for (p, ns, _), obj in sorted(api.objects.items()):
                if p == plural and namespace in ("", ns):
                    self._chunk({"type": "ADDED", "object": {**obj, **typed}})
        while (
            api.cut_watches == cut
            and not (api.stopped or self.wfile.closed)
            and time.monotonic() < deadline
        ):
            while position < len(api.events) and not api.mute:
                version, change, changed, obj = api.events[position]
                position += 1
                inside = namespace in ("", obj["metadata"].get("namespace", ""))
                if version > since and changed == plural and inside and not self.wfile.closed:
                    self._chunk({"type": change, "object": {**obj, **typed}})
            api.changed.wait(1)
        self._end_chunks()

    def _begin_chunks(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.wfile.flush()

    def _chunk(self, document: Any) -> None:
        data = json.dumps(document).encode() + b"\n"
        if self.broken:
            self._write(b"%x\r\n%s" % (len(data), data[: len(data) // 2]))
            self._reset()
            return
        self._write(b"%x\r\n%s\r\n" % (len(data), data))

    def _end_chunks(self) -> None:
        self._write(b"0\r\n\r\n")

    def _chunked(self, documents: list[Any]) -> None:
        self._begin_chunks()
        for document in documents:
            self._chunk(document)
        self._end_chunks()

    def _write(self, data: bytes) -> None:
        if self.wfile.closed:
            return
        try:
            self.wfile.write(data)
            self.wfile.flush()
        except OSError:
            self.close_connection = True

    def _reset(self) -> None:
        """Drop the connection so that the other side gets ECONNRESET (socket(7), SO_LINGER)."""
        self.close_connection = True
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        for open_file in (self.rfile, self.wfile, self.connection):
            open_file.close()

    def _status(
        self, code: int, reason: str, message: str, headers: Mapping[str, str] | None = None
    ) -> None:
        status = {
            "kind": "Status",
            "apiVersion": "v1",
            "status": "Failure",
            "code": code,
            "reason": reason,
            "message": message,
        }
        self._send(code, status, headers)

    def _send(self, code: int, body: Any, headers: Mapping[str, str] | None = None) -> None:
        if self.silent:
            self.close_connection = True
            return
        data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        for name, value in (headers or {}).items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self._write(data[: len(data) // 2] if self.broken else data)
        if self.broken:
            self._reset()
