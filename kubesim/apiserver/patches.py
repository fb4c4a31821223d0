"""What a patch makes of an object: JSON patches, merge patches and strategic merge patches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from kube.errors import ApiError
from kube.values import Obj
from kubesim.goforms import order_fields
from kubesim.store import clone
from reference_allocator.api import schema
from reference_allocator.api.quoting import show_go

_MERGE_KEYS: Final = {
    "addresses": "type",
    "conditions": "type",
    "containers": "name",
    "env": "name",
    "ephemeralContainers": "name",
    "hostAliases": "ip",
    "imagePullSecrets": "name",
    "initContainers": "name",
    "ownerReferences": "uid",
    "ports": "containerPort",
    "reservedFor": "uid",
    "resourceClaimStatuses": "name",
    "resourceClaims": "name",
    "schedulingGates": "name",
    "topologySpreadConstraints": "topologyKey",
    "volumeDevices": "devicePath",
    "volumeMounts": "mountPath",
    "volumes": "name",
}
"""``patchMergeKey`` of the Go types: list -> the field by which its elements are merged."""

_SETS: Final = frozenset({"finalizers"})  # Lists of scalars with ``patchStrategy:"merge"``.

_ORDER, _DELETE, _RETAIN = "$setElementOrder/", "$deleteFromPrimitiveList/", "$retainKeys"


def merge(target: Any, patch: Any) -> Any:
    """Merge as RFC 7386 says: null deletes, objects merge, everything else replaces.

    What is new loses its nulls, also within lists (evanphx/json-patch).
    """
    if not isinstance(patch, dict):
        return clone(patch) if isinstance(target, dict) else _without_nulls(patch)
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge(result.get(key), value)
    return {key: result[key] for key in sorted(result)}  # as Go writes a map


def _without_nulls(value: Any) -> Any:
    if isinstance(value, _Replacement):
        return [*value]
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    if type(value) is dict:  # data of drivers that knows its text stays as it is
        return {key: _without_nulls(value[key]) for key in sorted(value) if value[key] is not None}
    return value


def as_merge_patch(live: Obj, patch: Obj) -> Obj:
    """Return the merge patch that does to an object what a strategic merge patch would.

    Follows k8s.io/apimachinery/pkg/util/strategicpatch, but that ``$setElementOrder`` is ignored.
    """
    result: Obj = {}
    directive = patch.get("$patch")
    if directive in {"delete", "replace"} or _RETAIN in patch:
        retained_fields = patch.get(_RETAIN, ())
        result = {field: None for field in live if directive or field not in retained_fields}
    for field, value in patch.items() if directive != "delete" else ():
        live_value = live.get(field)
        if field.startswith(_DELETE):
            name = field.removeprefix(_DELETE)
            live_items = result.get(name) or live.get(name) or []
            result[name] = [item for item in live_items if item not in value]
        elif field.startswith("$"):
            continue
        elif isinstance(value, list) and field in _SETS:
            result[field] = _order_merged(live_value, value) if live_value else value
        elif isinstance(value, list) and field in _MERGE_KEYS:
            if live_value:
                _check_elements(live_value, value, _MERGE_KEYS[field])
            result[field] = _merge_list(live_value or [], value, _MERGE_KEYS[field])
        elif isinstance(value, dict):
            result[field] = as_merge_patch(
                live_value if isinstance(live_value, dict) else {}, value
            )
        else:
            result[field] = _Replacement(value) if isinstance(value, list) else value
    return result


def _check_elements(live: Sequence[Any], patch: Sequence[Any], key: str) -> None:
    """Check that elements are objects with a merge key. Raises ApiError: 500."""
    if not all(isinstance(item, dict) for item in patch):
        shown = show_go([live, patch], quotes=False)
        raise ApiError(500, "", f"list element types are not identical: {shown}")
    for item in patch:
        if key not in item and "$patch" not in item:
            shown = show_go(item, quotes=False)
            raise ApiError(500, "", f"map: {shown} does not contain declared merge key: {key}")


class _Replacement(list[Any]):
    """A list of a strategic patch, which takes the place of another as it is, nulls and all."""


def _merge_list(live: Sequence[Obj], patch: Sequence[Obj], key: str) -> list[Obj]:
    if not live or any(item.get("$patch") == "replace" for item in patch):
        return [item for item in patch if "$patch" not in item]
    merged = {item.get(key): item for item in live}
    for item in patch:
        if item.get("$patch") == "delete":
            merged.pop(item.get(key), None)
        else:
            live_item = merged.get(item.get(key), {})
            merged[item.get(key)] = merge(live_item, as_merge_patch(live_item, item))
    keys = _order_merged(*([item.get(key) for item in items] for items in (live, patch)))
    return [merged[name] for name in keys if name in merged]


def _order_merged(live: Sequence[Any], patch: Sequence[Any]) -> list[Any]:
    """Return what is in either of two lists, the patch's in its order (``mergeSortedSlice``).

    Before one of them stand those of the live list alone that stand there before it; one that is
    new has none before it.
    """
    patched = [*dict.fromkeys(patch)]
    waiting = [item for item in dict.fromkeys(live) if item not in patched]
    order: list[Any] = []
    for item in patched:
        while waiting and item in live and live.index(waiting[0]) < live.index(item):
            order.append(waiting.pop(0))
        order.append(item)
    return order + waiting


def make_change(
    verb: str, body: Any, decode: Callable[[Obj], Obj] | None = None
) -> Callable[[Obj], Obj]:
    """Return the change that an update, a merge patch or (a list) a JSON patch makes of an object.

    ``decode`` reads what a patch made of it. An update without a resourceVersion is one of whatever
    there is. The change raises:
        ApiError: 422, a path of a JSON patch is not there or its test failed.
    """

    def change(obj: Obj) -> Obj:
        if verb == "update":
            sent: Obj = clone(body)
            return sent
        changed: Obj = _apply_json_patch(obj, body) if isinstance(body, list) else merge(obj, body)
        return changed if decode is None else decode(changed)

    return change


def _apply_json_patch(obj: Obj, operations: Sequence[Obj]) -> Obj:
    """Apply a JSON patch (RFC 6902)."""
    root = schema.roots()[f"{obj['apiVersion']}/{obj['kind']}"]
    changed: Obj = order_fields(
        root, clone(obj)
    )  # who copies a part meets its fields in this order
    for operation in operations:
        try:
            if operation["op"] in ("copy", "move"):
                _sort_along(changed, _split_pointer(operation["from"])[:-1])
            _apply_operation(changed, operation)
            _sort_along(changed, _split_pointer(operation["path"])[:-1])
        except (KeyError, IndexError, ValueError, TypeError, AttributeError):
            text = "the server rejected our request due to an error in our request"
            raise ApiError(422, "Invalid", text, details={}) from None
    return changed


def _apply_operation(obj: Any, operation: Obj) -> None:
    kind, value = operation["op"], operation.get("value")
    if kind in ("copy", "move"):
        *parents, last = _split_pointer(operation["from"])
        holder = _resolve_pointer(obj, parents)
        # What is not there is copied as null (evanphx/json-patch).
        is_null = isinstance(holder, dict) and last not in holder and kind == "copy"
        value = None if is_null else clone(_resolve_pointer(holder, [last]))
        if kind == "move":
            _apply_operation(obj, {"op": "remove", "path": operation["from"]})
        kind = "add"
    *parents, last = _split_pointer(operation["path"])
    obj = _resolve_pointer(obj, parents)
    if isinstance(obj, list):
        position: Any = len(obj) if last == "-" and kind == "add" else int(last)
        if kind == "add":
            if position > len(obj):
                raise IndexError(position)
            obj.insert(position, value)
            return
        live_value = obj[position]
    else:
        position = last
        if kind in ("add", "replace"):  # also of what is not there (evanphx/json-patch)
            obj[position] = value
            return
        live_value = obj.get(position) if kind == "test" else obj[position]
    if kind == "remove":
        del obj[position]
    elif kind == "replace":
        obj[position] = value
    elif kind != "test" or live_value != value:
        raise ValueError(operation)


def _sort_along(obj: Any, segments: Sequence[str]) -> None:
    """Sort the fields of all objects on a way, in place: Go has them as maps from now on."""
    for segment in (*segments, None):
        if isinstance(obj, dict):
            sorted_fields = sorted(obj.items())
            obj.clear()
            obj.update(sorted_fields)
        if segment is not None:
            obj = _resolve_pointer(obj, [segment])


def _split_pointer(path: str) -> list[str]:
    if not path.startswith("/"):
        raise ValueError(path)
    return [segment.replace("~1", "/").replace("~0", "~") for segment in path.split("/")[1:]]


def _resolve_pointer(obj: Any, segments: Sequence[str]) -> Any:
    for segment in segments:
        obj = obj[int(segment)] if isinstance(obj, list) else obj[segment]
    return obj
