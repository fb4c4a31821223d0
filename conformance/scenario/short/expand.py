"""A scenario as it was written -> in full: named manifests, ``like`` and ``forEach`` carried out.

All that comes after (model, lint, engine, reports, digests) knows only the full form. Problems in
it are reported where they are in what the author wrote.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from conformance.scenario.documents.validate import InvalidDocumentError, hint
from conformance.scenario.documents.yamlfile import MAX_VALUES, Document, Problem
from conformance.scenario.registry import ManifestSet, load_manifests, load_registry
from conformance.scenario.short.foreach import (
    Node,
    Repeater,
    RepeatError,
    document,
    made,
    merged,
    pruned,
    values_in,
    written,
)
from reference_allocator.api import schema

_ALL: Final = "*"
_ENHANCEMENT: Final = "https://kep.k8s.io/"
PLACES: Final = (
    ("spec", "steps", _ALL, "apply", _ALL),
    ("spec", "steps", _ALL, "churn", "objects", _ALL),
    ("spec", "steps", _ALL, "update", "object"),
    ("spec", "steps", _ALL, "serverSideApply", "object"),
    ("spec", "steps", _ALL, "expect", _ALL, "rejected", "object"),
    ("spec", "steps", _ALL, "expect", _ALL, "rejected", "update", "object"),
    ("spec", "steps", _ALL, "expect", _ALL, "rejected", "serverSideApply", "object"),
)
"""Where manifests may be in short."""


def expanded(source: Document) -> Document:
    """The document in full. Raises InvalidDocumentError: something in it cannot be carried out."""
    try:
        node = Repeater().repeat(written(source.data), {})
    except RepeatError as error:
        raise InvalidDocumentError([source.tell(error.problem)]) from None
    spec = node.get("spec")
    tier = spec.get("tier") if spec is not None else None
    short = _Short(tier.value if tier is not None else None)
    if spec is not None and spec.get("references") is not None:
        node = node.with_(spec=_with_enhancement(spec))
    for place in PLACES:
        node = _changed(node, place, short.full)
    if short.problems:
        raise InvalidDocumentError([source.tell(problem) for problem in short.problems])
    return document(node, source)


def _with_enhancement(spec: Node) -> Node:
    """A spec whose references name an enhancement: that of its feature, if it names none."""
    feature, references = spec.get("feature"), spec.value["references"]
    known = load_registry().features.get(str(feature.value)) if feature is not None else None
    if known is None or not isinstance(references.value, list):
        return spec
    if any(str(item.value).startswith(_ENHANCEMENT) for item in references.value):
        return spec
    named = made(known.kep, references.origin)
    return spec.with_(references=Node([*references.value, named], references.origin))


def _changed(node: Node, place: tuple[str, ...], change: Callable[[Node], Node]) -> Node:
    """A value with a change to all that is at a place in it."""
    if not place:
        return change(node)
    key, *rest = place
    if key == _ALL and isinstance(node.value, list):
        items = [_changed(item, tuple(rest), change) for item in node.value]
        return Node(items, node.origin)
    item = node.get(key)
    return node if item is None else node.with_(**{key: _changed(item, tuple(rest), change)})


class _Short:
    """Carries out the short manifests of one scenario, in their order."""

    def __init__(self, tier: Any) -> None:
        self.problems: list[Problem] = []
        self._set = load_manifests()
        self._completion = Completion(self._set, tier)
        self._earlier: dict[tuple[str, str], Node] = {}
        self._values = 0

    def full(self, node: Node) -> Node:
        """A manifest in full; one that is written so stays as it is."""
        names = self._set.manifests
        if not isinstance(node.value, dict) or "kind" in node.value or not node.value:
            return node
        key = next((key for key in node.value if key in names), None)
        if key is None:
            if "apiVersion" not in node.value:
                first = next(iter(node.value))
                text = f"begins with {first!r}: write apiVersion and kind, or in short"
                self._wrong(node, f"{text} {', '.join(names)}; {hint(first, names)}")
            return node
        name = node.value[key]
        if not isinstance(name.value, str):
            self._wrong(name, f"must be the name of the {key}")
            return node
        if self._values > MAX_VALUES:
            return node
        node = self._alike(node, key)
        self._values += values_in(node)
        if self._values > MAX_VALUES:
            self._wrong(node, f"more than {MAX_VALUES} values in all, with what `like` takes over")
            return node
        self._earlier[key, name.value] = node
        return self._manifest(node, key, name)

    def _wrong(self, node: Node, text: str) -> None:
        self.problems.append(Problem(node.origin, text))

    def _alike(self, node: Node, key: str) -> Node:
        """With ``like`` all that the earlier one said, changed by what this one says."""
        like = node.get("like")
        if like is None:
            return node
        rest = Node(
            {name: item for name, item in node.value.items() if name != "like"}, node.origin
        )
        known = [name for kind, name in self._earlier if kind == key]
        if like.value not in known:
            says = hint(str(like.value), known)
            self._wrong(like, f"no {key} {like.value!r} is written in short before this; {says}")
            return rest
        return merged(self._earlier[key, like.value], rest)

    def _manifest(self, node: Node, key: str, name: Node) -> Node:
        named = self._set.manifests[key]
        fields = dict(node.value)
        del fields[key]
        top = {field: fields.pop(field) for field in ("apiVersion", "metadata") if field in fields}
        body = Node(fields, node.origin)
        for part in reversed(named.fields.split(".") if fields else ()):
            body = Node({part: body}, node.origin)
        found = merged(made(named.manifest, node.origin), merged(body, Node(top, node.origin)))
        called = Node({"name": name}, name.origin)
        metadata = found.get("metadata")
        first = {
            "apiVersion": found.value["apiVersion"],
            "kind": found.value["kind"],
            "metadata": called if metadata is None else merged(called, metadata),
        }
        found = Node(
            {**first, **{k: v for k, v in found.value.items() if k not in first}}, name.origin
        )
        shape = schema.root_of(str(first["kind"].value), str(first["apiVersion"].value))
        return pruned(found if shape is None else self._completion.complete(found, shape))


_TEXTS: Final[dict[str, tuple[str, ...]]] = {
    "Container": ("name",),
    "Counter": ("value",),
    "Device": ("name",),
    "DeviceCapacity": ("value",),
    "DeviceRequest": ("name",),
    "DeviceSelector": ("cel", "expression"),
}
"""Type of the API -> the field for which a text stands."""

_AFFINITY: Final = (
    *("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"),
    "nodeSelectorTerms",
)
"""Fields of a pod above the terms by one of which it chooses its node."""

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
        node = merged(made(self._pods, node.origin), _placed(node))
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


def _placed(pod: Node) -> Node:
    """``on: NODE``, by the node's name: a label of its name need not be the same."""
    place = pod.get("on")
    if place is None:
        return pod
    rest = Node({key: item for key, item in pod.value.items() if key != "on"}, pod.origin)
    if place.value is None:
        return rest
    named = made({"key": "metadata.name", "operator": "In"}, place.origin)
    field = named.with_(values=Node([place], place.origin))
    node = Node([Node({"matchFields": Node([field], place.origin)}, place.origin)], place.origin)
    for key in reversed(_AFFINITY):
        node = Node({key: node}, place.origin)
    return merged(node, rest)


def _slice(node: Node, _: str) -> Node:
    pool, name = node.get("pool"), node.get("nodeName")
    if pool is None or name is None or pool.get("name") is not None:
        return node
    return node.with_(pool=merged(Node({"name": name}, name.origin), pool))
