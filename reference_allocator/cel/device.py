"""A device as selectors see it, converted once and then evaluated many times.

Source of the rules: ``k8s.io/dynamic-resource-allocation/cel/compile.go``, ``DeviceMatches``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reference_allocator.cel.errors import CelRuntimeError
from reference_allocator.cel.runtime.support import DomainMap
from reference_allocator.quantity import QuantityError, as_quantity
from reference_allocator.semver import Semver, SemverError, parse_semver

__all__ = ["CelDevice", "attribute_value"]


def _version(text: str) -> Semver:
    try:
        return parse_semver(text)
    except SemverError as error:
        message = f"parse semantic version: {error}"
        raise CelRuntimeError(message) from None


def attribute_value(attribute: Mapping[str, Any], *, lists: bool = True) -> Any:
    """The CEL value of a DeviceAttribute of the v1 API.

    Lists come before single values; within each, int, bool, string, version.

    Args:
        attribute: with the one value that is set.
        lists: lists are known; before 1.36, and in 1.36 without DRAListTypeAttributes, they are no
            values.

    Raises:
        CelRuntimeError: no value is set, or a version does not parse.
    """
    if lists:
        for name in ("ints", "bools", "strings"):
            if attribute.get(name) is not None:
                return list(attribute[name])
        if attribute.get("versions") is not None:
            return [_version(text) for text in attribute["versions"]]
    for name in ("int", "bool", "string"):
        if attribute.get(name) is not None:
            return attribute[name]
    if attribute.get("version") is not None:
        return _version(attribute["version"])
    message = "unsupported attribute value"
    raise CelRuntimeError(message)


def _qualified(name: str, driver: str) -> tuple[str, str]:
    domain, slash, identifier = name.partition("/")
    return (domain, identifier) if slash else (driver, name)


class CelDevice:
    """The values of the variable ``device``.

    Attributes:
        attributes: domain -> id -> value.
        capacity: domain -> id -> Quantity.
        as_map: all fields by their API name, for expressions that use the device as a value.
    """

    __slots__ = ("allow_multiple_allocations", "as_map", "attributes", "capacity", "driver")

    def __init__(
        self,
        driver: str,
        attributes: DomainMap,
        capacity: DomainMap,
        *,
        allow_multiple_allocations: bool,
    ) -> None:
        self.driver = driver
        self.attributes = attributes
        self.capacity = capacity
        self.allow_multiple_allocations = allow_multiple_allocations
        self.as_map = {
            "driver": driver,
            "allowMultipleAllocations": allow_multiple_allocations,
            "attributes": attributes,
            "capacity": capacity,
        }

    @classmethod
    def from_api(cls, driver: str, device: Mapping[str, Any], *, lists: bool = True) -> CelDevice:
        """A device of a ResourceSlice.

        Args:
            driver: the slice's driver, the domain of names without one.
            device: a v1 Device: ``attributes``, ``capacity``, ``allowMultipleAllocations``.
            lists: see `attribute_value`.

        Raises:
            CelRuntimeError: an attribute has no usable value, which fails every expression.
        """
        attributes = DomainMap()
        for name, attribute in sorted((device.get("attributes") or {}).items()):
            try:
                value = attribute_value(attribute, lists=lists)
            except CelRuntimeError as error:
                message = f"attribute {name}: {error}"
                raise CelRuntimeError(message) from None
            domain, identifier = _qualified(name, driver)
            attributes.setdefault(domain, {})[identifier] = value
        capacity = DomainMap()
        for name, item in sorted((device.get("capacity") or {}).items()):
            domain, identifier = _qualified(name, driver)
            try:
                quantity = as_quantity(item.get("value"))
            except QuantityError as error:
                message = f"capacity {name}: {error}"
                raise CelRuntimeError(message) from None
            capacity.setdefault(domain, {})[identifier] = quantity
        return cls(
            driver,
            attributes,
            capacity,
            allow_multiple_allocations=bool(device.get("allowMultipleAllocations")),
        )
