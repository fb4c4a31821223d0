"""Code for what selectors are mostly made of: attributes and capacity that they name.

``device.attributes["gpu.example.com"].model`` with a constant domain is one look-up by name,
without the maps by domain (`CelDevice.values`). A ``cel.bind`` of such a domain is another name for
it. All other uses get the maps.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from reference_allocator.cel.ast import Call, Ident, Literal, Node, Select
from reference_allocator.cel.codegen.emitter import Emitter
from reference_allocator.cel.runtime.maps import MISSING
from reference_allocator.cel.runtime.values import Optional

_NAMED: Final = {"attributes": "values", "capacity": "amounts"}


def foreign(values: Mapping[str, Any], name: str, identifier: str) -> Any:
    """What a device has in another domain than its driver's; a KeyError only tells the id."""
    value = values.get(name, MISSING)
    if value is MISSING:
        raise KeyError(identifier)
    return value


@dataclass(frozen=True, slots=True)
class Lookup:
    """Code for one value that a device may have.

    Attributes:
        values: code for the values by name.
        own: local name that says whether the domain is the driver's own.
        domain: constant.
        key: constant.
    """

    values: str
    own: str
    domain: str
    key: str

    @property
    def value(self) -> str:
        """The value; a KeyError where there is none."""
        name = f"{self.domain}/{self.key}"
        own = f"{self.values}[{self.key!r}]"
        return f"({own} if {self.own} else foreign({self.values}, {name!r}, {self.key!r}))"

    @property
    def found(self) -> str:
        """The value, or MISSING."""
        name = f"{self.domain}/{self.key}"
        return f"{self.values}.get({self.key!r} if {self.own} else {name!r}, MISSING)"

    @property
    def present(self) -> str:
        """Whether there is a value."""
        name = f"{self.domain}/{self.key}"
        return f"(({self.key!r} if {self.own} else {name!r}) in {self.values})"


class DeviceEmitter(Emitter):
    """Knows the maps of the device and which variables stand for one of their domains.

    Attributes:
        owned: domain -> local name that says whether it is the driver's own.
    """

    def __init__(self, *, device: bool) -> None:
        super().__init__(device=device)
        self.globals |= {"Optional": Optional, "foreign": foreign}
        self.owned: dict[str, str] = {}
        self._domains: dict[str, tuple[str, str]] = {}

    def local(self, node: Ident) -> str:
        """The Python name of a variable of a fold or a binding."""
        for names in reversed(self.locals):
            if node.name in names:
                return names[node.name]
        raise AssertionError(node.name)

    def domain(self, node: Node) -> tuple[str, str] | None:
        """The map and the domain if the node is, for example, ``device.attributes["a.io"]``."""
        if isinstance(node, Ident) and node.local:
            return self._domains.get(self.local(node))
        if not (self.device and isinstance(node, Call) and node.function == "_[_]"):
            return None
        maps, key = node.args
        if not (isinstance(maps, Select) and maps.field in _NAMED and not maps.test_only):
            return None
        root = maps.operand
        if maps.constant is not None or not isinstance(root, Ident):
            return None
        if root.local or root.constant is not None:
            return None
        if not isinstance(key, Literal) or key.value.__class__ is not str or "/" in key.value:
            return None
        return maps.field, key.value

    def named(self, container: Node, key: str) -> Lookup | None:
        """Code for a key of the container, if that is a `domain`."""
        found = None if "/" in key else self.domain(container)
        if found is None:
            return None
        field, domain = found
        own = self.owned.setdefault(domain, f"own{len(self.owned)}")
        return Lookup(f"device.{_NAMED[field]}", own, domain, key)

    def named_by(self, container: Node, key: Node) -> Lookup | None:
        """`named`, where the key is a constant text."""
        if isinstance(key, Literal) and key.value.__class__ is str:
            return self.named(container, key.value)
        return None

    def domain_map(self, name: str) -> str | None:
        """Code for the whole map of a domain that a variable stands for."""
        found = self._domains.get(name)
        return None if found is None else f"device.{found[0]}[{found[1]!r}]"

    def binding(self, name: str, value: Node) -> dict[str, str] | None:
        """The scope of a binding that needs no code, as its value is a `domain`."""
        found = self.domain(value)
        if found is None:
            return None
        local = self.name("x")
        self._domains[local] = found
        return {name: local}
