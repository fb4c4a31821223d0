"""Objects of the Kubernetes API in text that people bring: read one by one, in bounded memory.

What `kubectl get -o yaml` prints of a cluster is one document of hundreds of megabytes, so that
items of a list are built one after the other from the parser's events, never the whole. Text is not
trusted: safe tags only, no duplicate keys, and what one object comes to is counted while it is
built (`kube.base.yamlvalues`). Messages quote no values: they may be of a Secret.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any, BinaryIO, Final, NamedTuple, cast

import yaml

from kube.base import strictjson
from kube.base.errors import UsageError
from kube.base.jsonstream import JsonStream, JsonTextError
from kube.base.yamlvalues import RefusedValueError, ValueReader
from kube.values import Obj

MAX_YAML: Final = 512 << 20
"""Bytes of a text that are read as YAML, unpacked; more takes many minutes."""

_CHUNK: Final = 1 << 16
_GZIP: Final = b"\x1f\x8b"
_ARCHIVES: Final = (
    ("zip", b"PK\x03\x04", 0),
    ("xz", b"\xfd7zXZ\0", 0),
    ("bzip2", b"BZh", 0),
    ("zstd", b"\x28\xb5\x2f\xfd", 0),
    ("tar", b"ustar", 257),
)
"""What is not unpacked here: its program, by which bytes it is known, and where these are."""

_JSON: Final = re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:\{\s*[\"}]|\[|\{\s*\Z)")
_LOG_OF_DUMP: Final = re.compile(
    r"==== START logs .*?^==== END logs [^\n]*(?:\n|\Z)", re.DOTALL | re.MULTILINE
)
"""What `kubectl cluster-info dump` prints between its lists."""

_BETWEEN: Final = re.compile(r"(?:\s|^---[^\n]*\n)*", re.MULTILINE)
_GIVE: Final = "give what `kubectl get ... -o yaml` prints, and nothing else"


_NO_OBJECT: Final = "$: must be an object"
_KINDLESS: Final = (
    "is a list without kind, as one is that is cut off; take it from its source again"
)


class _KindlessError(Exception):
    """A list of objects does not say which."""


class Manifest(NamedTuple):
    """An object as it was written, and the line where it begins.

    Objects may share parts, so none is changed in place.
    """

    obj: Obj
    line: int


def read_manifests(
    stream: BinaryIO, name: str, report_progress: Callable[[int], object] = lambda _size: None
) -> Iterator[Manifest]:
    """Yield the objects of a text in YAML or JSON, packed or not, those of lists one by one.

    Args:
        stream: the text's bytes.
        name: of the text, for messages.
        report_progress: gets the number of bytes that were unpacked until now, now and then.

    Raises UsageError: it cannot be read on; the message begins with ``name:line``.
    """
    try:
        source = _Unpacked(stream, report_progress)
        for archive, magic, place in _ARCHIVES:
            if source.peek()[place:].startswith(magic):
                raise UsageError(
                    f"{name}: is packed by {archive}; unpack it, and give what was in it"
                )
        if _JSON.match(source.peek()):
            yield from _read_json(source, name)
        else:
            yield from _Events(source, name).read_documents()
    except OSError as error:
        raise UsageError(f"{name}: cannot be read: {error.strerror}; check the path") from None
    except zlib.error as error:
        raise UsageError(
            f"{name}: cannot be unpacked: {error}; take it from its source again"
        ) from None


class _Unpacked:
    """A stream's bytes, unpacked, and counted."""

    def __init__(self, stream: BinaryIO, report_progress: Callable[[int], object]) -> None:
        self._stream = stream
        self._report_progress = report_progress
        self._size = 0
        self._ahead = stream.read(_CHUNK)
        self._unpacking = zlib.decompressobj(wbits=31) if self._ahead.startswith(_GZIP) else None
        self._waiting = b""
        if self._unpacking is not None:
            self._ahead, self._waiting = b"", self._ahead
            self._ahead = self._unpack(_CHUNK)

    def peek(self) -> bytes:
        """Return the first bytes."""
        return self._ahead

    def read(self, most: int = -1) -> bytes:
        """Return some bytes, at most so many; none at the end. Raises OSError, zlib.error."""
        most = _CHUNK if most < 0 else most
        if self._ahead:
            data, self._ahead = self._ahead[:most], self._ahead[most:]
        elif self._unpacking is not None:
            data = self._unpack(most)
        else:
            data = self._stream.read(most)
        self._size += len(data)
        self._report_progress(self._size)
        return data

    def _unpack(self, most: int) -> bytes:
        unpacking = self._unpacking
        assert unpacking is not None
        while not unpacking.eof:
            packed = self._waiting or self._stream.read(_CHUNK)
            if not packed:
                raise zlib.error("it is cut off")
            data = unpacking.decompress(packed, most)
            self._waiting = unpacking.unconsumed_tail
            if data:
                return data
        return b""


def _read_json(source: _Unpacked, name: str) -> Iterator[Manifest]:
    """Yield the objects of JSON documents that follow one another."""
    stream = JsonStream(source.read)
    with strictjson.explain_errors(name):
        try:
            while True:
                stream.skip(_skip_between)
                line = stream.line
                match stream.peek():
                    case "":
                        return
                    case "{":
                        yield from _join_fields(line, _read_fields(stream))
                    case "[":  # `jq --slurp` makes an array of what it is given
                        is_empty = True
                        for _ in stream.read_elements():
                            is_empty = False
                            yield from _read_element(stream, name)
                        if is_empty:
                            raise UsageError(f"{name}:{line}: {_NO_OBJECT}")
                    case _:
                        stream.read_value()
                        raise UsageError(f"{name}:{line}: {_NO_OBJECT}")
        except _KindlessError:
            raise UsageError(f"{name}:{line}: {_KINDLESS}") from None
        except JsonTextError as error:
            raise UsageError(f"{name}:{error.line}: is not JSON: {error}") from None


def _read_element(stream: JsonStream, name: str) -> Iterator[Manifest]:
    """Yield the objects of the element of a list that comes next."""
    stream.peek()
    line, element = stream.line, stream.read_value()
    if not isinstance(element, dict):
        raise UsageError(f"{name}:{line}: {_NO_OBJECT}")
    yield from (Manifest(obj, line) for obj in _list_objects(element))


def _read_fields(stream: JsonStream) -> Iterator[tuple[str, Any]]:
    """Yield the fields of the object that comes next, `items` as they are read."""
    for key in stream.read_members():
        if stream.peek() != "[":
            yield key, stream.read_value()
        elif key == "items":
            yield key, _read_items(stream)
        else:
            yield key, [stream.read_value() for _ in stream.read_elements()]


def _read_items(stream: JsonStream) -> Iterator[Manifest]:
    for _ in stream.read_elements():
        stream.peek()
        line, item = stream.line, stream.read_value()
        if isinstance(item, dict):
            yield Manifest(item, line)


def _skip_between(text: str, position: int) -> int:
    while True:
        after = cast("re.Match[str]", _BETWEEN.match(text, position)).end()
        log = _LOG_OF_DUMP.match(text, after)
        if log is None:
            return after
        position = log.end()


def _join_fields(line: int, fields: Iterable[tuple[str, Any]]) -> Iterator[Manifest]:
    """Yield the items of a list as they are read, or another document as a whole.

    ``fields``: key and value; of `items` an iterator. Raises _KindlessError: a list has no kind.
    """
    document: Obj = {}
    kindless: list[Manifest] | None = None
    for key, value in fields:
        document[key] = value
        if isinstance(value, Iterator):
            document[key], kindless = None, []
            for manifest in value:
                if manifest.obj.get("kind"):
                    for obj in _list_objects(manifest.obj):
                        yield Manifest(obj, manifest.line)
                else:
                    kindless.append(manifest)
    if kindless is None:
        yield Manifest(document, line)
        return
    kind = document.get("kind")
    if not kind or not isinstance(kind, str):
        raise _KindlessError
    if not kind.endswith("List"):  # an object of another kind, with items of its own
        yield Manifest(document, line)
        return
    for manifest in kindless:
        yield Manifest(_complete(manifest.obj, kind, document.get("apiVersion")), manifest.line)


def _list_objects(document: Obj) -> Iterator[Obj]:
    """Yield the items of a list, with the kind that they have by it; another object itself."""
    items, kind = document.get("items"), document.get("kind")
    if not (isinstance(items, list) and isinstance(kind, str) and kind.endswith("List")):
        yield document
        return
    for item in items:
        if isinstance(item, dict):
            yield from _list_objects(_complete(item, kind, document.get("apiVersion")))


def _complete(item: Obj, list_kind: str, api_version: Any) -> Obj:
    """Return an item of a list of one kind as an object of its own."""
    kind = list_kind.removesuffix("List")
    return (
        item if item.get("kind") or not kind else {"apiVersion": api_version, "kind": kind, **item}
    )


class _Events:
    """Builds objects from the events of a YAML parser."""

    def __init__(self, source: _Unpacked, name: str) -> None:
        self._name = name
        loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        self._source = source
        self._size = 0
        self._next_event: Callable[[], Any] = loader(self).get_event
        self._reader = ValueReader(self._next_event, strictjson.make_sharing_hook())

    def read(self, most: int = -1) -> bytes:
        """Return bytes for the parser. Raises OSError, zlib.error, UsageError: it is too long."""
        data = self._source.read(most)
        self._size += len(data)
        if self._size > MAX_YAML:
            raise UsageError(
                f"{self._name}: is larger than {MAX_YAML >> 20} MiB; give only resourceslices,"
                " deviceclasses, resourceclaims, resourceclaimtemplates, nodes and pods"
            )
        return data

    def read_documents(self) -> Iterator[Manifest]:
        try:
            self._next_event()  # the stream's start
            while not isinstance(self._next_event(), yaml.StreamEndEvent):
                self._reader.start_document()
                yield from self._read_document(self._next_event())
                self._next_event()
        except RefusedValueError as error:
            raise self._error(error.problem_mark, str(error.problem)) from None
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            raise self._error(mark, f"is not YAML: {error.problem or error.context}") from None
        except yaml.YAMLError as error:
            raise UsageError(f"{self._name}: is not YAML: {str(error).splitlines()[0]}") from None
        except UnicodeDecodeError:
            raise UsageError(f"{self._name}: is not UTF-8 text") from None

    def _read_document(self, event: Any) -> Iterator[Manifest]:
        start = event.start_mark
        if not isinstance(event, yaml.MappingStartEvent):
            self._reader.start_object()
            if self._reader.read(event) is not None:
                raise self._error(start, f"is not a Kubernetes object; {_GIVE}")
            return
        try:
            yield from _join_fields(start.line + 1, self._read_fields())
        except _KindlessError:
            raise self._error(start, _KINDLESS) from None

    def _read_fields(self) -> Iterator[tuple[str, Any]]:
        known: set[str] = set()
        while not isinstance(event := self._next_event(), yaml.MappingEndEvent):
            self._reader.start_object()
            key = self._reader.read_key(event, known)
            known.add(key)
            event = self._next_event()
            is_list = key == "items" and isinstance(event, yaml.SequenceStartEvent)
            yield key, self._read_items() if is_list else self._reader.read(event, 1)

    def _read_items(self) -> Iterator[Manifest]:
        while not isinstance(event := self._next_event(), yaml.SequenceEndEvent):
            self._reader.start_object()
            line = event.start_mark.line + 1
            item = self._reader.read(event, 2)
            if isinstance(item, dict):
                yield Manifest(item, line)

    def _error(self, mark: Any, problem: str) -> UsageError:
        return UsageError(f"{self._name}:{mark.line + 1 if mark else 1}: {problem}")
