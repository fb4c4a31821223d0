"""Why a text is no label key or no label value, in the words of Kubernetes.

Source: k8s.io/apimachinery/pkg/api/validate/content (kube.go, dns.go), as label selectors ask it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

_NAME: Final = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_DNS_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_PREFIX: Final = rf"{_DNS_LABEL}(\.{_DNS_LABEL})*"
_MAX_NAME: Final = 63
_MAX_PREFIX: Final = 253

_CHARACTERS: Final = (
    "consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character"
)
_KEY: Final = f"must {_CHARACTERS}"
_VALUE: Final = f"a valid label must be an empty string or {_CHARACTERS}"
_SUBDOMAIN: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    "'.', and must start and end with an alphanumeric character"
)
_EMPTY: Final = "must be non-empty"


def key_problems(key: str) -> Iterator[str]:
    """What is wrong with a label key; nothing if it is one."""
    prefix, slash, name = key.partition("/")
    if "/" in name:
        yield (
            f"a valid label key {_no_match(_KEY, _NAME, 'MyName', 'my.name', '123-abc')} with an "
            "optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        )
        return
    if not slash:
        name = prefix
    elif not prefix:
        yield f"prefix part {_EMPTY}"
    else:
        yield from (f"prefix part {problem}" for problem in _prefix_problems(prefix))
    if not name:
        yield f"name part {_EMPTY}"
    elif _size(name) > _MAX_NAME:
        yield f"name part {_too_long(_MAX_NAME)}"
    if not re.fullmatch(_NAME, name):
        yield f"name part {_no_match(_KEY, _NAME, 'MyName', 'my.name', '123-abc')}"


def value_problems(value: str) -> Iterator[str]:
    """What is wrong with a label value; nothing if it is one."""
    if _size(value) > _MAX_NAME:
        yield _too_long(_MAX_NAME)
    if value and not re.fullmatch(_NAME, value):
        yield _no_match(_VALUE, f"({_NAME})?", "MyValue", "my_value", "12345")


def _prefix_problems(prefix: str) -> Iterator[str]:
    if _size(prefix) > _MAX_PREFIX:
        yield _too_long(_MAX_PREFIX)
    if not re.fullmatch(_PREFIX, prefix):
        yield _no_match(_SUBDOMAIN, _PREFIX, "example.com")


def _size(text: str) -> int:
    return len(text.encode(errors="surrogatepass"))


def _too_long(most: int) -> str:
    return f"must be no more than {most} bytes"


def _no_match(problem: str, expression: str, *examples: str) -> str:
    # The comma before "or" is upstream's.
    shown = " or ".join(f"'{example}', " for example in examples)
    return f"{problem} (e.g. {shown}regex used for validation is '{expression}')"
