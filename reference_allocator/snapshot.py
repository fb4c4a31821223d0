"""All that one decision depends on, at one moment, as one value and one file.

A snapshot is taken where an allocation was made (from a cluster or in-process) and can be judged
again later without a cluster: by the allocator, the checker and the explanation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from reference_allocator.api import DeviceClass, Node, ResourceClaim, ResourceSlice, reading
from reference_allocator.api.records import ReadObject, sharing_parts
from reference_allocator.features import Features

API_VERSION: Final = "dra-conformance/v1"
KIND: Final = "Snapshot"

Object = Mapping[str, Any]

_FIELDS: Final = {
    "slices": ResourceSlice.from_dict,
    "deviceClasses": DeviceClass.from_dict,
    "nodes": Node.from_dict,
    "claims": ResourceClaim.from_dict,
    "allocated": ResourceClaim.from_dict,
    "pods": reading.expect_object,
    "templates": reading.expect_object,
}
"""List of the document -> reader of its objects, in the order of `Snapshot`'s fields."""

_UNIQUE_WITHIN: Final = (
    *((key,) for key in _FIELDS if key not in ("claims", "allocated")),
    ("claims", "allocated"),
)
"""Groups of lists whose objects are of one kind; a group has each object once."""

_OPTIONAL: Final = ("pods", "templates")

_KEPT: Final = (ResourceSlice, DeviceClass, ResourceClaim)
"""What is read from these takes long, and stays with them."""


@dataclass(frozen=True)
class Snapshot:
    """Kubernetes objects and features that an allocation is decided on.

    All objects are v1 JSON objects, defaulted, as an API server stores them.

    Attributes:
        kubernetes: the version, for example "1.37.1".
        features: what the scheduler may use.
        slices: ResourceSlices, with DeviceTaintRules already applied.
        device_classes: DeviceClasses.
        nodes: Nodes, in the order in which they are tried.
        claims: ResourceClaims to allocate: together, for one pod, unless `pods` says for which.
        allocated: other ResourceClaims; those with `status.allocation` say what is in use.
        pods: the Pods of a whole cluster that have or want claims, reduced; none if not known.
        templates: its ResourceClaimTemplates.
    """

    kubernetes: str
    features: Features
    slices: tuple[Object, ...] = ()
    device_classes: tuple[Object, ...] = ()
    nodes: tuple[Object, ...] = ()
    claims: tuple[Object, ...] = ()
    allocated: tuple[Object, ...] = ()
    pods: tuple[Object, ...] = ()
    templates: tuple[Object, ...] = ()

    @classmethod
    def from_dict(cls, value: object) -> Snapshot:
        """Read a snapshot document and check every object in it.

        Raises InputError: the value is no snapshot, or an object in it has not the form of its
        kind; names the path.
        """
        return cls._read(value, list)

    @classmethod
    def take_dict(cls, value: object) -> Snapshot:
        """Read a document as `from_dict` does, and empty its lists meanwhile.

        What is read and what it was read from are not both there: a large cluster's are 100 MB.
        """
        return cls._read(value, _take_items)

    @classmethod
    def _read(cls, value: object, list_objects: Callable[[list[Any]], Iterable[Any]]) -> Snapshot:
        source = reading.expect_object(value)
        reading.refuse_unknown_keys(
            source, ("apiVersion", "kind", "kubernetes", "features", *_FIELDS)
        )
        for key, expected in (("apiVersion", API_VERSION), ("kind", KIND)):
            if key not in source:
                raise reading.InputError(f"is missing; expected {expected!r}", key)
            if source[key] != expected:
                raise reading.InputError(f"expected {expected!r}, got {source[key]!r}", key)
        with sharing_parts():
            objects = {
                key: _read_objects(source, key, _checking_reader(parse), list_objects)
                for key, parse in _FIELDS.items()
            }
        for keys in _UNIQUE_WITHIN:
            _refuse_twice(objects, keys)
        features = reading.read_child(source, "features", Features.from_dict)
        version = reading.read_string(source, "kubernetes")
        if features is None:
            try:
                features = Features.for_version(version)
            except ValueError as error:
                raise reading.InputError(str(error), "kubernetes") from None
        return cls(version, features, *objects.values())

    def to_dict(self) -> dict[str, Any]:
        """Return the document that `from_dict` reads; objects are shared, not copied."""
        optional = {name: list(getattr(self, name)) for name in _OPTIONAL if getattr(self, name)}
        return {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "kubernetes": self.kubernetes,
            "features": self.features.to_dict(),
            "slices": list(self.slices),
            "deviceClasses": list(self.device_classes),
            "nodes": list(self.nodes),
            "claims": list(self.claims),
            "allocated": list(self.allocated),
            **optional,
        }


def _read_objects(
    source: Object,
    key: str,
    parse: Callable[[object], Object],
    list_objects: Callable[[list[Any]], Iterable[Any]],
) -> tuple[Object, ...]:
    objects = source.get(key)
    if isinstance(objects, list):
        return tuple(reading.read_all(list_objects(objects), parse, key))
    return reading.read_items(source, key, parse)


def _take_items(items: list[Any]) -> Iterator[Any]:
    items.reverse()
    while items:
        yield items.pop()


def _checking_reader(parse: Any) -> Any:
    """Return a reader that checks the form of an object and keeps the object."""

    def read(value: object) -> Object:
        record = parse(value)
        obj = reading.expect_object(value)
        if isinstance(obj, ReadObject) or not isinstance(record, _KEPT):
            return obj
        return ReadObject(obj, record)

    return read


def _refuse_twice(objects: Mapping[str, Sequence[Object]], keys: Sequence[str]) -> None:
    """Raise InputError if an object is there twice: one reader would see the first, one the last.

    Objects without a name, as problems for the allocator alone have them, are all different.
    """
    names_read: set[tuple[str, str]] = set()
    for key in keys:
        for index, item in enumerate(objects[key]):
            metadata = item.get("metadata") or {}
            name = str(metadata.get("namespace") or ""), str(metadata.get("name") or "")
            if name in names_read:
                raise reading.InputError(
                    f"{'/'.join(filter(None, name))} is there twice", key, index
                )
            if name[1]:
                names_read.add(name)
