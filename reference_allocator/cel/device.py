"""A device as selectors see it, converted once and then evaluated many times.

Source of the rules: ``k8s.io/dynamic-resource-allocation/cel/compile.go``, ``DeviceMatches``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from reference_allocator.api.quantity import Quantity, QuantityError, as_quantity
from reference_allocator.api.semver import Semver, SemverError, parse_semver
from reference_allocator.cel.errors import CelRuntimeError
from reference_allocator.cel.runtime.maps import DomainMap, StringMap, Unreadable


def _parse_version(text: str) -> Semver:
    try:
        return parse_semver(text)
    except SemverError as error:
        raise CelRuntimeError(f"parse semantic version: {error}") from None


def attribute_value(attribute: Mapping[str, Any], *, lists: bool = True) -> Any:
    """Return the CEL value of a DeviceAttribute of the v1 API.

    Lists come before single values; within each, int, bool, string, version.

    Args:
        attribute: a v1 DeviceAttribute, of which one value should be set.
        lists: whether lists are values; before 1.36, and in 1.36 without DRAListTypeAttributes,
            they are not.

    Raises CelRuntimeError: no value is set, or a version does not parse.
    """
    if lists:
        for name in ("ints", "bools", "strings"):
            if attribute.get(name) is not None:
                return list(attribute[name])
        if attribute.get("versions") is not None:
            return [_parse_version(text) for text in attribute["versions"]]
    for name in ("int", "bool", "string"):
        if attribute.get(name) is not None:
            return attribute[name]
    if attribute.get("version") is not None:
        return _parse_version(attribute["version"])
    raise CelRuntimeError("unsupported attribute value")


def attribute_value_when_asked(attribute: Mapping[str, Any]) -> Any:
    """Return the CEL value of a DeviceAttribute, as 1.38 and later have it.

    Single values come before lists, and an empty list is no value.

    Raises CelRuntimeError: no value is set, or a version does not parse.
    """
    for name in ("int", "bool", "string"):
        if attribute.get(name) is not None:
            return attribute[name]
    if attribute.get("version") is not None:
        return _parse_version(attribute["version"])
    return attribute_value({name: items for name, items in attribute.items() if items})


def _capacity_value(item: Mapping[str, Any]) -> Quantity:
    return as_quantity(item.get("value"))


def _capacity_value_since_1_38(item: Mapping[str, Any]) -> Quantity:
    return _capacity_value(item).as_since_1_38()


def _group_by_domain(
    driver: str,
    named: Mapping[str, Any],
    kind: str,
    convert: Callable[[Any], Any],
    *,
    when_asked: bool,
) -> DomainMap:
    """Return domain -> id -> value.

    Raises CelRuntimeError: a name has no value, unless that matters `when_asked` for it alone;
    names the first, in order.
    """
    result = DomainMap()
    for name, item in sorted(named.items()):
        domain, slash, identifier = name.partition("/")
        try:
            value = convert(item)
        except (CelRuntimeError, QuantityError) as error:
            if not when_asked:
                raise CelRuntimeError(f"{kind} {name}: {error}") from None
            value = Unreadable(identifier if slash else name)
        if not slash:
            domain, identifier = driver, name
            if when_asked and f"{driver}/{name}" in named:
                continue  # the full spelling of a name wins
        elif when_asked:
            pass
        elif domain == driver and "/" not in identifier and identifier in named:
            continue  # of two spellings of one name Go takes either; here the short one counts
        values_by_id = result.get(domain)
        if values_by_id is None:
            values_by_id = result[domain] = StringMap()
        values_by_id[identifier] = value
    return result


@dataclass(frozen=True, slots=True, eq=False)
class CelDevice:
    """The value of the variable ``device``.

    Attributes:
        as_map: its fields by their API name: driver, allowMultipleAllocations, and attributes and
            capacity as domain -> id -> value.
    """

    as_map: dict[str, Any]

    @classmethod
    def from_api(
        cls,
        driver: str,
        device: Mapping[str, Any],
        *,
        lists: bool = True,
        when_asked: bool = False,
    ) -> CelDevice:
        """Convert a device of a ResourceSlice.

        Args:
            driver: the slice's driver, the domain of names without one.
            device: a v1 Device: ``attributes``, ``capacity``, ``allowMultipleAllocations``.
            lists: whether lists are values, as `attribute_value` takes it.
            when_asked: whether an attribute without a usable value matters only to those who ask
                for it, as since 1.38; then lists are values.

        Raises CelRuntimeError: an attribute has no usable value, which fails every expression.
        """
        value_of = (
            attribute_value_when_asked if when_asked else partial(attribute_value, lists=lists)
        )
        amount_of = _capacity_value_since_1_38 if when_asked else _capacity_value
        attributes, capacity = device.get("attributes") or {}, device.get("capacity") or {}
        return cls(
            {
                "driver": driver,
                "allowMultipleAllocations": bool(device.get("allowMultipleAllocations")),
                "attributes": _group_by_domain(
                    driver, attributes, "attribute", value_of, when_asked=when_asked
                ),
                "capacity": _group_by_domain(
                    driver, capacity, "capacity", amount_of, when_asked=when_asked
                ),
            }
        )
