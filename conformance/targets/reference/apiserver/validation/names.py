"""Formats of names: what the API server says of one that does not fit.

Source: k8s.io/apimachinery/pkg/api/validate/content and pkg/apis/resource/validation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from conformance.targets.reference.apiserver.validation.errors import (
    FieldError,
    invalid,
    required,
    too_long,
)

_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN: Final = _LABEL + r"(\." + _LABEL + ")*"
_C_IDENTIFIER: Final = "[A-Za-z_][A-Za-z0-9_]*"
_KEY: Final = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_LABEL_VALUE: Final = f"({_KEY})?"

_LABEL_TEXT: Final = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
    "and must start and end with an alphanumeric character"
)
_SUBDOMAIN_TEXT: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, "
    "'-' or '.', and must start and end with an alphanumeric character"
)
_C_IDENTIFIER_TEXT: Final = (
    "a valid C identifier must start with alphabetic character or '_', followed by a string of "
    "alphanumeric characters or '_'"
)
_KEY_TEXT: Final = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character"
)
_LABEL_VALUE_TEXT: Final = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or "
    "'.', and must start and end with an alphanumeric character"
)

_MAX_LABEL: Final = 63
_MAX_SUBDOMAIN: Final = 253
_MAX_ID: Final = 32


def _regex_error(text: str, pattern: str, *examples: str) -> str:
    shown = " or ".join(f"'{example}', " for example in examples)
    return f"{text} (e.g. {shown}regex used for validation is '{pattern}')"


def label_problems(value: str) -> Iterator[str]:
    """Why a value is no DNS-1123 label."""
    if len(value) > _MAX_LABEL:
        yield f"must be no more than {_MAX_LABEL} characters"
    if re.fullmatch(_LABEL, value):
        return
    if re.fullmatch(_SUBDOMAIN, value):
        yield "must not contain dots"
    else:
        yield _regex_error(_LABEL_TEXT, _LABEL, "my-name", "123-abc")


def subdomain_problems(value: str) -> Iterator[str]:
    """Why a value is no DNS-1123 subdomain."""
    if len(value) > _MAX_SUBDOMAIN:
        yield f"must be no more than {_MAX_SUBDOMAIN} characters"
    if not re.fullmatch(_SUBDOMAIN, value):
        yield _regex_error(_SUBDOMAIN_TEXT, _SUBDOMAIN, "example.com")


def label_key_problems(value: str) -> Iterator[str]:
    """Why a value is no label key ("qualified name")."""
    prefix, slash, name = value.rpartition("/")
    if "/" in prefix:
        yield (
            f"a valid label key {_regex_error(_KEY_TEXT, _KEY, 'MyName', 'my.name', '123-abc')} "
            "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        )
        return
    if slash and not prefix:
        yield "prefix part must be non-empty"
    elif slash:
        yield from (f"prefix part {problem}" for problem in subdomain_problems(prefix))
    if not name:
        yield "name part must be non-empty"
    elif len(name) > _MAX_LABEL:
        yield f"name part must be no more than {_MAX_LABEL} bytes"
    if not re.fullmatch(_KEY, name):
        yield f"name part {_regex_error(_KEY_TEXT, _KEY, 'MyName', 'my.name', '123-abc')}"


def label_value_problems(value: str) -> Iterator[str]:
    """Why a value is no label value."""
    if len(value) > _MAX_LABEL:
        yield f"must be no more than {_MAX_LABEL} bytes"
    if not re.fullmatch(_LABEL_VALUE, value):
        yield _regex_error(_LABEL_VALUE_TEXT, _LABEL_VALUE, "MyValue", "my_value", "12345")


def label(value: str, path: str) -> Iterator[FieldError]:
    """A DNS-1123 label."""
    yield from (invalid(path, value, problem) for problem in label_problems(value))


def subdomain(value: str, path: str) -> Iterator[FieldError]:
    """A DNS-1123 subdomain."""
    yield from (invalid(path, value, problem) for problem in subdomain_problems(value))


def driver(value: str, path: str) -> Iterator[FieldError]:
    """A driver's name (the rules of a CSI driver's)."""
    if not value:
        yield required(path)
        return
    if len(value) > _MAX_LABEL:
        yield too_long(path, _MAX_LABEL)
    yield from (invalid(path, value, problem) for problem in subdomain_problems(value.lower()))


def pool(value: str, path: str) -> Iterator[FieldError]:
    """A pool's name: subdomains separated by slashes."""
    if not value:
        yield required(path)
        return
    if len(value) > _MAX_SUBDOMAIN:
        yield too_long(path, _MAX_SUBDOMAIN)
    for part in value.split("/"):
        yield from subdomain(part, path)


def qualified(value: str, path: str) -> Iterator[FieldError]:
    """The name of an attribute or capacity, with or without a domain."""
    parts = value.split("/")
    if len(parts) == 1:
        yield from _c_identifier(value, path)
    elif len(parts) == 2:
        if not parts[0]:
            yield invalid(path, "", "the domain must not be empty")
        else:
            yield from driver(parts[0], path)
        if not parts[1]:
            yield invalid(path, "", "the name must not be empty")
        else:
            yield from _c_identifier(parts[1], path)


def fully_qualified(value: str, path: str) -> Iterator[FieldError]:
    """The name of an attribute with its domain."""
    yield from qualified(value, path)
    if "/" not in value:
        detail = "a fully qualified name must be a domain and a name separated by a slash"
        yield invalid(path, value, detail)


def _c_identifier(value: str, path: str) -> Iterator[FieldError]:
    if len(value) > _MAX_ID:
        yield too_long(path, _MAX_ID)
    if not re.fullmatch(_C_IDENTIFIER, value):
        examples = ("my_name", "MY_NAME", "MyName")
        yield invalid(path, value, _regex_error(_C_IDENTIFIER_TEXT, _C_IDENTIFIER, *examples))
