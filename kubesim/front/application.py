"""Requests over HTTP, carried out by the API server: an ASGI application.

Requests are those of kube-apiserver (staging/src/k8s.io/apiserver/pkg/endpoints/handlers), and are
looked at in the same order: a request with two mistakes is told of the same one. Answers are JSON,
which every client takes, or YAML.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from typing import Any, Final

from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from kube.errors import ApiError
from kube.values import NODES_GROUP, FieldManager, Obj, Ref, User
from kube.values import Request as ApiRequest
from kubesim.apiserver import patches
from kubesim.front import answers
from kubesim.front import body as bodies
from kubesim.front.answers import Form, Warnings
from kubesim.front.backend import Backend
from kubesim.front.body import Sent
from kubesim.front.call import NEWEST_PLACE, Call, read_call, wanted_of
from kubesim.front.discovery import answer_discovery
from kubesim.front.options import (
    Parameters,
    WriteOptions,
    check_timeout,
    read_delete_options,
    read_write_options,
)
from kubesim.front.revisions import check_token, make_token, parse_revision
from kubesim.front.watching import Wakeups, stream_watch
from kubesim.store import name_of, namespace_of, new_refusal, not_found

_ACCOUNT: Final = re.compile(r"system:serviceaccount:([^:]+):([^:]+)")
_KUBELET: Final = re.compile(r"system:node:(.+)")
_NODE: Final = "impersonate-extra-authentication.kubernetes.io%2fnode-name"


def user_of(headers: Mapping[str, str], tokens: Mapping[str, User | None]) -> User | None:
    """Return in whose name a request is made; None may do everything.

    ``tokens``: bearer token -> the account that it is of, None for the administrator.
    Raises ApiError: 401 without a known token; 403 where an account impersonates another, or
    anybody is impersonated who is neither a service account nor a kubelet.
    """
    scheme, _, token = headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or token not in tokens:
        raise ApiError(401, "Unauthorized", "Unauthorized")
    user, impersonated = tokens[token], headers.get("impersonate-user")
    if impersonated is None:
        return user
    account = _ACCOUNT.fullmatch(impersonated)
    groups = headers.get("impersonate-group", "").split(",")
    kubelet = _KUBELET.fullmatch(impersonated) if NODES_GROUP in groups else None
    if user is None and kubelet is not None:
        return User.kubelet_of(kubelet[1])
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
_OPTIONS_FIRST_UNTIL: Final = 35
"""The last minor that reads the options of a list before it looks what a client accepts."""
_UNREADABLE_UNTIL: Final = 34
"""The last minor that answers 500 to options of a deletion that it cannot decode."""
_WARNED_SINCE: Final = 38
"""The minor that warns of DeviceTaintRules about all devices."""
_TOO_OLD: Final = "The provided continue parameter is too old to display a consistent list result."
_LOG: Final = logging.getLogger(__name__)


class Application:
    """Serves one backend. ``tokens``: bearer token -> whose it is; None may do everything.

    To behave otherwise, override `before`, `begin_watch`, `carry_out` or `refused`.

    Attributes:
        body_seconds: until a body must be there; kube-apiserver's ``--request-timeout``.
    """

    body_seconds = 60.0

    def __init__(self, backend: Backend, tokens: Mapping[str, User | None]) -> None:
        self.backend = backend
        self._tokens = tokens
        self._wakeups: Wakeups | None = None
        self._remaining_lists: OrderedDict[tuple[str, ...], tuple[int, list[Obj]]] = OrderedDict()

    def before(self, method: str, call: Call | None) -> None:
        """Do something before a request is carried out; ``call`` is None for one of discovery.

        Raises ApiError: it is refused.
        """

    def refused(self, method: str, path: str, error: ApiError) -> None:
        """Do something after a request was refused."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request, warnings = Request(scope, receive), Warnings()
        response: Response
        try:
            response = await self._answer_request(request, warnings)
        except ApiError as error:
            if isinstance(error, answers.NoRouteError):
                warnings.clear()
            self.refused(request.method, request.url.path, error)
            response = answers.refuse(request.url.path, error, self.backend.kinds)
        except ClientDisconnect:
            return
        except Exception:  # noqa: BLE001 -- a client is answered, whatever broke
            _LOG.exception("%s %s", request.method, request.url.path)
            broken = ApiError(500, "InternalError", "an error on the server: see its log")
            response = JSONResponse(bodies.build_status(broken), broken.code)
        for text in warnings.list_headers():
            response.headers.append("Warning", text)
        await response(scope, receive, send)

    async def _answer_request(self, request: Request, warnings: Warnings) -> Response:
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
        return await run_in_threadpool(self._answer_body, request, user, data, warnings, loop)

    def _answer_body(
        self,
        request: Request,
        user: User | None,
        data: bytes,
        warnings: Warnings,
        loop: asyncio.AbstractEventLoop,
    ) -> Response:
        method, path = request.method, request.url.path
        query: dict[str, list[str]] = {}
        for name, value in request.query_params.multi_items():
            query.setdefault(name, []).append(value)
        accept = request.headers.get("accept", "*/*")
        check_timeout(query)
        if method == "GET" and (discovered := self._discover(path, accept)) is not None:
            self.before(method, None)
            return discovered
        call = self._read_call(method, path, query, user)
        self.before(method, call)
        if text := call.explain_deprecation():
            warnings.add(text)
        if call.is_watch:
            self._authorize(call)
            return self.begin_watch(call, answers.negotiate(accept, watchable=True), loop)
        content_type = request.headers.get("content-type", "")
        agent = request.headers.get("user-agent", "").partition("/")[0]
        return self.carry_out(call, accept, Sent(content_type, data, agent), warnings)

    def _discover(self, path: str, accept: str) -> Response | None:
        discovered = answer_discovery(path, self.backend.kubernetes, self.backend.kinds, accept)
        if discovered is None:
            return None
        return JSONResponse(discovered.body, media_type=discovered.media_type)

    def _read_call(self, method: str, path: str, query: Parameters, user: User | None) -> Call:
        try:
            backend = self.backend
            return read_call(method, path, query, backend.kinds, backend.kubernetes_minor, user)
        except ApiError:
            # Who may not ask is not told that there is nothing: rights are looked at first.
            if user is not None:
                self.backend.handler.authorizer.check(user, wanted_of(method, path, query))
            raise

    def begin_watch(self, call: Call, form: Form, loop: asyncio.AbstractEventLoop) -> Response:
        """Return the stream of a watch; a subclass may answer otherwise. Raises ApiError."""
        # What cannot be understood is refused before the stream begins.
        options = call.list_options
        call.build_selection()
        parse_revision(options.revision, 500)
        seconds = _WATCH_SECONDS if options.timeout is None else options.timeout
        with self.backend.lock:
            if self._wakeups is None:
                self._wakeups = Wakeups(self.backend.history, loop)
        stream = stream_watch(self.backend, self._wakeups, call, min(seconds, _WATCH_SECONDS), form)
        return StreamingResponse(stream, media_type="application/json")

    def carry_out(self, call: Call, accept: str, sent: Sent, warnings: Warnings) -> Response:
        """Return the answer to a request that is no watch; a subclass may change it.

        Raises ApiError: it is refused.
        """
        if call.method == "PATCH":  # before all else (``PatchResource``)
            bodies.negotiate_body("PATCH", sent.content_type)
        watchable = call.method == "GET" and not call.name
        try:
            form = answers.negotiate(accept, watchable=watchable)
        except answers.NoRouteError:
            raise
        except ApiError:
            if watchable and call.minor <= _OPTIONS_FIRST_UNTIL:
                _ = call.list_options
            raise
        if call.method == "GET":
            with self.backend.lock:
                self._authorize(call)
                result, code = self._get(call) if call.name else self._list(call), 200
        else:
            with self.backend.changing():
                result, code = self._change(call, sent, warnings.add)
            if self.backend.minor >= _WARNED_SINCE and call.method != "DELETE" and not call.sub:
                bodies.warn_of_empty_selector(result, warnings.add)
        return form.respond(self.backend, call, result, code)

    def _authorize(self, call: Call) -> None:
        if call.user is not None:
            self.backend.handler.authorizer.check(call.user, call.attributes)

    def _get(self, call: Call) -> Obj:
        asked = parse_revision(call.query.get("resourceVersion", [""])[0], 500)
        if asked > (revision := self.backend.store.revision):
            raise answers.too_large_revision(asked, revision)
        obj = self.backend.store.get(call.kind.name, call.namespace, call.name)
        if obj is None:
            raise not_found(call.kind, call.name)
        return obj

    def _change(self, call: Call, sent: Sent, warn: bodies.Warn) -> tuple[Obj, int]:
        """Carry out a request that changes something; returns what is answered, and its code."""
        match call.method:
            case "POST" if not call.sub:
                return self._create(call, sent, warn), 201
            case "POST":
                bodies.negotiate_body("POST", sent.content_type)
                options = read_write_options("CreateOptions", call.query)
                body = sent.decode("POST")
                if not isinstance(body, dict):
                    raise ApiError(400, "BadRequest", f"a {call.sub} is an object")
                handler = self.backend.handler
                request = self._build_request(call, "create", body, options)
                handler.handle(request, call.namespace)
                return {**answers.SUCCESS, "code": 201}, 201
            case "PUT":
                options = read_write_options("UpdateOptions", call.query)
                new = bodies.decode_sent_object(call, sent, "PUT", options, warn)
                request = self._build_request(call, "update", new, options)
                return self._write(call, request, sent, options), 200
            case "PATCH":
                return self._patch(call, sent, warn)
        return self._delete(call, sent)

    def _create(self, call: Call, sent: Sent, warn: bodies.Warn) -> Obj:
        bodies.negotiate_body("POST", sent.content_type)
        options = read_write_options("CreateOptions", call.query)
        new = bodies.decode_sent_object(call, sent, "POST", options, warn)
        backend, manager = self.backend, options.manager or sent.agent
        with backend.store.dry_run() if options.dry_run else nullcontext():
            created = backend.handler.create(new, call.namespace, call.user, manager)
        bodies.warn_of_object(call, created, warn)
        return created

    def _patch(self, call: Call, sent: Sent, warn: bodies.Warn) -> tuple[Obj, int]:
        media_type = bodies.negotiate_body("PATCH", sent.content_type)
        applies = media_type == bodies.APPLY
        options = read_write_options("PatchOptions", call.query, applies=applies)
        patch = bodies.decode_patch(media_type, sent.data, options, warn)
        if applies:
            live = self.backend.api.get(call.ref, call.namespace)
            body = bodies.check_applied(call, patch)
            manager = FieldManager(options.manager, options.force)
            if live is None:
                body = bodies.convert_merged(call, body, body)
                bodies.check_names(call, body)
                if uid := body["metadata"].get("uid"):
                    text = (
                        f'Operation cannot be fulfilled on {call.kind.resource} "{call.name}": '
                        f"uid mismatch: the provided object specified uid {uid}, "
                        "and no existing object was found"
                    )
                    raise new_refusal(409, "Conflict", call.kind, call.name, text)
            request = self._build_request(call, "patch", body, options, manager)

            def check(merged: Obj) -> Obj:
                merged = bodies.convert_merged(call, merged, patch)
                if "metadata" in patch and live is not None:
                    # All of it may be gone with what was applied before, but not whose it is.
                    identity = {name: live["metadata"].get(name) for name in bodies.IDENTITY}
                    merged["metadata"] = {**identity, **merged["metadata"]}
                bodies.check_names(call, merged)
                return merged

            return self._write(call, request, sent, options, check), 201 if live is None else 200
        live = self.backend.api.get(call.ref, call.namespace)
        strategic = patch if media_type == bodies.STRATEGIC else None
        if live is not None and strategic is not None:
            patch = patches.as_merge_patch(live, patch)
        request = self._build_request(call, "patch", patch, options)

        def decode(patched: Obj) -> Obj:
            return bodies.decode_patched_object(call, patched, options, warn, strategic)

        return self._write(call, request, sent, options, decode), 200

    def _write(
        self,
        call: Call,
        request: ApiRequest,
        sent: Sent,
        options: WriteOptions,
        decode: Callable[[Obj], Obj] | None = None,
    ) -> Obj:
        writer = options.manager or sent.agent
        changed = self.backend.handler.handle(request, call.namespace, decode, writer)
        assert changed is not None  # it was no deletion
        return changed

    def _delete(self, call: Call, sent: Sent) -> tuple[Obj, int]:
        handler = self.backend.handler
        if not call.name:
            self._authorize(call)
            call.build_selection()
        body = sent.decode("DELETE") if sent.data else {}
        try:
            options = read_delete_options(call.query, body)
        except ApiError as error:
            if not body or error.code == 422 or call.minor > _UNREADABLE_UNTIL:
                raise
            raise ApiError(500, "", error.message.replace(NEWEST_PLACE, call.scheme)) from None
        if call.name:
            deleted = handler.delete(call.ref, options, call.namespace, call.user)
            meta = deleted["metadata"]
            stays = meta.get("finalizers") or meta.get("deletionGracePeriodSeconds")
            return deleted, 202 if stays and options.get("orphanDependents") is False else 200
        selected = self.backend.select(call)
        for obj in selected:
            ref = Ref(call.api_version, call.kind.name, name_of(obj), namespace_of(obj))
            handler.delete(ref, options, call.namespace)
        # As they were when they were listed.
        revision = {"resourceVersion": str(self.backend.store.revision)}
        return answers.build_list(call, revision, selected), 200

    def _build_request(
        self,
        call: Call,
        verb: Any,
        body: Any,
        options: WriteOptions | None = None,
        manager: FieldManager | None = None,
    ) -> ApiRequest:
        dry_run = options is not None and options.dry_run
        return ApiRequest(
            verb, call.ref, body, call.sub, dry_run=dry_run, user=call.user, manager=manager
        )

    def _list(self, call: Call) -> Obj:
        """Return a list, or the page of it that ``limit`` and ``continue`` ask for.

        What is left of a list is kept as it is for later pages, until too many others were begun.
        """
        options = call.list_options
        limit = max(options.limit, 0)
        # Of whose list it is: the token alone does not say what was selected.
        place = call.kind.name, call.namespace, options.label_selector, options.field_selector
        token = options.token
        if not token:
            revision, remaining = self.backend.store.revision, self.backend.select(call)
            asked = parse_revision(options.revision, 400, "invalid resource version: ")
            if asked > revision:
                raise answers.too_large_revision(asked, revision)
        else:
            call.build_selection()
            check_token(token)
            if (token, *place) not in self._remaining_lists:
                raise ApiError(410, "Expired", _TOO_OLD)
            revision, remaining = self._remaining_lists[token, *place]
        meta: Obj = {"resourceVersion": str(revision)}
        page = remaining[:limit] if limit else remaining
        if len(page) < len(remaining):
            meta |= {"continue": make_token(revision, page[-1])}
            if not (options.label_selector or options.field_selector):
                meta["remainingItemCount"] = len(remaining) - limit
            self._remaining_lists[meta["continue"], *place] = revision, remaining[limit:]
            if len(self._remaining_lists) > _MAX_UNFINISHED_LISTS:
                self._remaining_lists.popitem(last=False)
        return answers.build_list(call, meta, page)


async def _read_body(request: Request) -> bytes:
    data = bytearray()
    async for chunk in request.stream():
        data += chunk
        if len(data) > bodies.MAX_BODY:
            text = f"Request entity too large: limit is {bodies.MAX_BODY}"
            raise ApiError(413, "RequestEntityTooLarge", text)
    return bytes(data)
