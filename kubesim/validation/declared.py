"""The errors that Kubernetes 1.37 takes from declarative validation, and where they stand.

Of resource.k8s.io a part of the rules is written as tags of the versioned types (``+k8s:...``);
what is written by hand as well is then left out (``MarkCoveredByDeclarative`` in
pkg/apis/resource/validation/validation.go). Such errors come after all others, in the order of the
types, have the paths of the version that was sent, and show whole values
(``ValidateDeclarativelyWithMigrationChecks`` of k8s.io/apiserver).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from kube.errors import Cause
from kube.values import Obj
from kubesim.goforms import encode_object, load_go_names, order_fields
from kubesim.validation.errors import duplicate, invalid
from kubesim.validation.names import allow_capitals
from reference_allocator.api import schema

_FLAT: Final = "resource.k8s.io/v1beta1"
_SIZED: Final = (
    "requests|constraints|config|derivedAttributes|firstAvailable|reservedFor|results|selectors|"
    "sharedCounters|"
    "consumesCounters|ips|bindingConditions|bindingFailureConditions"
)
_ALL: Final = "FieldValue"
_DECLARED: Final = tuple(
    (re.compile(path), reason)
    for path, reason in (
        (rf".*\.({_SIZED})", "FieldValueTooMany"),
        (r".*\.(requests|firstAvailable|reservedFor|ips)\[\d+\]", "FieldValueDuplicate"),
        (r".*\.(sharedCounters|consumesCounters)\[\d+\]", "FieldValueDuplicate"),
        (r"status\.devices\[\d+\]", "FieldValueDuplicate"),
        (r".*\.firstAvailable\[\d+\]\.deviceClassName", _ALL),
        (r".*\.allocationMode", "FieldValueNotSupported"),
        (r".*\.(matchAttribute|distinctAttribute)", _ALL),
        (r".*\.opaque\.driver", _ALL),
        (r"status\.allocation\.devices\.results\[\d+\]\.(driver|pool|shareID)", _ALL),
        (r"status\.devices\[\d+\]\.shareID", _ALL),
        (r".*\.source", _ALL),
        (r"spec\.(extendedResourceName|partitionTypeAttribute)", _ALL),
        (r".*\.derivedAttributes\[\d+\]\.expression", "FieldValueRequired"),
        (r".*\.derivedAttributes\[\d+\]\.name", _ALL),
        (r".*\.sharedCounters\[\d+\]\.(name|counters)", _ALL),
        (r".*\.consumesCounters\[\d+\]\.(counterSet|counters)", _ALL),
        (r".*\.(interfaceName|hardwareAddress)", "FieldValueTooLong"),
        (r".*\.taints?(\[\d+\])?\.effect", _ALL),
        (r".*\.tolerations\[\d+\]\.(key|operator|effect)", _ALL),
        (r"spec\.devices\[\d+\]\.attributes\[[^]]*\]", "FieldValueInvalid"),
    )
)
"""Path and reason (or the beginning of it) of the errors that are declared."""

_POOL: Final = re.compile(r"status\.allocation\.devices\.results\[\d+\]\.pool")
_BY_HAND: Final = (
    "exactly one value must be specified",
    "constraint targeting this request",
    "declares devices that consume counters",
)
"""What rules that are written by hand say at places where others are declared."""

_SEGMENT: Final = re.compile(r"([^.\[\]]+)|\[([^\]]*)\]")


def rearrange(causes: Sequence[Cause], sent: Obj) -> list[Cause]:
    """Return the causes of a refusal as Kubernetes 1.37 has them.

    ``sent``: the object, complete with defaults, in the version that was sent.
    """
    declared = [cause for cause in causes if is_declared(cause, sent["kind"])]
    others = [cause for cause in causes if cause not in declared]
    root = schema.roots()[f"{sent['apiVersion']}/{sent['kind']}"]
    written = encode_object(sent) if declared else sent
    versioned = [_in_version(cause, sent["apiVersion"]) for cause in declared]
    is_stable = sent["apiVersion"].endswith("/v1")

    def rank(cause: Cause) -> tuple[Any, ...]:
        # The tags of v1 have the form of a driver's name before its length, the others behind it.
        is_driver = is_stable and cause.field.endswith(".driver")
        is_last = is_driver and cause.reason == "FieldValueTooLong"
        return _rank(root, cause), is_last

    versioned.sort(key=rank)
    return [*others, *(_with_value(cause, root, written) for cause in versioned)]


def is_declared(cause: Cause, kind: str) -> bool:
    """Return whether the rule that a cause violates is written as a tag of a kind's types."""
    if cause.field == "metadata.name":
        return kind == "DeviceClass" and cause.reason == "FieldValueInvalid"
    if cause.message.endswith(_BY_HAND):
        return False
    if cause.message.startswith('Unsupported value: "":'):  # an empty value is not looked at
        return False
    return any(
        pattern.fullmatch(cause.field) and cause.reason.startswith(reason)
        for pattern, reason in _DECLARED
    )


def _in_version(cause: Cause, api_version: str) -> Cause:
    field, message = cause.field, cause.message
    if api_version == _FLAT:
        field = re.sub(r"^(spec\.devices\[\d+\])\.(?!name$|basic\.)", r"\1.basic.", field)
        field = re.sub(r"(\.requests\[\d+\])\.exactly\.", r"\1.", field)
    message = re.sub(r"(no more than \d+) characters", r"\1 bytes", message)
    if re.search(r"(opaque|results\[\d+\])\.driver$", field):
        message = re.sub(r"(be more than \d+) bytes", r"\1 characters", message)
    if field.endswith("opaque.driver") or (".results[" in field and not field.endswith(".pool")):
        message = allow_capitals(message)
    return Cause(field, cause.reason, message)


def _split_path(path: str) -> Iterator[str | int]:
    for name, key in _SEGMENT.findall(path):
        yield name or (int(key) if key.isdigit() else key)


def _rank(root: str, cause: Cause) -> tuple[tuple[int, str], ...]:
    """Return where declarative validation comes to a cause: a list before its items."""
    ranks: list[tuple[int, str]] = []
    shape = root
    for segment in _split_path(cause.field):
        if shape.startswith((schema.LIST, schema.MAP)):
            shape = shape.partition("]")[2]
            rank = (segment, "") if isinstance(segment, int) else (0, str(segment))
        else:
            order = [*load_go_names().get(shape, ())]
            fields = schema.types().get(shape, {})
            name = str(segment)
            rank = (order.index(name) if name in order else len(order), name)
            shape = fields.get(name, "")
        ranks.append(rank)
    if cause.reason == "FieldValueDuplicate":
        ranks[-1:] = [(-1, ""), *ranks[-1:]]
    return tuple(ranks)


def _with_value(cause: Cause, root: str, written: Obj) -> Cause:
    """Return the cause of a duplicate with the whole value, of a pool's name with the segment."""
    is_pool = _POOL.fullmatch(cause.field) and cause.reason == "FieldValueInvalid"
    if cause.reason != "FieldValueDuplicate" and not is_pool:
        return cause
    value: Any = written
    shape = root
    for segment in _split_path(cause.field):
        is_item = shape.startswith(schema.LIST)
        shape = shape.partition("]")[2] if is_item else schema.types()[shape][str(segment)]
        value = value[segment]
    if is_pool:
        return _with_segment(cause, value)
    if not isinstance(value, dict):
        return cause
    return Cause(cause.field, cause.reason, duplicate("", order_fields(shape, value)).body)


def _with_segment(cause: Cause, pool: str) -> Cause:
    """Return the cause of a pool's name, which says which part between slashes is wrong."""
    segment, end = json.JSONDecoder().raw_decode(cause.message, len("Invalid value: "))
    index = pool.split("/").index(segment)
    if not segment:
        detail = f"segment {index}: must not be empty"
        return Cause(cause.field, cause.reason, invalid("", pool, detail).body)
    message = f"{cause.message[:end]}: segment {index}{cause.message[end:]}"
    return Cause(cause.field, cause.reason, message)
