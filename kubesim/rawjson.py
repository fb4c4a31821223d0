"""JSON whose text counts: a driver's own data, which Go keeps as it was sent (``RawExtension``).

Two texts of one value are two values to it: with a space more they are longer, and not equal.
"""

from __future__ import annotations

import json
from typing import Any, Final

_FIELDS: Final = frozenset({"parameters", "data"})


class RawObject(dict[str, Any]):
    """An object that is compared by its text: 1 and true are not the same. It is not changed.

    ``text``: as it was sent.
    """

    text: str

    def __eq__(self, other: object) -> bool:
        return isinstance(other, dict) and self.text == text_of(other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = None


def text_of(value: Any) -> str:
    """Return the text that Go keeps of a value."""
    if isinstance(value, RawObject):
        return value.text
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def keep_texts(text: str, document: Any) -> Any:
    """Return a decoded document in which data of drivers knows its text.

    ``text``: of the document, which is valid JSON.
    """
    if not any(f'"{field}"' in text for field in _FIELDS):
        return document
    spans: dict[int, tuple[int, int]] = {}
    kept: list[Any] = []  # so that no id is used twice
    decoder = json.JSONDecoder()
    parse = json.decoder.JSONObject  # type: ignore[attr-defined]

    def parse_object(state: tuple[str, int], *arguments: Any) -> tuple[Any, int]:
        value, end = parse(state, *arguments)
        spans[id(value)] = state[1] - 1, end
        kept.append(value)
        return value, end

    decoder.parse_object = parse_object  # type: ignore[attr-defined]
    decoder.scan_once = json.scanner.py_make_scanner(decoder)  # type: ignore[attr-defined]
    return _wrap(document, decoder.decode(text), text, spans)


def _wrap(value: Any, spanned: Any, text: str, spans: dict[int, tuple[int, int]]) -> Any:
    """Replace the data of drivers in a value; ``spanned`` is the same, whose spans are known."""
    if isinstance(value, list) and isinstance(spanned, list):
        value[:] = [_wrap(*pair, text, spans) for pair in zip(value, spanned, strict=True)]
    elif isinstance(value, dict) and isinstance(spanned, dict):
        for key, item in value.items():
            place = spans.get(id(spanned.get(key)))
            if key in _FIELDS and isinstance(item, dict) and place is not None:
                raw = RawObject(item)
                raw.text = text[slice(*place)]
                value[key] = raw
            else:
                value[key] = _wrap(item, spanned.get(key), text, spans)
    return value
