"""What a manifest that is written in short leaves out, by the types of the Kubernetes API.

A text stands for the one field that everybody writes (a device for its name, a selector for its CEL
expression, a capacity for its value); what is the same in all scenarios is filled in.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from conformance.scenario.registry import ManifestSet
from conformance.scenario.short.tree import Node, made, merged
from reference_allocator.api import schema

_TEXTS: Final[dict[str, tuple[str, ...]]] = {
    "Container": ("name",),
    "Counter": ("value",),
    "Device": ("name",),
    "DeviceCapacity": ("value",),
    "DeviceRequest": ("name",),
    "DeviceSelector": ("cel", "expression"),
}
"""Type of the API -> the field for which a text stands."""

_ATTRIBUTES: Final[dict[type, str]] = {bool: "bool", int: "int", str: "string"}
"""Type of a device attribute -> its field (``resource/v1.DeviceAttribute``)."""


class Completion:
    """Completes the manifests of one scenario."""

    def __init__(self, manifests: ManifestSet, tier: Any) -> None:
        self._set = manifests
        self._pods = {str(key): value for key, value in manifests.pods.items()}.get(str(tier), {})
        self._by_type: dict[str, Callable[[Node, str], Node]] = {
            "Container": self._container,
            "DeviceRequest": self._request,
            "PodSpec": self._pod,
            "ResourceSliceSpec": _slice,
        }

    def complete(self, node: Node, shape: str) -> Node:
        """A value of a shape (`reference_allocator.api.schema`) with all that it leaves out."""
        name = shape.rpartition(".")[2]
        if isinstance(node.value, dict):
            fields = schema.types().get(shape)
            if fields is not None:
                if name in self._by_type:
                    node = self._by_type[name](node, shape)
                if "deviceClassName" in fields and not node.value.keys() & {
                    "deviceClassName",
                    "firstAvailable",
                }:
                    named = made(self._set.device_class, node.origin)
                    node = Node({"deviceClassName": named, **node.value}, node.origin)
                inner = {
                    key: self.complete(item, fields[key]) if key in fields else item
                    for key, item in node.value.items()
                }
            elif shape.startswith(schema.MAP):
                within = shape.removeprefix(schema.MAP)
                inner = {key: self.complete(item, within) for key, item in node.value.items()}
            else:
                return node
            return Node(inner, node.origin)
        if isinstance(node.value, list):
            within = shape.removeprefix(schema.LIST)
            return Node([self.complete(item, within) for item in node.value], node.origin)
        return self._scalar(node, name, shape)

    def _scalar(self, node: Node, name: str, shape: str) -> Node:
        if name == "DeviceAttribute" and type(node.value) in _ATTRIBUTES:
            return Node({_ATTRIBUTES[type(node.value)]: node}, node.origin)
        if name not in _TEXTS or isinstance(node.value, bool | None):
            return node
        for field in reversed(_TEXTS[name]):
            node = Node({field: node}, node.origin)
        return self.complete(node, shape)

    def _container(self, node: Node, _: str) -> Node:
        filled = merged(made(self._set.containers, node.origin), node)
        first = {"name": node.value["name"]} if "name" in node.value else {}
        return Node({**first, **filled.value}, node.origin)

    def _request(self, node: Node, shape: str) -> Node:
        nested = "exactly" in schema.types()[shape]
        if nested and not node.value.keys() & {"exactly", "firstAvailable"}:
            return node.with_(exactly=Node({}, node.origin))
        return node

    def _pod(self, node: Node, _: str) -> Node:
        """Containers that do not say which claims they use, use all of them."""
        node = merged(made(self._pods, node.origin), node)
        claims = node.get("resourceClaims")
        if claims is None or not isinstance(claims.value, list):
            return node
        names = [name for item in claims.value if (name := item.get("name")) is not None]
        used = Node([Node({"name": name}, name.origin) for name in names], claims.origin)
        resources = Node({"resources": Node({"claims": used}, claims.origin)}, claims.origin)
        for group in ("containers", "initContainers"):
            listed = node.get(group)
            if listed is not None and isinstance(listed.value, list):
                items = [_using(resources, item) for item in listed.value]
                node = node.with_(**{group: Node(items, listed.origin)})
        return node


def _using(resources: Node, container: Node) -> Node:
    """A container with the resources that it does not say itself; null is none."""
    if isinstance(container.value, str):
        container = Node({"name": container}, container.origin)
    if not isinstance(container.value, dict) or "resources" in container.value:
        return container
    return merged(resources, container)


def _slice(node: Node, _: str) -> Node:
    pool, name = node.get("pool"), node.get("nodeName")
    if pool is None or name is None or pool.get("name") is not None:
        return node
    return node.with_(pool=merged(Node({"name": name}, name.origin), pool))
