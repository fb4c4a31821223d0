"""The expectations that a scenario may have. Each is known by the one key that begins it.

A new one is a class in a module of its own here, and a line in :data:`KINDS`.
"""

from __future__ import annotations

from typing import Annotated, Any, Final

from pydantic import GetCoreSchemaHandler, GetPydanticSchema
from pydantic_core import CoreSchema, core_schema

from conformance.scenario.expectations.base import Expectation
from conformance.scenario.expectations.claims import ClaimExpectation
from conformance.scenario.expectations.container_devices import DevicesExpectation
from conformance.scenario.expectations.container_environment import (
    EnvironmentExpectation,
    MetadataExpectation,
)
from conformance.scenario.expectations.container_hardware import (
    DeviceNodesExpectation,
    HardwareExpectation,
)
from conformance.scenario.expectations.events import EventExpectation, WatchedExpectation
from conformance.scenario.expectations.metrics import MetricsExpectation, PreparedExpectation
from conformance.scenario.expectations.nodes import CdiExpectation, PodResourcesExpectation
from conformance.scenario.expectations.objects import (
    NoneExpectation,
    ObjectExpectation,
    ObjectsExpectation,
    TogetherExpectation,
)
from conformance.scenario.expectations.permission import PermissionExpectation
from conformance.scenario.expectations.pod import PodExpectation
from conformance.scenario.expectations.rejected import RejectedExpectation

KINDS: Final[tuple[type[Expectation], ...]] = (
    PodExpectation,
    ClaimExpectation,
    ObjectExpectation,
    ObjectsExpectation,
    TogetherExpectation,
    NoneExpectation,
    DevicesExpectation,
    DeviceNodesExpectation,
    EnvironmentExpectation,
    HardwareExpectation,
    MetadataExpectation,
    RejectedExpectation,
    PermissionExpectation,
    EventExpectation,
    CdiExpectation,
    PreparedExpectation,
    MetricsExpectation,
    PodResourcesExpectation,
    WatchedExpectation,
)

# In parentheses: a tag in an error's location is no key of the document.
_TAGS: Final = {f"({kind.leading_key()})": kind for kind in KINDS}
_BY_KEY: Final = {kind.leading_key(): kind for kind in KINDS}


def _tag(value: Any) -> str | None:
    if isinstance(value, Expectation):
        return f"({value.leading_key()})"
    present_keys = [key for key in _BY_KEY if key in value] if isinstance(value, dict) else []
    # A claim has devices, and is none of the expectations that begin so.
    beginning_keys = [
        key
        for key in present_keys
        if not any(key in _BY_KEY[other].model_fields for other in present_keys if other != key)
    ]
    return f"({beginning_keys[0]})" if len(beginning_keys) == 1 else None


def _one_of_kinds(_: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
    keys = ", ".join(kind.leading_key() for kind in KINDS)
    return core_schema.tagged_union_schema(
        {tag: handler.generate_schema(kind) for tag, kind in _TAGS.items()},
        _tag,
        custom_error_type="expectation",
        custom_error_message=f"an expectation has exactly one of {keys}",
    )


AnyExpectation = Annotated[Expectation, GetPydanticSchema(_one_of_kinds)]
