"""YAML as Go's YAML reader fills typed fields with it, for files that container runtimes read so.

The rules: go.yaml.in/yaml/v3 v3.0.5, resolve.go and decode.go, with known fields and unique keys;
the CDI library reads all specs so, JSON among them. What stands there in doubt is decided by the
field's type: ``010`` is a text where a text is asked for, and 8 where a number is.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeVar

import yaml
from yaml.events import AliasEvent

from kube.base.strictyaml import BoundedLoader

_STANDARD: Final = "tag:yaml.org,2002:"
_RESOLVED: Final = ("", "str", "bool", "int", "float", "null", "timestamp")
_WORDS: Final[Mapping[str, Any]] = {
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), math.inf),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf),
}
_YES: Final = frozenset({"y", "Y", "yes", "Yes", "YES", "on", "On", "ON"})
_NO: Final = frozenset({"n", "N", "no", "No", "NO", "off", "Off", "OFF"})
_INTEGER: Final = re.compile(
    r"(?P<sign>[-+]?)(?:0[xX](?P<hex>[0-9a-fA-F]+)|0[bB](?P<bin>[01]+)|0[oO]?(?P<oct>[0-7]+)"
    r"|(?P<dec>0|[1-9][0-9]*))"
)
_SIGN_WITHIN: Final = re.compile(r"0(?:b(?P<bin>[-+][01]+)|o(?P<oct>[-+][0-7]+))")
"""What Go takes for a number because it cuts the prefix off and reads the rest."""
_FLOAT: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_TIMESTAMP: Final = re.compile(
    r"[0-9]{4}-(0?[1-9]|1[0-2])-(0?[1-9]|[12][0-9]|3[01])"
    r"((?P<t>[Tt])|(?P<space> +)(?=[0-9])|$)"
    r"(?(t)[0-9]{1,2}:[0-9]{1,2}:[0-9]{1,2}([.,][0-9]+)?(Z|[-+][0-9]{2}:[0-9]{2}))"
    r"(?(space)[0-9]{1,2}:[0-9]{1,2}:[0-9]{1,2}([.,][0-9]+)?)"
)
"""Decides nothing but whether ``!!timestamp`` is right: no field is of that type."""
_BASES: Final = {"hex": 16, "bin": 2, "oct": 8, "dec": 10}
_MOST_DIGITS: Final = 80
"""More than 64 bits have in any base; what is longer is read as a floating-point number."""
_BITS_63: Final = 1 << 63

T = TypeVar("T")
Read = Callable[[yaml.Node], T | None]
"""Makes a value of a node; None: the node is null. Raises ValueError: it is of another type."""


class Alias(yaml.Node):
    """Stands for what an anchor was given to."""

    def __init__(self, anchor: str | None, target: yaml.Node | None, mark: Any) -> None:
        super().__init__("", anchor, mark, mark)
        self.target: Any = target


_ESCAPED_SLASH: Final = re.compile(r"(?<!\\)(?:\\\\)*\\/")


class _Loader(BoundedLoader):
    """Composes nodes that keep what is said in the text: tags, quotes, aliases."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        looked_at = b"\\/" in data or b"?" in data
        self._text = data.decode("utf-8", "replace") if looked_at else ""
        self._brackets = 0  # around what is composed

    def compose_scalar_node(self, anchor: Any) -> yaml.ScalarNode:
        node = super().compose_scalar_node(anchor)
        if problem := self._find_problem(node):
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark)
        return node

    def _find_problem(self, node: yaml.ScalarNode) -> str:
        """Say what of a scalar libyaml takes and Go's reader does not; empty: nothing."""
        if not self._text:
            return ""
        start, end = node.start_mark.index, node.end_mark.index
        if node.style == '"' and _ESCAPED_SLASH.search(self._text[start:end]):
            return "a slash may not be escaped"
        if not node.style and self._brackets and "?" in self._text[start:end]:
            return "a question mark ends a scalar between brackets"
        return ""

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        event = self.peek_event()
        if isinstance(event, AliasEvent):
            node = super().compose_node(parent, index)
            return Alias(event.anchor, node, event.start_mark)
        if event.anchor is not None:  # given a second time, it stands for what comes later
            self.anchors.pop(event.anchor, None)
            self._sizes.pop(event.anchor, None)
        in_brackets = bool(getattr(event, "flow_style", False))
        self._brackets += in_brackets
        node = super().compose_node(parent, index)
        self._brackets -= in_brackets
        return node

    def resolve(self, kind: Any, value: Any, implicit: Any) -> str:  # noqa: ARG002
        return ""


def read_first_document(data: bytes) -> yaml.Node | None:
    """Return the first document of a text; None: there is none. What follows is not looked at.

    Raises YAMLError: it is not YAML, or too large or deep to be read.
    """
    loader = _Loader(data)
    loader.get_event()
    if loader.check_event(yaml.StreamEndEvent):
        return None
    start = loader.peek_event()
    if start.version not in (None, (1, 1)):
        raise yaml.MarkedYAMLError(
            problem="%YAML says another version than 1.1", problem_mark=start.start_mark
        )
    return loader.compose_document()


def read_text(node: yaml.Node) -> str | None:
    """Return a text: of any scalar what is written there."""
    scalar = _scalar(node, "text")
    value = _resolved(scalar)
    if value is None:
        return None
    return value if isinstance(value, str) else str(scalar.value)


def read_int64(node: yaml.Node) -> int | None:
    """Return an integer of 64 bits; of another number its integral part."""
    return _integer(node, -_BITS_63, _BITS_63 - 1)


def read_uint32(node: yaml.Node) -> int | None:
    """Return an integer of 32 bits without sign; of another number its integral part."""
    return _integer(node, 0, (1 << 32) - 1)


def read_boolean(node: yaml.Node) -> bool | None:
    """Return a truth value, also of the words of YAML 1.1, in quotes or not."""
    scalar = _scalar(node, "true or false")
    value = _resolved(scalar)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str) and value in _YES | _NO:
        return value in _YES
    raise _wrong(scalar, "true or false")


def list_of(read: Read[T]) -> Read[tuple[T, ...]]:
    """Return what reads a list, without what is null in it."""
    return lambda node: _read_items(node, read, nulls_allowed=True)


def list_without_nulls(read: Read[T]) -> Read[tuple[T, ...]]:
    """Return what reads a list in which nothing may be null."""
    return lambda node: _read_items(node, read, nulls_allowed=False)


def _read_items(node: yaml.Node, read: Read[T], *, nulls_allowed: bool) -> tuple[T, ...] | None:
    items = _items(node)
    if items is None:
        return None
    values = []
    for item in items:
        value = read(item)
        if value is not None:
            values.append(value)
        elif not nulls_allowed:
            raise ValueError(f"{_line(item)}: an item of a list is null")
    return tuple(values)


def mapping_of_texts(node: yaml.Node) -> dict[str, str] | None:
    """Return a mapping of texts; one that is null there is empty."""
    texts: dict[str, str] = {}

    def take(name: str, value: yaml.Node, _: yaml.Node) -> None:
        texts[name] = read_text(value) or ""

    return texts if _take_entries(node, take) else None


def read_fields(node: yaml.Node, reads: Mapping[str, Read[Any]]) -> dict[str, Any] | None:
    """Return the fields that a mapping sets, those that are null left out.

    Raises ValueError: it has one that is not in ``reads``, or one of another type.
    """
    values: dict[str, Any] = {}

    def take(name: str, value: yaml.Node, key: yaml.Node) -> None:
        if name not in reads:
            raise ValueError(f"{_line(key)}: there is no field {name[:60]!r}")
        read_value = reads[name](value)
        if read_value is not None:
            values[name] = read_value

    return values if _take_entries(node, take) else None


def _take_entries(node: yaml.Node, take: Callable[[str, yaml.Node, yaml.Node], None]) -> bool:
    """Give each entry of a mapping to ``take``, merged ones once; False: the mapping is null."""
    node = _target(node)
    if not isinstance(node, yaml.MappingNode):
        if isinstance(node, yaml.ScalarNode) and _resolved(node) is None:
            return False
        raise _wrong(node, "a mapping")
    for name, value, key in _entries(node, set()):
        take(name, value, key)
    return True


def _entries(
    node: yaml.MappingNode, names_before: set[str], *, merged: bool = False
) -> Iterator[tuple[str, yaml.Node, yaml.Node]]:
    """Yield name, value and key; ``names_before`` are names that entries merged into have."""
    _refuse_keys_twice(node)
    merge: yaml.Node | None = None
    here: set[str] = set()
    for key, value in node.value:
        if _is_merge(key):
            merge = value
            continue
        name = read_text(key)
        if name is None or (merged and name in names_before):
            continue
        if name in here:
            raise ValueError(f"{_line(key)}: the key {name[:60]!r} is there twice")
        here.add(name)
        yield name, value, key
    names_before |= here
    if merge is not None:
        for mapping in _merged(merge):
            yield from _entries(mapping, names_before, merged=True)


def _merged(node: yaml.Node) -> Iterator[yaml.MappingNode]:
    target = _target(node)
    mappings = [node] if isinstance(node, Alias) or not _is_list(node) else node.value
    for mapping in mappings:
        target = _target(mapping)
        if not isinstance(target, yaml.MappingNode):
            raise _wrong(mapping, "a mapping, or a list of mappings, to be merged")
        yield target


def _refuse_keys_twice(node: yaml.MappingNode) -> None:
    written_keys: set[tuple[type, str]] = set()
    for key, _ in node.value:
        # Go compares what it has as text of a node, which of a list or mapping is empty.
        written = "" if isinstance(key, (yaml.MappingNode, yaml.SequenceNode)) else key.value
        if (type(key), written) in written_keys:
            raise ValueError(f"{_line(key)}: the key {written[:60]!r} is there twice")
        written_keys.add((type(key), written))


def _is_merge(key: yaml.Node) -> bool:
    return (
        isinstance(key, yaml.ScalarNode)
        and key.value == "<<"
        and (key.tag == f"{_STANDARD}merge" or (key.tag == "" and _is_plain(key)))
    )


def _is_list(node: yaml.Node) -> bool:
    return isinstance(node, yaml.SequenceNode)


def _items(node: yaml.Node) -> list[yaml.Node] | None:
    node = _target(node)
    if isinstance(node, yaml.SequenceNode):
        items: list[yaml.Node] = node.value
        return items
    if isinstance(node, yaml.ScalarNode) and _resolved(node) is None:
        return None
    raise _wrong(node, "a list")


def _target(node: yaml.Node) -> yaml.Node:
    while isinstance(node, Alias):
        node = node.target
    return node


def _scalar(node: yaml.Node, wanted: str) -> yaml.ScalarNode:
    node = _target(node)
    if not isinstance(node, yaml.ScalarNode):
        raise _wrong(node, wanted)
    return node


def _is_plain(node: yaml.ScalarNode) -> bool:
    return not node.style


def _integer(node: yaml.Node, least: int, most: int) -> int | None:
    scalar = _scalar(node, "a number")
    value = _resolved(scalar)
    if value is None:
        return None
    if isinstance(value, float):
        # Go compares before it converts, and what is out of range converts to the least integer.
        if not value <= float(_BITS_63 if least else 2 * _BITS_63):
            raise _wrong(scalar, f"a number up to {most}")
        value = int(value) if -_BITS_63 < value < most + 1 else -_BITS_63
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise _wrong(scalar, f"a number from {least} to {most}")
    return value


def _resolved(node: yaml.ScalarNode) -> Any:
    """Return None, bool, int, float or str: what a scalar is where no type is asked for."""
    written: str = node.value
    tag = node.tag.removeprefix(_STANDARD) if node.tag.startswith(_STANDARD) else node.tag
    if tag == "" and (not _is_plain(node) or written == "<<"):
        return written
    if tag == "binary":
        try:
            return base64.b64decode(re.sub(r"[\r\n]", "", written), validate=True).decode(
                "utf-8", "surrogateescape"
            )
        except (binascii.Error, ValueError):
            raise _wrong(node, "base64") from None
    if tag not in _RESOLVED or tag == "str":
        return written
    if tag == "timestamp":
        if _TIMESTAMP.fullmatch(written) is None:
            raise _wrong(node, "!!timestamp")
        return written
    value = _of_plain(written)
    own_tag = _tag_of(value)
    if tag == "float" and own_tag == "int" and value < _BITS_63:
        return float(value)
    if tag not in ("", own_tag):
        raise _wrong(node, f"!!{tag}")
    return value


def _tag_of(value: Any) -> str:
    if value is None:
        return "null"
    kinds = ((bool, "bool"), (int, "int"), (float, "float"), (str, "str"))
    return next(tag for kind, tag in kinds if isinstance(value, kind))


def _of_plain(written: str) -> Any:
    if written in _WORDS:
        return _WORDS[written]
    first = written[0]
    if first == ".":
        return _float(written) if _FLOAT.fullmatch(written) else written
    if not (first in "+-" or "0" <= first <= "9"):
        return written
    digits = written.replace("_", "")
    number = _of_digits(digits)
    if number is not None:
        return number
    return _float(digits, written) if _FLOAT.fullmatch(digits) else written


def _of_digits(digits: str) -> int | None:
    if len(digits) > _MOST_DIGITS:
        return None
    match = _INTEGER.fullmatch(digits)
    if match is not None:
        [(base, magnitude)] = [
            (base, match[name]) for name, base in _BASES.items() if match[name] is not None
        ]
        number = int(match["sign"] + magnitude, base)
    elif (match := _SIGN_WITHIN.fullmatch(digits)) is not None:
        number = int(match["bin"] or match["oct"], 2 if match["bin"] else 8)
    else:
        return None
    signed = bool(match.groupdict().get("sign")) or number < 0
    fits = -_BITS_63 <= number < (_BITS_63 if signed else 2 * _BITS_63)
    return number if fits else None


def _float(digits: str, written: str | None = None) -> float | str:
    """Return a number; what is too large for one is text."""
    value = float(digits)
    return (digits if written is None else written) if math.isinf(value) else value


def _line(node: yaml.Node) -> str:
    return f"line {node.start_mark.line + 1}"


def _wrong(node: yaml.Node, wanted: str) -> ValueError:
    kinds = ((yaml.MappingNode, "a mapping"), (yaml.SequenceNode, "a list"))
    kind_of_node = next((name for kind, name in kinds if isinstance(node, kind)), None)
    return ValueError(
        f"{_line(node)}: {kind_of_node or repr(str(node.value)[:60])} is not {wanted}"
    )
