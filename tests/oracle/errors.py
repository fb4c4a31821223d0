"""The errors that upstream's allocator has for what it is given, each as a pattern of its text.

With `tests.oracle.knobs` the list of what generated problems and recorded answers have to show.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

Json = dict[str, Any]

_PATTERNS: Final = {
    "subrequests are off": r"has subrequests, but the DRAPrioritizedList feature is disabled",
    "capacity is off": r", request \S+: has capacity requests, but the DRAConsumableCapacity",
    "capacity of a subrequest is off": r", subrequest \S+: has capacity requests, but the",
    "derived attributes are off": r"cannot handle request with derived attributes, the feature",
    "admin access is off": r"admin access is requested, but the feature is disabled",
    "selector of an unknown kind": r"CEL expression empty \(unsupported selector type\?\)",
    "constraint of an unknown kind": r"empty constraint \(unsupported constraint type\?\)",
    "no class name": r"missing device class name \(unsupported request type\?\)",
    "class not found": r"could not retrieve device class \S+: .* not found",
    "unknown allocation mode": r"unsupported count mode",
    "too many devices": r"adding \d+ devices exceeds the claim limit of 32",
    "All of an incomplete pool": r"asks for all devices, but .* is currently being updated",
    "All of an invalid pool": r"asks for all devices, but .* is currently invalid",
    "All against a constraint": r"cannot add device .* because a claim constraint",
    "class selector does not compile": r"^class \S+: selector #\d+: CEL compile error",
    "class selector fails": r"^class \S+: selector #\d+ on device \S+: CEL runtime error",
    "request selector does not compile": r"^claim \S+: selector #\d+: CEL compile error",
    "request selector fails": r"^claim \S+: selector #\d+ on device \S+: CEL runtime error",
    "missing key": r"consider using CEL optional chaining",
    "attribute without a value": r"parse semantic version",
    "derived attribute does not compile": r"compile derived attribute \S+ failed",
    "derived attribute fails": r"evaluate derived attribute \S+ on device \S+ failed",
    "capacity request that no device can have": r"capacity request cannot be represented",
    "node selector of a slice": r"failed to perform node selection for slice \S+: failed to parse",
    "node selector of a device": r"failed to perform node selection for device",
    "node selector of several terms": r"unsupported ResourceSlice.NodeSelector with 2 terms",
    "invalid pool": r"invalid resource pools were encountered",
}
ERRORS: Final[Mapping[str, re.Pattern[str]]] = {
    name: re.compile(pattern) for name, pattern in _PATTERNS.items()
}
"""Name -> pattern."""


def shown(answer: Json) -> Iterator[str]:
    """The names of the errors in an answer to a problem."""
    for node in answer.get("nodes", ()):
        for name, pattern in ERRORS.items():
            if pattern.search(node.get("error", "")):
                yield name
