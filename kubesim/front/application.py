"""Requests over HTTP, carried out by the API server: an ASGI application.

Requests are those of kube-apiserver (staging/src/k8s.io/apiserver/pkg/endpoints/handlers). Answers
are JSON, which every client takes. A field that is not known is refused unless the request has
``fieldValidation=Ignore`` or ``Warn``: a real server's default would drop it without a word.
"""

from __future__ import annotations

import asyncio
import logging
import re
import secrets
from collections import OrderedDict
from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any, Final

from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from kube.errors import ApiError
from kube.values import FieldManager, Obj, Ref, User
from kube.values import Request as ApiRequest
from kubesim.apiserver import conversion, patches
from kubesim.front import body as bodies
from kubesim.front.backend import Backend
from kubesim.front.call import Call, read_call, wanted_of
from kubesim.front.discovery import answer_discovery
from kubesim.front.watching import Wakeups, stream_watch
from kubesim.store import name_of, namespace_of, not_found

_ACCOUNT: Final = re.compile(r"system:serviceaccount:([^:]+):([^:]+)")
_NODE: Final = "impersonate-extra-authentication.kubernetes.io%2fnode-name"


def user_of(headers: Mapping[str, str], tokens: Mapping[str, User | None]) -> User | None:
    """Return in whose name a request is made; None may do everything.

    ``tokens``: bearer token -> the account that it is of, None for the administrator.
    Raises ApiError: 401 without a known token; 403 where an account impersonates another, or
    anybody is impersonated who is no service account.
    """
    scheme, _, token = headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or token not in tokens:
        raise ApiError(401, "Unauthorized", "Unauthorized")
    user, impersonated = tokens[token], headers.get("impersonate-user")
    if impersonated is None:
        return user
    account = _ACCOUNT.fullmatch(impersonated)
    if user is not None or account is None:
        requester = user or "system:admin"
        text = (
            f'users "{impersonated}" is forbidden: User "{requester}" cannot impersonate resource'
            ' "users" in API group "" at the cluster scope'
        )
        raise ApiError(403, "Forbidden", text)
    return User(account[1], account[2], headers.get(_NODE, ""))


_WATCH_SECONDS: Final = 300
_MAX_UNFINISHED_LISTS: Final = 50
_ACCEPTED_TYPES: Final = ("application/json", "application/*", "*/*")
_LOG: Final = logging.getLogger(__name__)


class Application:
    """Serves one backend. ``tokens``: bearer token -> whose it is; None may do everything.

    Attributes:
        body_seconds: until a body must be there; kube-apiserver's ``--request-timeout``.
    """

    body_seconds = 60.0

    def __init__(self, backend: Backend, tokens: Mapping[str, User | None]) -> None:
        self.backend = backend
        self._tokens = tokens
        self._wakeups: Wakeups | None = None
        self._remaining_lists: OrderedDict[str, tuple[int, list[Obj]]] = OrderedDict()

    def before(self, method: str, call: Call | None) -> None:
        """Do something before a request is carried out; ``call`` is None for one of discovery.

        Raises ApiError: it is refused.
        """

    def refused(self, method: str, path: str, error: ApiError) -> None:
        """Do something after a request was refused."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        try:
            response = await self._answer_request(request)
        except ApiError as error:
            self.refused(request.method, request.url.path, error)
            response = JSONResponse(bodies.build_status(error), error.code)
        except ClientDisconnect:
            return
        except Exception:  # noqa: BLE001 -- a client is answered, whatever broke
            _LOG.exception("%s %s", request.method, request.url.path)
            broken = ApiError(500, "InternalError", "an error on the server: see its log")
            response = JSONResponse(bodies.build_status(broken), broken.code)
        await response(scope, receive, send)

    async def _answer_request(self, request: Request) -> Response:
        user = user_of(request.headers, self._tokens)
        try:
            async with asyncio.timeout(self.body_seconds):
                data = await _read_body(request)
        except TimeoutError:
            text = "Timeout: request did not complete within the allotted timeout"
            raise ApiError(504, "Timeout", text) from None
        # In another thread, because clients are answered meanwhile; in one, because to change
        # threads costs as much as most requests.
        loop = asyncio.get_running_loop()
        return await run_in_threadpool(self._answer_body, request, user, data, loop)

    def _answer_body(
        self, request: Request, user: User | None, data: bytes, loop: asyncio.AbstractEventLoop
    ) -> Response:
        method, path = request.method, request.url.path
        query = dict(request.query_params)
        if not any(kind in request.headers.get("accept", "*/*") for kind in _ACCEPTED_TYPES):
            raise ApiError(406, "NotAcceptable", "only application/json can be answered")
        discovered = None
        if method == "GET":
            discovered = answer_discovery(path, self.backend.kubernetes, self.backend.gates)
        call = None if discovered else self._read_call(method, path, query, user)
        self.before(method, call)
        if call is None:
            return JSONResponse(discovered)
        if call.is_watch:
            return self._watch(call, loop)
        content_type = request.headers.get("content-type", "")
        result = self._carry_out(call, content_type, bodies.decode_body(method, content_type, data))
        if method == "GET" and "as=Table" in request.headers.get("accept", ""):
            rows = [result] if call.name else result["items"]
            meta = {} if call.name else result["metadata"]
            result = self.backend.api.build_table(call.kind.name, rows, meta) or result
        return JSONResponse(result, 201 if method == "POST" else 200)

    def _watch(self, call: Call, loop: asyncio.AbstractEventLoop) -> Response:
        seconds = min(call.read_number("timeoutSeconds", _WATCH_SECONDS), _WATCH_SECONDS)
        self._authorize(call)
        # What cannot be understood is refused before the stream begins.
        call.build_selection()
        call.read_number("resourceVersion")
        with self.backend.lock:
            if self._wakeups is None:
                self._wakeups = Wakeups(self.backend.history, loop)
        return StreamingResponse(
            stream_watch(self.backend, self._wakeups, call, seconds), media_type="application/json"
        )

    def _read_call(
        self, method: str, path: str, query: Mapping[str, str], user: User | None
    ) -> Call:
        try:
            return read_call(method, path, query, self.backend.gates, user)
        except ApiError:
            # Who may not ask is not told that there is nothing: rights are looked at first.
            if user is not None:
                self.backend.handler.authorizer.check(user, wanted_of(method, path, query))
            raise

    def _carry_out(self, call: Call, content_type: str, body: Any) -> Obj:
        if call.method == "GET":
            with self.backend.lock:
                self._authorize(call)
                return self._get(call) if call.name else self._list(call)
        with self.backend.changing():
            return self._change(call, content_type, body)

    def _authorize(self, call: Call) -> None:
        if call.user is not None:
            self.backend.handler.authorizer.check(call.user, call.attributes)

    def _get(self, call: Call) -> Obj:
        obj = self.backend.api.get(call.ref, call.namespace)
        if obj is None:
            raise not_found(call.kind, call.name)
        if call.sub not in ("", "status"):
            raise ApiError(404, "NotFound", "the server could not find the requested resource")
        return obj

    def _change(self, call: Call, content_type: str, body: Any) -> Obj:
        handler, dry_run = self.backend.handler, "dryRun" in call.query
        if isinstance(body, dict) and call.method != "DELETE" and call.sub in ("", "status"):
            body = bodies.without_unknown_fields(call, body)
        changed: Obj | None
        match call.method:
            case "POST" if not call.name:
                new = bodies.check_object(call, body)
                with self.backend.store.dry_run() if dry_run else nullcontext():
                    return handler.create(new, call.namespace, call.user)
            case "POST" if call.sub:
                changed = handler.handle(self._build_request(call, "create", body), call.namespace)
            case "PUT" if call.name:
                new = bodies.check_object(call, body)
                changed = handler.handle(self._build_request(call, "update", new), call.namespace)
            case "PATCH" if call.name:
                request = self._build_patch_request(call, content_type, body)
                changed = handler.handle(request, call.namespace)
            case "DELETE" if call.name:
                self._get(call)
                changed = handler.handle(self._build_request(call, "delete", body), call.namespace)
            case "DELETE":
                self._authorize(call)
                for selected in self.backend.select(call):
                    ref = Ref(
                        call.api_version, call.kind.name, name_of(selected), namespace_of(selected)
                    )
                    handler.handle(ApiRequest("delete", ref, body, dry_run=dry_run), call.namespace)
                changed = None
            case _:
                text = "the server does not allow this method on the requested resource"
                raise ApiError(405, "MethodNotAllowed", text)
        return changed or {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Success",
        }

    def _build_request(
        self, call: Call, verb: Any, body: Any, manager: FieldManager | None = None
    ) -> ApiRequest:
        return ApiRequest(
            verb,
            call.ref,
            body,
            call.sub,
            dry_run="dryRun" in call.query,
            user=call.user,
            manager=manager,
        )

    def _build_patch_request(self, call: Call, content_type: str, body: Any) -> ApiRequest:
        """Return the request that a patch is; a strategic one as a merge patch of what there is."""
        manager = None
        if content_type.startswith(bodies.APPLY):
            if not call.query.get("fieldManager"):
                raise ApiError(400, "BadRequest", "fieldManager is required for apply patch")
            manager = FieldManager(call.query["fieldManager"], call.has_flag("force"))
            body = bodies.check_object(call, body)
            body["metadata"] = {"name": call.name, **body["metadata"]}
        elif content_type.startswith(bodies.STRATEGIC):
            body = patches.as_merge_patch(self._get(call), body)
        return self._build_request(call, "patch", body, manager)

    def _list(self, call: Call) -> Obj:
        """Return a list, or the page of it that ``limit`` and ``continue`` ask for.

        What is left of a list is kept as it is for later pages, until too many others were begun.
        """
        token, limit = call.query.get("continue", ""), call.read_number("limit")
        if not token:
            revision, remaining = self.backend.store.revision, self.backend.select(call)
        elif token in self._remaining_lists:
            revision, remaining = self._remaining_lists[token]
        else:
            text = "The provided continue parameter is too old to display a consistent list result."
            raise ApiError(410, "Expired", text)
        meta: Obj = {"resourceVersion": str(revision)}
        page = remaining[:limit] if limit else remaining
        if len(page) < len(remaining):
            meta |= {"continue": secrets.token_hex(8), "remainingItemCount": len(remaining) - limit}
            self._remaining_lists[meta["continue"]] = revision, remaining[limit:]
            if len(self._remaining_lists) > _MAX_UNFINISHED_LISTS:
                self._remaining_lists.popitem(last=False)
        return {
            "kind": f"{call.kind.name}List",
            "apiVersion": call.api_version,
            "metadata": meta,
            "items": [conversion.as_version(obj, call.api_version) for obj in page],
        }


async def _read_body(request: Request) -> bytes:
    data = bytearray()
    async for chunk in request.stream():
        data += chunk
        if len(data) > bodies.MAX_BODY:
            text = f"Request entity too large: limit is {bodies.MAX_BODY}"
            raise ApiError(413, "RequestEntityTooLarge", text)
    return bytes(data)
