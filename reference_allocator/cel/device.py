"""A device as selectors see it, converted once and then evaluated many times.

Selectors mostly name single attributes, so values are kept by name; the maps by domain are made for
those that use them as maps. Source of the rules:
``k8s.io/dynamic-resource-allocation/cel/compile.go``, ``DeviceMatches``.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from reference_allocator.api.quantity import Quantity, QuantityError, as_quantity
from reference_allocator.api.semver import Semver, SemverError, parse_semver
from reference_allocator.cel.errors import CelRuntimeError
from reference_allocator.cel.runtime.maps import DomainMap, StringMap

_SCALARS: Final = frozenset({"bool", "int", "string"})
_NOTHING: Final[Mapping[str, Any]] = {}


def _version(text: str) -> Semver:
    try:
        return parse_semver(text)
    except SemverError as error:
        raise CelRuntimeError(f"parse semantic version: {error}") from None


def attribute_value(attribute: Mapping[str, Any], *, lists: bool = True) -> Any:
    """The CEL value of a DeviceAttribute of the v1 API.

    Lists come before single values; within each, int, bool, string, version.

    Args:
        attribute: with the one value that is set.
        lists: lists are known; before 1.36, and in 1.36 without DRAListTypeAttributes, they are not
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
    raise CelRuntimeError("unsupported attribute value")


@lru_cache(maxsize=4096)
def _quantity_of(text: str) -> Quantity:
    return as_quantity(text)


def _key(name: str, driver: str, published: Mapping[str, Any]) -> str | None:
    """The key of a name with a domain; None if the same thing is published without it too.

    Of two such spellings Go takes either; ours is the short one.
    """
    domain, _, identifier = name.partition("/")
    if domain != driver or "/" in identifier:
        return name
    return None if identifier in published else identifier


def _values(driver: str, attributes: Mapping[str, Any], lists: bool) -> dict[str, Any]:
    """The attributes by key; a ValueError or CelRuntimeError where that is not straightforward."""
    values = dict(attributes)  # a copy, because replacing is faster than adding
    for name, attribute in attributes.items():
        (kind,) = attribute
        value = values[name] = attribute[kind]
        if value is None or kind not in _SCALARS:
            if kind == "version" and value.__class__ is str:
                values[name] = parse_semver(value)
            else:
                values[name] = attribute_value(attribute, lists=lists)
        if "/" in name and (key := _key(name, driver, attributes)) != name:
            value = values.pop(name)
            if key is not None:
                values[key] = value
    return values


def _values_in_order(driver: str, attributes: Mapping[str, Any], lists: bool) -> dict[str, Any]:
    """The attributes by key, or the error of the first in the order of names that has one."""
    values: dict[str, Any] = {}
    for name, attribute in sorted(attributes.items()):
        try:
            value = attribute_value(attribute, lists=lists)
        except CelRuntimeError as error:
            raise CelRuntimeError(f"attribute {name}: {error}") from None
        key = _key(name, driver, attributes) if "/" in name else name
        if key is not None:
            values[key] = value
    return values


def _amounts(driver: str, capacity: Mapping[str, Any]) -> dict[str, Quantity]:
    """The capacity by key, or the error of the first in the order of names that has one."""
    amounts: dict[str, Quantity] = {}
    for name, item in sorted(capacity.items()) if len(capacity) > 1 else capacity.items():
        value = item.get("value")
        try:
            quantity = _quantity_of(value) if value.__class__ is str else as_quantity(value)
        except QuantityError as error:
            raise CelRuntimeError(f"capacity {name}: {error}") from None
        key = _key(name, driver, capacity) if "/" in name else name
        if key is not None:
            amounts[key] = quantity
    return amounts


def _by_domain(named: Mapping[str, Any], driver: str) -> DomainMap:
    result = DomainMap()
    for name in sorted(named):
        domain, slash, identifier = name.partition("/")
        if not slash:
            domain, identifier = driver, name
        result.setdefault(domain, StringMap())[identifier] = named[name]
    return result


class CelDevice:
    """The values of the variable ``device``.

    Attributes:
        values: attributes by name: ``id`` in the driver's own domain, else ``domain/id``.
        amounts: capacity, as Quantity, by names of the same form.
        attributes: domain -> id -> value.
        capacity: domain -> id -> Quantity.
        as_map: all fields by their API name, for expressions that use the device as a value.
    """

    __slots__ = (
        "allow_multiple_allocations",
        "amounts",
        "as_map",
        "attributes",
        "capacity",
        "driver",
        "values",
    )

    as_map: dict[str, Any]
    attributes: DomainMap
    capacity: DomainMap

    def __init__(
        self,
        driver: str,
        values: dict[str, Any],
        amounts: dict[str, Quantity],
        allow_multiple_allocations: bool,
    ) -> None:
        self.driver = driver
        self.values = values
        self.amounts = amounts
        self.allow_multiple_allocations = allow_multiple_allocations

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
        attributes = device.get("attributes") or _NOTHING
        try:
            values = _values(driver, attributes, lists)
        except (CelRuntimeError, ValueError):  # also several fields, which is not an error
            values = _values_in_order(driver, attributes, lists)
        capacity = device.get("capacity") or _NOTHING
        amounts = _amounts(driver, capacity) if capacity else {}
        return cls(driver, values, amounts, bool(device.get("allowMultipleAllocations")))

    def __getattr__(self, name: str) -> Any:
        """The maps, made when first used and then kept in the slot."""
        if name == "as_map":
            self.as_map = {
                "driver": self.driver,
                "allowMultipleAllocations": self.allow_multiple_allocations,
                "attributes": self.attributes,
                "capacity": self.capacity,
            }
            return self.as_map
        if name == "attributes":
            self.attributes = _by_domain(self.values, self.driver)
            return self.attributes
        if name == "capacity":
            self.capacity = _by_domain(self.amounts, self.driver)
            return self.capacity
        raise AttributeError(name, name=name, obj=self)
