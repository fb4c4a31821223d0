"""Named formats such as ``format.dns1123Label()`` (``k8s.io/apiserver/pkg/cel/library/format.go``).

Validation gives the messages of apimachinery's validators, or none.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date
from typing import Any, ClassVar, Final

from reference_allocator.api import names
from reference_allocator.cel.library.urls import parse_request_uri
from reference_allocator.cel.runtime.values import Optional


@dataclass(slots=True, frozen=True)
class NamedFormat:
    """A format by name; ``check`` returns what is wrong with a text."""

    cel_type: ClassVar[str] = "kubernetes.NamedFormat"
    name: str
    check: Callable[[str], list[str]] = field(compare=False)
    regex_size: int = field(compare=False)


def _prefix_of(check: Callable[[str], list[str]]) -> Callable[[str], list[str]]:
    """Return the check of a name's beginning, which may end with a dash."""

    def masked(text: str) -> list[str]:
        if len(text) > 1 and text.endswith("-"):  # maskTrailingDash, which cuts bytes
            text = text.encode()[:-2].decode(errors="replace") + "a"
        return check(text)

    return masked


def _check_uri(text: str) -> list[str]:
    try:
        parse_request_uri(text)
    except ValueError as error:
        return [str(error)]
    return []


def _check_uuid(text: str) -> list[str]:
    pattern = "[0-9a-fA-F]{8}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{12}"
    return [] if re.fullmatch(pattern, text) else ["does not match the UUID format"]


def _check_byte(text: str) -> list[str]:
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


def _check_date(text: str) -> list[str]:
    return [] if _is_date(text) else ["invalid date"]


def _check_datetime(text: str) -> list[str]:
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
    "dns1123Label": NamedFormat("DNS1123Label", names.dns_label_problems, 30),
    "dns1123Subdomain": NamedFormat("DNS1123Subdomain", names.dns_subdomain_problems, 60),
    "dns1035Label": NamedFormat("DNS1035Label", names.dns_1035_label_problems, 30),
    "qualifiedName": NamedFormat("QualifiedName", names.label_key_problems, 60),
    "dns1123LabelPrefix": NamedFormat(
        "DNS1123LabelPrefix", _prefix_of(names.dns_label_problems), 30
    ),
    "dns1123SubdomainPrefix": NamedFormat(
        "DNS1123SubdomainPrefix", _prefix_of(names.dns_subdomain_problems), 60
    ),
    "dns1035LabelPrefix": NamedFormat(
        "DNS1035LabelPrefix", _prefix_of(names.dns_1035_label_problems), 30
    ),
    "labelValue": NamedFormat("LabelValue", names.label_value_problems, 40),
    "uri": NamedFormat("URI", _check_uri, 1103),
    "uuid": NamedFormat("uuid", _check_uuid, 70),
    "byte": NamedFormat("byte", _check_byte, 84),
    "date": NamedFormat("date", _check_date, 71),
    "datetime": NamedFormat("datetime", _check_datetime, 71),
}


def _validate(named: NamedFormat, text: str) -> Optional:
    problems = named.check(text)
    return Optional(problems, present=True) if problems else Optional(present=False)


def _find_format(name: str) -> Optional:
    named_format = NAMED_FORMATS.get(name)
    return Optional(present=False) if named_format is None else Optional(named_format, present=True)


def _constant(named: NamedFormat) -> Callable[[], NamedFormat]:
    return lambda: named


OVERLOADS: Final[dict[str, Callable[..., Any]]] = {
    "format-named": _find_format,
    "format-validate": _validate,
    **{f"format.{name}": _constant(named) for name, named in NAMED_FORMATS.items()},
}
