"""URLs as Go's ``net/url`` reads them (``k8s.io/apiserver/pkg/cel/library/urls.go``).

Which texts are URLs, and what their parts are, is exact; why a text is none is said in fewer words.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final
from urllib.parse import quote, unquote_to_bytes

from reference_allocator.api.quoting import go_quote
from reference_allocator.cel.errors import CelRuntimeError
from reference_allocator.cel.library.network import parse_address

_PLAIN: Final = r"\w.~!$&'()*+,;=:\-"
_ESCAPE: Final = "%[0-9a-fA-F]{2}"
_ESCAPED: Final = re.compile(rf"(?:[^%]|{_ESCAPE})*", re.DOTALL)
_PATH: Final = re.compile(rf"[{_PLAIN}@\[\]/%]*", re.ASCII)
_USER: Final = re.compile(rf"(?:[{_PLAIN}@]|{_ESCAPE})*", re.ASCII)
_NAME: Final = rf"[{_PLAIN}\[\]<>\"]|[^\x00-\x7f]"
# In a host only bytes beyond ASCII and percent signs may be escaped, in a zone what is printable.
_HOST: Final = re.compile(rf"(?:{_NAME}|%[89a-fA-F][0-9a-fA-F]|%25)*", re.ASCII)
_ZONE: Final = re.compile(rf"(?:{_NAME}|%[2-7][0-9a-fA-F])*", re.ASCII)
_PORT: Final = re.compile("(?::[0-9]*)?")


class _UrlError(ValueError):
    """The text is not a URL."""


@dataclass(slots=True, unsafe_hash=True)
class URL:
    """The parts of a URL; ``path`` is escaped as Go would."""

    cel_type: ClassVar[str] = "kubernetes.URL"
    scheme: str = field(compare=False)
    host: str = field(compare=False)
    path: str = field(compare=False)
    query: str = field(compare=False)
    text: str

    def __str__(self) -> str:
        return self.text


def _check(form: re.Pattern[str], text: str, what: str) -> None:
    if not form.fullmatch(text):
        raise _UrlError(f"invalid {what}")


def _parse_host(scheme: str, text: str) -> str:
    """Return the host with its port, decoded: ``parseHost`` of net/url in Go 1.26."""
    opening, closing = text.rfind("["), text.rfind("]")
    if opening > 0 or opening == 0 > closing:
        raise _UrlError("invalid IP-literal")
    if opening == 0:
        return _parse_ip_literal(text[1:closing], text[closing + 1 :])
    # Only these two schemes are strict about a second colon (go.dev/issue/78077).
    colon = text.find(":") if scheme in ("http", "https") else text.rfind(":")
    if colon >= 0:
        _check(_PORT, text[colon:], "port")
    _check(_HOST, text, "host name")
    return unquote_to_bytes(text).decode(errors="replace")


def _parse_ip_literal(inside: str, port: str) -> str:
    """Return the host of ``[fe80::1%25en0]:80``, as RFC 3986 and RFC 6874 have it."""
    _check(_PORT, port, "port")
    name, mark, zone = inside.partition("%25")
    _check(_HOST, name, "host name")
    _check(_ZONE, zone, "host name")
    address = "".join(
        unquote_to_bytes(piece).decode(errors="replace") for piece in (name, mark, zone)
    )
    try:
        version = parse_address(address).version
    except ValueError as error:
        raise _UrlError(f"invalid host: {error}") from None
    if version == 4:
        raise _UrlError("invalid IP-literal")
    return f"[{address}]{port}"


def _parse_authority(scheme: str, text: str) -> str:
    user, at, name = text.rpartition("@")
    host = _parse_host(scheme, name)
    if at:
        _check(_USER, user, "userinfo")
    return host


def _escape_path(raw: str) -> str:
    """Return ``URL.EscapedPath``: the text itself if it is a valid encoding, else re-encoded."""
    _check(_ESCAPED, raw, "URL escape")
    decoded = unquote_to_bytes(raw)
    if _PATH.fullmatch(raw):
        return raw
    return "*" if decoded == b"*" else quote(decoded, safe="$&+,/:;=@")


def _parse(text: str, *, via_request: bool) -> URL:
    if re.search("[\x00-\x1f\x7f]", text) or (via_request and not text):
        raise _UrlError("invalid URL")
    if text == "*":
        return URL("", "", "*", "", text)
    match = re.match("([a-zA-Z][a-zA-Z0-9+.-]*):", text)
    scheme, without_scheme = (
        ("", text) if match is None else (match[1].lower(), text[match.end() :])
    )
    path, _, query = without_scheme.partition("?")
    if not path.startswith("/"):
        if scheme:
            return URL(scheme, "", "", query, text)  # opaque
        if via_request or ":" in path.split("/", 1)[0]:
            raise _UrlError("invalid URI for request")
    host = ""
    if (scheme or (not via_request and not path.startswith("///"))) and path.startswith("//"):
        authority, slash, path = path[2:].partition("/")
        path = slash + path
        host = _parse_authority(scheme, authority)
    return URL(scheme, host, _escape_path(path), query, text)


def parse_request_uri(text: str) -> None:
    """Parse as ``url.ParseRequestURI`` does. Raises ValueError: its message begins as Go's."""
    try:
        _parse(text, via_request=True)
    except _UrlError as error:
        raise ValueError(f"parse {go_quote(text)}: {error}") from None


def _parse_url(text: str) -> URL:
    try:
        parse_request_uri(text)
        without_fragment, _, fragment = text.partition("#")
        url = _parse(without_fragment, via_request=False)
        _check(_ESCAPED, fragment, "URL escape")
    except ValueError as error:
        text = str(error)
        raise CelRuntimeError(f"URL parse error during conversion from string: {text}") from None
    url.text = text
    return url


def _is_url(text: str) -> bool:
    try:
        parse_request_uri(text)
    except ValueError:
        return False
    return True


def _get_hostname(url: URL) -> str:
    if url.host.startswith("["):
        return url.host[1 : url.host.rfind("]")]
    return url.host.rpartition(":")[0] if ":" in url.host else url.host


def _get_port(url: URL) -> str:
    without_literal = url.host[url.host.rfind("]") + 1 :] if url.host.startswith("[") else url.host
    return without_literal.rpartition(":")[2] if ":" in without_literal else ""


def _parse_query(url: URL) -> dict[str, list[str]]:
    """Return ``URL.Query``: ill-formed pairs are dropped."""
    result: dict[str, list[str]] = {}
    for pair in url.query.split("&"):
        if pair and ";" not in pair and _ESCAPED.fullmatch(pair):
            key_and_value = pair.replace("+", " ").partition("=")
            key, _, value = (
                unquote_to_bytes(piece).decode(errors="replace") for piece in key_and_value
            )
            result.setdefault(key, []).append(value)
    return result


OVERLOADS: Final[dict[str, Callable[..., Any]]] = {
    "string_to_url": _parse_url,
    "is_url_string": _is_url,
    "url_get_scheme": lambda url: url.scheme,
    "url_get_host": lambda url: url.host,
    "url_get_hostname": _get_hostname,
    "url_get_port": _get_port,
    "url_get_escaped_path": lambda url: url.path,
    "url_get_query": _parse_query,
}
