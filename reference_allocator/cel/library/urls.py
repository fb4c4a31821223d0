"""URLs as Go's ``net/url`` reads them (``k8s.io/apiserver/pkg/cel/library/urls.go``)."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final
from urllib.parse import quote, unquote_to_bytes

from reference_allocator.api.quoting import go_quote
from reference_allocator.cel.errors import CelRuntimeError
from reference_allocator.cel.library.network import parse_address

_UNRESERVED: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.~")
_PATH_VALID: Final = _UNRESERVED | frozenset("!$&'()*+,;=:@[]/")
_HOST_PLAIN: Final = _UNRESERVED | frozenset("!$&'()*+,;=:[]<>\"")
_USER_INFO: Final = _UNRESERVED | frozenset("!$&'()*+,;=:@%")


class _UrlError(ValueError):
    """Why a text is not a URL, in Go's words."""


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


def _unescape(text: str, *, plus: bool = False) -> bytes:
    """Percent-decoding; raises _UrlError for a bad escape."""
    bad = re.search("%(?![0-9a-fA-F]{2})", text)
    if bad is not None:
        shown = text[bad.start() :].encode()[:3].decode(errors="surrogateescape")
        raise _UrlError(f"invalid URL escape {go_quote(shown)}")
    return unquote_to_bytes(text.replace("+", " ") if plus else text)


def _escaped_path(raw: str) -> str:
    """``URL.EscapedPath``: the text itself if it is a valid encoding, else re-encoded."""
    decoded = _unescape(raw)
    if all(char in _PATH_VALID or char == "%" for char in raw):
        return raw
    return "*" if decoded == b"*" else quote(decoded, safe="$&+,/:;=@")


def _scheme(text: str) -> tuple[str, str]:
    """The scheme in lower case, which may be empty, and what follows its colon."""
    if text.startswith(":"):
        raise _UrlError("missing protocol scheme")
    match = re.match("([a-zA-Z][a-zA-Z0-9+.-]*):", text)
    return ("", text) if match is None else (match[1].lower(), text[match.end() :])


def _host(scheme: str, text: str) -> str:
    """The host with its port, decoded: ``parseHost`` of net/url in Go 1.26."""
    opening = text.rfind("[")
    if opening > 0:
        raise _UrlError("invalid IP-literal")
    if opening == 0:
        return _ip_literal(text)
    # Only these two schemes are strict about a second colon (go.dev/issue/78077).
    colon = text.find(":") if scheme in ("http", "https") else text.rfind(":")
    if colon >= 0:
        _check_port(text[colon:])
    return _unescape_host(text)


def _ip_literal(text: str) -> str:
    """``[fe80::1%25en0]:80``, as RFC 3986 and RFC 6874 have it."""
    closing = text.rfind("]")
    if closing < 0:
        raise _UrlError("missing ']' in host")
    port = text[closing + 1 :]
    _check_port(port)
    name, mark, zone = text[1:closing].partition("%25")
    # Bytes that are not UTF-8 make the address invalid, and are shown one by one.
    host = _unescape_host(name, errors="surrogateescape")
    address = host + _unescape_host(mark + zone, zone=True)
    try:
        parsed = parse_address(address)
    except ValueError as error:
        raise _UrlError(f"invalid host: {error}") from None
    if parsed.version == 4:
        raise _UrlError("invalid IP-literal")
    return f"[{address}]{port}"


def _check_port(port: str) -> None:
    if port and not re.fullmatch(r":[0-9]*", port):
        raise _UrlError(f"invalid port {go_quote(port)} after host")


def _unescape_host(text: str, *, zone: bool = False, errors: str = "replace") -> str:
    """In a host only non-ASCII bytes and ``%`` may be escaped, in a zone what a host may have."""
    raw, position = text.encode(), 0
    while position < len(raw):
        char = chr(raw[position])
        if char != "%":
            if char.isascii() and char not in _HOST_PLAIN:
                raise _UrlError(f"invalid character {go_quote(char)} in host name")
            position += 1
            continue
        escape = raw[position : position + 3].decode(errors="surrogateescape")
        if not re.fullmatch("%[0-9a-fA-F]{2}", escape) or not _escaped_in_host(escape, zone):
            raise _UrlError(f"invalid URL escape {go_quote(escape)}")
        position += 3
    return _unescape(text).decode(errors=errors)


def _escaped_in_host(escape: str, zone: bool) -> bool:
    value = chr(int(escape[1:], 16))
    if escape == "%25":
        return True
    return value == " " or value in _HOST_PLAIN if zone else not value.isascii()


def _authority(scheme: str, text: str) -> str:
    user, at, name = text.rpartition("@")
    host = _host(scheme, name)  # told before what is wrong with the user, as in Go
    if at:
        if not all(char in _USER_INFO for char in user):
            raise _UrlError("net/url: invalid userinfo")
        for part in user.split(":", 1):
            _unescape(part)
    return host


def _parse(text: str, *, via_request: bool) -> URL:
    if any(ord(char) < 0x20 or ord(char) == 0x7F for char in text):
        raise _UrlError("net/url: invalid control character in URL")
    if not text and via_request:
        raise _UrlError("empty url")
    if text == "*":
        return URL("", "", "*", "", text)
    scheme, rest = _scheme(text)
    path, _, query = rest.partition("?")
    if not path.startswith("/"):
        if scheme:
            return URL(scheme, "", "", query, text)  # opaque
        if via_request:
            raise _UrlError("invalid URI for request")
        if ":" in path.split("/", 1)[0]:
            raise _UrlError("first path segment in URL cannot contain colon")
    host = ""
    if (scheme or (not via_request and not path.startswith("///"))) and path.startswith("//"):
        authority, slash, path = path[2:].partition("/")
        path = slash + path
        host = _authority(scheme, authority)
    return URL(scheme, host, _escaped_path(path), query, text)


def parse_request_uri(text: str) -> None:
    """``url.ParseRequestURI``; raises ValueError with Go's message."""
    try:
        _parse(text, via_request=True)
    except _UrlError as error:
        raise ValueError(f"parse {go_quote(text)}: {error}") from None


def _parse_url(text: str) -> URL:
    prefix = "URL parse error during conversion from string: "
    try:
        parse_request_uri(text)
    except ValueError as error:
        raise CelRuntimeError(prefix + str(error)) from None
    without_fragment, _, fragment = text.partition("#")
    parsed = without_fragment
    try:
        url = _parse(without_fragment, via_request=False)
        parsed = text
        _unescape(fragment)
    except _UrlError as error:
        raise CelRuntimeError(f"{prefix}parse {go_quote(parsed)}: {error}") from None
    url.text = text
    return url


def _is_url(text: str) -> bool:
    try:
        parse_request_uri(text)
    except ValueError:
        return False
    return True


def _hostname(url: URL) -> str:
    if url.host.startswith("["):
        return url.host[1 : url.host.rfind("]")]
    return url.host.rpartition(":")[0] if ":" in url.host else url.host


def _port(url: URL) -> str:
    rest = url.host[url.host.rfind("]") + 1 :] if url.host.startswith("[") else url.host
    return rest.rpartition(":")[2] if ":" in rest else ""


def _query(url: URL) -> dict[str, list[str]]:
    """``URL.Query``: ill-formed pairs are dropped."""
    result: dict[str, list[str]] = {}
    for pair in url.query.split("&"):
        if not pair or ";" in pair:
            continue
        key, _, value = pair.partition("=")
        try:
            decoded = [_unescape(item, plus=True).decode(errors="replace") for item in (key, value)]
        except _UrlError:
            continue
        result.setdefault(decoded[0], []).append(decoded[1])
    return result


OVERLOADS: Final[dict[str, Callable[..., Any]]] = {
    "string_to_url": _parse_url,
    "is_url_string": _is_url,
    "url_get_scheme": lambda url: url.scheme,
    "url_get_host": lambda url: url.host,
    "url_get_hostname": _hostname,
    "url_get_port": _port,
    "url_get_escaped_path": lambda url: url.path,
    "url_get_query": _query,
}
