"""An API server as far as the driver uses one: nodes, claims, slices, watches. On loopback."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import yaml

SLICES = "/apis/resource.k8s.io/v1/resourceslices"


class StubApi:
    """Objects by URL path; every change has a resourceVersion and reaches the watches."""

    def __init__(self) -> None:
        self.objects: dict[str, dict[str, Any]] = {}
        self.requests: list[tuple[str, str]] = []
        self.changed = threading.Condition()
        self.refuse: tuple[int, str] | None = None
        self._version = 0
        self._events: list[tuple[int, str, dict[str, Any]]] = []
        self._closing = False
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()

    def close(self) -> None:
        with self.changed:
            self._closing = True
            self.changed.notify_all()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def kubeconfig(self, folder: Path) -> Path:
        host, port = self._server.server_address[:2]
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "stub",
            "contexts": [{"name": "stub", "context": {"cluster": "stub", "user": "stub"}}],
            "clusters": [{"name": "stub", "cluster": {"server": f"http://{host!s}:{port}"}}],
            "users": [{"name": "stub", "user": {}}],
        }
        path = folder / "kubeconfig"
        path.write_text(yaml.safe_dump(document))
        return path

    def put(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Store an object as somebody else."""
        with self.changed:
            self._version += 1
            event = "MODIFIED" if path in self.objects else "ADDED"
            metadata = {"uid": f"uid-{self._version}", **body["metadata"]}
            metadata["resourceVersion"] = str(self._version)
            self.objects[path] = {**body, "metadata": metadata}
            self._record(path, event)
            return self.objects[path]

    def delete(self, path: str) -> None:
        """Delete an object as somebody else."""
        with self.changed:
            self._version += 1
            self._record(path, "DELETED")
            del self.objects[path]

    def slices(self) -> list[dict[str, Any]]:
        return [body for path, body in sorted(self.objects.items()) if path.startswith(SLICES)]

    def wait(self, condition: Any, timeout: float = 10.0) -> None:
        """Until the condition holds; it is looked at after each change."""
        with self.changed:
            assert self.changed.wait_for(lambda: condition(self), timeout), self.objects

    def _record(self, path: str, event: str) -> None:
        if path.startswith(SLICES):
            self._events.append((self._version, event, self.objects[path]))
        self.changed.notify_all()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        api = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: Any) -> None:
                pass

            def do_GET(self) -> None:
                url = urlsplit(self.path)
                query = parse_qs(url.query)
                if "watch" in query:
                    self._watch(int(query["resourceVersion"][0]))
                elif self._begin() and url.path == SLICES:
                    with api.changed:
                        version = {"resourceVersion": str(api._version)}
                        self._answer(200, {"metadata": version, "items": api.slices()})
                elif api.refuse is None:
                    found = api.objects.get(url.path)
                    self._answer(*((200, found) if found else _status(404, "not found")))

            def do_POST(self) -> None:
                body = self._body()
                if self._begin():
                    path = f"{urlsplit(self.path).path}/{body['metadata']['name']}"
                    self._answer(201, api.put(path, body))

            def do_PUT(self) -> None:
                body = self._body()
                if not self._begin():
                    return
                found = api.objects[self.path]["metadata"]["resourceVersion"]
                if body["metadata"]["resourceVersion"] != found:
                    self._answer(*_status(409, "the object has been modified"))
                else:
                    self._answer(200, api.put(self.path, body))

            def do_DELETE(self) -> None:
                if self._begin():
                    api.delete(self.path)
                    self._answer(200, {})

            def _begin(self) -> bool:
                api.requests.append((self.command, self.path))
                if api.refuse is not None:
                    self._answer(*_status(*api.refuse))
                return api.refuse is None

            def _body(self) -> dict[str, Any]:
                body: dict[str, Any] = json.loads(
                    self.rfile.read(int(self.headers["Content-Length"]))
                )
                return body

            def _answer(self, code: int, body: dict[str, Any]) -> None:
                content = json.dumps(body).encode()
                self.send_response(code)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def _watch(self, version: int) -> None:
                self.send_response(200)
                self.send_header("Connection", "close")
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                self.close_connection = True
                while True:
                    with api.changed:
                        while not api._closing and api._version <= version:
                            api.changed.wait()
                        if api._closing:
                            return
                        events = [event for event in api._events if event[0] > version]
                        version = api._version
                    for _, kind, body in events:
                        line = json.dumps({"type": kind, "object": body}).encode() + b"\n"
                        try:
                            self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
                        except OSError:
                            return  # the client went away

        return Handler


def _status(code: int, message: str) -> tuple[int, dict[str, Any]]:
    return code, {"kind": "Status", "status": "Failure", "message": message, "code": code}
