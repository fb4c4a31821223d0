"""Validation of names in the Kubernetes API, in Kubernetes' words.

Every function returns the texts that its Go counterpart returns, in the same order; none if the
name is valid. Lengths are counted in bytes. apimachinery has two families of these functions:
names of objects go through k8s.io/apimachinery/pkg/util/validation, which says "characters" of a
name that is too long, label keys and values through pkg/api/validate/content, which says "bytes".
That holds from 1.35 to 1.37 (1.34 says "characters" of both, and "a qualified name" for "a valid
label key").
"""

from __future__ import annotations

import re
from typing import Final

DNS_LABEL_MAX: Final = 63
DNS_SUBDOMAIN_MAX: Final = 253
LABEL_MAX: Final = 63
"""The most bytes of a label's value, and of its key without the prefix."""

_DNS_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_DNS_SUBDOMAIN: Final = rf"{_DNS_LABEL}(\.{_DNS_LABEL})*"
_DNS_1035_LABEL: Final = "[a-z]([-a-z0-9]*[a-z0-9])?"
_C_IDENTIFIER: Final = "[A-Za-z_][A-Za-z0-9_]*"
_LABEL_KEY: Final = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_LABEL_VALUE: Final = f"({_LABEL_KEY})?"

_MUST_BE_LABEL_KEY: Final = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character"
)


def dns_label_problems(value: str) -> list[str]:
    """Return what keeps a text from being a DNS label of RFC 1123, as devices' names are.

    Source: IsDNS1123Label.
    """
    problems = _too_long(value, DNS_LABEL_MAX, "characters")
    if re.fullmatch(_DNS_LABEL, value):
        return problems
    if re.fullmatch(_DNS_SUBDOMAIN, value):
        return [*problems, "must not contain dots"]
    text = (
        "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
        "and must start and end with an alphanumeric character"
    )
    return [*problems, *_mismatch(value, _DNS_LABEL, text, "my-name", "123-abc")]


def dns_1035_label_problems(value: str) -> list[str]:
    """Return what keeps a text from being a DNS label of RFC 1035, which starts with a letter.

    Source: IsDNS1035Label.
    """
    text = (
        "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with "
        "an alphabetic character, and end with an alphanumeric character"
    )
    return [
        *_too_long(value, DNS_LABEL_MAX, "characters"),
        *_mismatch(value, _DNS_1035_LABEL, text, "my-name", "abc-123"),
    ]


def dns_subdomain_problems(value: str) -> list[str]:
    """Return what keeps a text from being a DNS subdomain of RFC 1123, as nodes' names are.

    Source: IsDNS1123Subdomain.
    """
    return _subdomain_problems(value, "characters")


def c_identifier_problems(value: str) -> list[str]:
    """Return what keeps a text from being the name of an attribute without its domain.

    Names of capacities follow the same rule. Source: IsCIdentifier.
    """
    text = (
        "a valid C identifier must start with alphabetic character or '_', followed by a string "
        "of alphanumeric characters or '_'"
    )
    return _mismatch(value, _C_IDENTIFIER, text, "my_name", "MY_NAME", "MyName")


def label_key_problems(value: str) -> list[str]:
    """Return what keeps a text from being a label key, also called qualified name (IsLabelKey)."""
    prefix, slash, name = value.rpartition("/")
    mismatch = _mismatch(name, _LABEL_KEY, _MUST_BE_LABEL_KEY, "MyName", "my.name", "123-abc")
    if "/" in prefix:
        (text,) = _mismatch("/", _LABEL_KEY, _MUST_BE_LABEL_KEY, "MyName", "my.name", "123-abc")
        optional = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return [f"a valid label key {text} {optional}"]
    problems: list[str] = []
    if slash and not prefix:
        problems.append("prefix part must be non-empty")
    elif slash:
        problems += [f"prefix part {problem}" for problem in _subdomain_problems(prefix, "bytes")]
    if not name:
        problems.append("name part must be non-empty")
    else:
        problems += [f"name part {problem}" for problem in _too_long(name, LABEL_MAX, "bytes")]
    return [*problems, *(f"name part {problem}" for problem in mismatch)]


def label_value_problems(value: str) -> list[str]:
    """Return what keeps a text from being a label's value (IsLabelValue)."""
    text = (
        "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or "
        "'.', and must start and end with an alphanumeric character"
    )
    return [
        *_too_long(value, LABEL_MAX, "bytes"),
        *_mismatch(value, _LABEL_VALUE, text, "MyValue", "my_value", "12345"),
    ]


def _subdomain_problems(value: str, unit: str) -> list[str]:
    text = (
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
        "'.', and must start and end with an alphanumeric character"
    )
    return [
        *_too_long(value, DNS_SUBDOMAIN_MAX, unit),
        *_mismatch(value, _DNS_SUBDOMAIN, text, "example.com"),
    ]


def _too_long(value: str, most: int, unit: str) -> list[str]:
    size = len(value.encode(errors="surrogatepass"))
    return [f"must be no more than {most} {unit}"] if size > most else []


def _mismatch(value: str, pattern: str, text: str, *examples: str) -> list[str]:
    if re.fullmatch(pattern, value):
        return []
    # The comma before "or" is upstream's.
    quoted_examples = " or ".join(f"'{example}', " for example in examples)
    return [f"{text} (e.g. {quoted_examples}regex used for validation is '{pattern}')"]
