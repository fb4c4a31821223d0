"""Named formats such as ``format.dns1123Label()`` (``k8s.io/apiserver/pkg/cel/library/format.go``).

Validation gives the messages of apimachinery's validators, or none.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from datetime import date
from typing import Any, Final

from reference_allocator.cel.library.urls import parse_request_uri
from reference_allocator.cel.runtime.values import Optional

__all__ = ["NAMED_FORMATS", "OVERLOADS", "NamedFormat"]

_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_LABEL_1035: Final = "[a-z]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN: Final = rf"{_LABEL}(\.{_LABEL})*"
_QUALIFIED: Final = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_LABEL_MESSAGE: Final = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must"
    " start and end with an alphanumeric character"
)
_LABEL_1035_MESSAGE: Final = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an"
    " alphabetic character, and end with an alphanumeric character"
)
_SUBDOMAIN_MESSAGE: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.',"
    " and must start and end with an alphanumeric character"
)
_QUALIFIED_MESSAGE: Final = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an"
    " alphanumeric character"
)
_VALUE_MESSAGE: Final = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.',"
    " and must start and end with an alphanumeric character"
)


class NamedFormat:
    """A format by name; ``check`` lists what is wrong with a text."""

    __slots__ = ("check", "name", "regex_size")
    cel_type = "kubernetes.NamedFormat"

    def __init__(self, name: str, check: Callable[[str], list[str]], regex_size: int) -> None:
        self.name = name
        self.check = check
        self.regex_size = regex_size

    def compare(self, other: NamedFormat) -> int:
        """0 if equal; there is no order."""
        return int(self.name != other.name)


def _regex_error(message: str, pattern: str, *examples: str) -> str:
    shown = " or ".join(f"'{example}', " if False else f"'{example}'" for example in examples)
    listed = ",  or ".join(f"'{example}'" for example in examples) if len(examples) > 1 else shown
    return f"{message} (e.g. {listed}, regex used for validation is '{pattern}')"


def _too_long(text: str, limit: int) -> list[str]:
    return [f"must be no more than {limit} bytes"] if len(text.encode()) > limit else []


def _matching(
    pattern: str, limit: int, message: str, examples: tuple[str, ...], *, prefix: bool
) -> Callable[[str], list[str]]:
    def check(text: str) -> list[str]:
        if prefix and text.endswith("-"):
            text = text[:-2] + "a"  # what maskTrailingDash makes of it
        problems = _too_long(text, limit)
        if not re.fullmatch(pattern, text):
            problems.append(_regex_error(message, pattern, *examples))
        return problems

    return check


def _label(*, prefix: bool) -> Callable[[str], list[str]]:
    return _matching(_LABEL, 63, _LABEL_MESSAGE, ("my-name", "123-abc"), prefix=prefix)


def _label_1035(*, prefix: bool) -> Callable[[str], list[str]]:
    examples = ("my-name", "abc-123")
    return _matching(_LABEL_1035, 63, _LABEL_1035_MESSAGE, examples, prefix=prefix)


def _subdomain(*, prefix: bool) -> Callable[[str], list[str]]:
    return _matching(_SUBDOMAIN, 253, _SUBDOMAIN_MESSAGE, ("example.com",), prefix=prefix)


def _qualified_name(text: str) -> list[str]:
    problems: list[str] = []
    parts = text.split("/")
    if len(parts) > 2:
        message = "a qualified name " + _regex_error(
            _QUALIFIED_MESSAGE, _QUALIFIED, "MyName", "my.name", "123-abc"
        )
        return [
            message + " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        ]
    if len(parts) == 2:
        if not parts[0]:
            problems.append("prefix part must be non-empty")
        else:
            problems += [f"prefix part {problem}" for problem in _subdomain(prefix=False)(parts[0])]
    name = parts[-1]
    if not name:
        problems.append("name part must be non-empty")
    else:
        problems += [f"name part {problem}" for problem in _too_long(name, 63)]
    if not re.fullmatch(_QUALIFIED, name):
        problems.append(
            "name part "
            + _regex_error(_QUALIFIED_MESSAGE, _QUALIFIED, "MyName", "my.name", "123-abc")
        )
    return problems


def _label_value(text: str) -> list[str]:
    problems = _too_long(text, 63)
    pattern = f"({_QUALIFIED})?"
    if not re.fullmatch(pattern, text):
        examples = ("MyValue", "my_value", "12345")
        problems.append(_regex_error(_VALUE_MESSAGE, pattern, *examples))
    return problems


def _uri(text: str) -> list[str]:
    try:
        parse_request_uri(text)
    except ValueError as error:
        return [str(error)]
    return []


def _uuid(text: str) -> list[str]:
    pattern = "[0-9a-fA-F]{8}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{12}"
    return [] if re.fullmatch(pattern, text) else ["does not match the UUID format"]


def _byte(text: str) -> list[str]:
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return ["invalid base64"]
    return [] if text else ["invalid base64"]


def _is_date(text: str) -> bool:
    if not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
        return False
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def _date(text: str) -> list[str]:
    return [] if _is_date(text) else ["invalid date"]


def _datetime(text: str) -> list[str]:
    match = re.fullmatch(
        r"([0-9]{4}-[0-9]{2}-[0-9]{2})[tT ]([0-9]{2}):([0-9]{2}):([0-9]{2})(\.[0-9]+)?"
        r"([zZ]|[+-][0-9]{2}:?[0-9]{2})",
        text,
    )
    fine = (
        match is not None
        and _is_date(match[1])
        and int(match[2]) < 24
        and int(match[3]) < 60
        and int(match[4]) < 60
    )
    return [] if fine else ["invalid datetime"]


NAMED_FORMATS: Final[dict[str, NamedFormat]] = {
    "dns1123Label": NamedFormat("DNS1123Label", _label(prefix=False), 30),
    "dns1123Subdomain": NamedFormat("DNS1123Subdomain", _subdomain(prefix=False), 60),
    "dns1035Label": NamedFormat("DNS1035Label", _label_1035(prefix=False), 30),
    "qualifiedName": NamedFormat("QualifiedName", _qualified_name, 60),
    "dns1123LabelPrefix": NamedFormat("DNS1123LabelPrefix", _label(prefix=True), 30),
    "dns1123SubdomainPrefix": NamedFormat("DNS1123SubdomainPrefix", _subdomain(prefix=True), 60),
    "dns1035LabelPrefix": NamedFormat("DNS1035LabelPrefix", _label_1035(prefix=True), 30),
    "labelValue": NamedFormat("LabelValue", _label_value, 40),
    "uri": NamedFormat("URI", _uri, 1103),
    "uuid": NamedFormat("uuid", _uuid, 70),
    "byte": NamedFormat("byte", _byte, 84),
    "date": NamedFormat("date", _date, 71),
    "datetime": NamedFormat("datetime", _datetime, 71),
}


def _validate(named: NamedFormat, text: str) -> Optional:
    problems = named.check(text)
    return Optional(problems, present=True) if problems else Optional(present=False)


def _named(name: str) -> Optional:
    found = NAMED_FORMATS.get(name)
    return Optional(present=False) if found is None else Optional(found, present=True)


def _constant(named: NamedFormat) -> Callable[[], NamedFormat]:
    return lambda: named


OVERLOADS: Final[dict[str, Callable[..., Any]]] = {
    "format-named": _named,
    "format-validate": _validate,
    **{f"format.{name}": _constant(named) for name, named in NAMED_FORMATS.items()},
}
