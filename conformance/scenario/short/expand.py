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
    count_values,
    make_document,
    merge_nodes,
    prune_nulls,
    wrap_added,
    wrap_written,
)
from reference_allocator.api import schema

_ALL: Final = "*"
_ENHANCEMENT: Final = "https://kep.k8s.io/"
MANIFEST_PATHS: Final = (
    ("spec", "steps", _ALL, "apply", _ALL),
    ("spec", "steps", _ALL, "churn", "objects", _ALL),
    ("spec", "steps", _ALL, "update", "object"),
    ("spec", "steps", _ALL, "serverSideApply", "object"),
    ("spec", "steps", _ALL, "expect", _ALL, "rejected", "object"),
    ("spec", "steps", _ALL, "expect", _ALL, "rejected", "update", "object"),
    ("spec", "steps", _ALL, "expect", _ALL, "rejected", "serverSideApply", "object"),
)
"""Where manifests may be in short."""


def expand_document(source: Document) -> Document:
    """Return the document in full. Raises InvalidDocumentError if it cannot be carried out."""
    try:
        node = Repeater().repeat(wrap_written(source.data), {})
    except RepeatError as error:
        raise InvalidDocumentError([source.tell(error.problem)]) from None
    spec = node.get("spec")
    tier = spec.get("tier") if spec is not None else None
    short = _ShortManifests(tier.value if tier is not None else None)
    if spec is not None and spec.get("references") is not None:
        node = node.with_(spec=_add_enhancement(spec))
    for path in MANIFEST_PATHS:
        node = _change_at(node, path, short.complete_manifest)
    if short.problems:
        raise InvalidDocumentError([source.tell(problem) for problem in short.problems])
    return make_document(node, source)


def _add_enhancement(spec: Node) -> Node:
    """Return a spec whose references name an enhancement: its feature's, if they name none."""
    feature, references = spec.get("feature"), spec.value["references"]
    registered_feature = (
        load_registry().features.get(str(feature.value)) if feature is not None else None
    )
    if registered_feature is None or not isinstance(references.value, list):
        return spec
    if any(str(item.value).startswith(_ENHANCEMENT) for item in references.value):
        return spec
    named = wrap_added(registered_feature.kep, references.origin)
    return spec.with_(references=Node([*references.value, named], references.origin))


def _change_at(node: Node, path: tuple[str, ...], change: Callable[[Node], Node]) -> Node:
    """Change all that is at a path in a value."""
    if not path:
        return change(node)
    key, *inner_path = path
    if key == _ALL and isinstance(node.value, list):
        items = [_change_at(item, tuple(inner_path), change) for item in node.value]
        return Node(items, node.origin)
    item = node.get(key)
    return (
        node if item is None else node.with_(**{key: _change_at(item, tuple(inner_path), change)})
    )


class _ShortManifests:
    """Carries out the short manifests of one scenario, in their order."""

    def __init__(self, tier: Any) -> None:
        self.problems: list[Problem] = []
        self._manifests = load_manifests()
        self._completion = Completion(self._manifests, tier)
        self._earlier: dict[tuple[str, str], Node] = {}
        self._values = 0

    def complete_manifest(self, node: Node) -> Node:
        """Return a manifest in full; one that is written so stays as it is."""
        names = self._manifests.manifests
        if not isinstance(node.value, dict) or "kind" in node.value or not node.value:
            return node
        key = next((key for key in node.value if key in names), None)
        if key is None:
            if "apiVersion" not in node.value:
                first = next(iter(node.value))
                text = f"begins with {first!r}: write apiVersion and kind, or in short"
                self._add_problem(node, f"{text} {', '.join(names)}; {hint(first, names)}")
            return node
        name = node.value[key]
        if not isinstance(name.value, str):
            self._add_problem(name, f"must be the name of the {key}")
            return node
        if self._values > MAX_VALUES:
            return node
        node = self._apply_like(node, key)
        self._values += count_values(node)
        if self._values > MAX_VALUES:
            self._add_problem(
                node, f"more than {MAX_VALUES} values in all, with what `like` takes over"
            )
            return node
        self._earlier[key, name.value] = node
        return self._expand_manifest(node, key, name)

    def _add_problem(self, node: Node, text: str) -> None:
        self.problems.append(Problem(node.origin, text))

    def _apply_like(self, node: Node, key: str) -> Node:
        """Apply ``like``: return what the earlier manifest says, changed by what this one says."""
        like = node.get("like")
        if like is None:
            return node
        changes = Node(
            {name: item for name, item in node.value.items() if name != "like"}, node.origin
        )
        earlier_names = [name for kind, name in self._earlier if kind == key]
        if like.value not in earlier_names:
            says = hint(str(like.value), earlier_names)
            self._add_problem(
                like, f"no {key} {like.value!r} is written in short before this; {says}"
            )
            return changes
        return merge_nodes(self._earlier[key, like.value], changes)

    def _expand_manifest(self, node: Node, key: str, name: Node) -> Node:
        named = self._manifests.manifests[key]
        fields = dict(node.value)
        del fields[key]
        top = {field: fields.pop(field) for field in ("apiVersion", "metadata") if field in fields}
        body = Node(fields, node.origin)
        for field_name in reversed(named.fields.split(".") if fields else ()):
            body = Node({field_name: body}, node.origin)
        manifest = merge_nodes(
            wrap_added(named.manifest, node.origin), merge_nodes(body, Node(top, node.origin))
        )
        called = Node({"name": name}, name.origin)
        metadata = manifest.get("metadata")
        first = {
            "apiVersion": manifest.value["apiVersion"],
            "kind": manifest.value["kind"],
            "metadata": called if metadata is None else merge_nodes(called, metadata),
        }
        manifest = Node(
            {**first, **{k: v for k, v in manifest.value.items() if k not in first}}, name.origin
        )
        shape = schema.root_of(str(first["kind"].value), str(first["apiVersion"].value))
        return prune_nulls(
            manifest if shape is None else self._completion.complete(manifest, shape)
        )


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
        self._manifests = manifests
        self._pods = {str(key): value for key, value in manifests.pods.items()}.get(str(tier), {})
        self._by_type: dict[str, Callable[[Node, str], Node]] = {
            "Container": self._complete_container,
            "DeviceRequest": self._complete_request,
            "PodSpec": self._complete_pod,
            "ResourceSliceSpec": _complete_slice,
        }

    def complete(self, node: Node, shape: str) -> Node:
        """Add all that a value of a shape (`reference_allocator.api.schema`) leaves out."""
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
                    named = wrap_added(self._manifests.device_class, node.origin)
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
        return self._complete_scalar(node, name, shape)

    def _complete_scalar(self, node: Node, name: str, shape: str) -> Node:
        if name == "DeviceAttribute" and type(node.value) in _ATTRIBUTES:
            return Node({_ATTRIBUTES[type(node.value)]: node}, node.origin)
        if name not in _TEXTS or isinstance(node.value, bool | None):
            return node
        for field in reversed(_TEXTS[name]):
            node = Node({field: node}, node.origin)
        return self.complete(node, shape)

    def _complete_container(self, node: Node, _: str) -> Node:
        filled = merge_nodes(wrap_added(self._manifests.containers, node.origin), node)
        first = {"name": node.value["name"]} if "name" in node.value else {}
        return Node({**first, **filled.value}, node.origin)

    def _complete_request(self, node: Node, shape: str) -> Node:
        nested = "exactly" in schema.types()[shape]
        if nested and not node.value.keys() & {"exactly", "firstAvailable"}:
            return node.with_(exactly=Node({}, node.origin))
        return node

    def _complete_pod(self, node: Node, _: str) -> Node:
        """Give all claims to containers that do not say which they use."""
        node = merge_nodes(wrap_added(self._pods, node.origin), _expand_on(node))
        claims = node.get("resourceClaims")
        if claims is None or not isinstance(claims.value, list):
            return node
        names = [name for item in claims.value if (name := item.get("name")) is not None]
        used = Node([Node({"name": name}, name.origin) for name in names], claims.origin)
        resources = Node({"resources": Node({"claims": used}, claims.origin)}, claims.origin)
        for group in ("containers", "initContainers"):
            listed = node.get(group)
            if listed is not None and isinstance(listed.value, list):
                items = [_add_resources(resources, item) for item in listed.value]
                node = node.with_(**{group: Node(items, listed.origin)})
        return node


def _add_resources(resources: Node, container: Node) -> Node:
    """Return a container with the resources that it does not say itself; null is none."""
    if isinstance(container.value, str):
        container = Node({"name": container}, container.origin)
    if not isinstance(container.value, dict) or "resources" in container.value:
        return container
    return merge_nodes(resources, container)


def _expand_on(pod: Node) -> Node:
    """Expand ``on: NODE`` by the node's name: a label of its name need not be the same."""
    node_name = pod.get("on")
    if node_name is None:
        return pod
    other_fields = Node({key: item for key, item in pod.value.items() if key != "on"}, pod.origin)
    if node_name.value is None:
        return other_fields
    named = wrap_added({"key": "metadata.name", "operator": "In"}, node_name.origin)
    field = named.with_(values=Node([node_name], node_name.origin))
    node = Node(
        [Node({"matchFields": Node([field], node_name.origin)}, node_name.origin)], node_name.origin
    )
    for key in reversed(_AFFINITY):
        node = Node({key: node}, node_name.origin)
    return merge_nodes(node, other_fields)


def _complete_slice(node: Node, _: str) -> Node:
    pool, name = node.get("pool"), node.get("nodeName")
    if pool is None or name is None or pool.get("name") is not None:
        return node
    return node.with_(pool=merge_nodes(Node({"name": name}, name.origin), pool))
