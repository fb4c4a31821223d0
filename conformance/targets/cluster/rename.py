"""A snapshot with other names, which says the same: for those who may not show theirs.

Namespaces, pods, claims, templates, slices, pools and nodes get numbers, in the order of their
names, so that what is tried first still is. Each is renamed where it is named; a node's name, and
what its label kubernetes.io/hostname says, wherever a value is that word: in labels, in node
selectors, in attributes, in CEL. Drivers, classes, devices and attributes stay: they are the case.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from conformance.targets.seam.values import Obj

_HOSTNAME = "kubernetes.io/hostname"
_FIXED = frozenset({"apiVersion", "kind", "resource", "uid", "driver", "key", "operator", "effect"})
_INSUFFICIENT = re.compile(r"Insufficient [\w./-]+")
_LISTS = {
    "slices": "slice",
    "claims": "claim",
    "allocated": "claim",
    "pods": "pod",
    "templates": "template",
    "nodes": "node",
}
_REFERENCES = {"resourceClaimName": "claim", "resourceClaimTemplateName": "template"}


def renamed(snapshot: Obj) -> Obj:
    """The snapshot of ``capture`` with numbers for names; it shares nothing that was changed."""
    names: dict[str, set[str]] = {word: set() for word in (*_LISTS.values(), "namespace", "pool")}
    for field, word in _LISTS.items():
        for obj in snapshot.get(field, ()):
            names[word].add(obj["metadata"]["name"])
            names["namespace"].add(obj["metadata"].get("namespace") or "")
    for pod in snapshot.get("pods", ()):
        for entry in pod["spec"].get("resourceClaims") or ():
            for field, word in _REFERENCES.items():
                names[word].add(entry.get(field) or "")
    for claim in _claims(snapshot):
        status = claim.get("status") or {}
        names["pod"] |= {item["name"] for item in status.get("reservedFor") or ()}
        results = ((status.get("allocation") or {}).get("devices") or {}).get("results") or ()
        names["pool"] |= {item["pool"] for item in results}
    names["pool"] |= {item["spec"]["pool"]["name"] for item in snapshot["slices"]}
    names["pool"] -= names["node"]
    table = {word: _numbered(word, known) for word, known in names.items()}
    hosts = dict(table["node"])
    for node in snapshot["nodes"]:
        label = (node["metadata"].get("labels") or {}).get(_HOSTNAME)
        if label:
            hosts.setdefault(label, table["node"][node["metadata"]["name"]])
    return dict(_Renaming(table, hosts, _selected_labels(snapshot)).document(snapshot))


class _Renaming:
    def __init__(
        self, table: Mapping[str, Mapping[str, str]], hosts: Mapping[str, str], labels: set[str]
    ) -> None:
        self._table = table
        self._hosts = hosts
        self._labels = labels
        # The longest first: one may be another's beginning. A name is no part of a longer word.
        words = "|".join(map(re.escape, sorted(hosts, key=len, reverse=True)))
        self._word = re.compile(rf"(?<![\w.-])(?:{words})(?![\w.-])") if hosts else None

    def document(self, snapshot: Obj) -> Iterable[tuple[str, Any]]:
        for field, value in snapshot.items():
            word = _LISTS.get(field)
            if isinstance(value, list):
                yield field, [self._object(obj, word) for obj in value]
            else:
                yield field, value

    def _object(self, obj: Obj, word: str | None) -> Obj:
        meta = dict(obj["metadata"])
        if word:
            meta["name"] = self._table[word][meta["name"]]
        if meta.get("namespace"):
            meta["namespace"] = self._table["namespace"][meta["namespace"]]
        if "labels" in meta:
            kept = {key: value for key, value in meta["labels"].items() if key in self._labels}
            meta["labels"] = self._value(kept)
        rest = {key: value for key, value in obj.items() if key != "metadata"}
        return {"metadata": meta, **self._value(rest)}

    def _value(self, value: Any) -> Any:
        if isinstance(value, Mapping):
            return {key: self._field(key, item, value) for key, item in value.items()}
        if isinstance(value, list):
            return [self._value(item) for item in value]
        if isinstance(value, str) and self._word is not None:
            return self._word.sub(lambda found: self._hosts[found[0]], value)
        return value

    def _field(self, key: str, value: Any, owner: Mapping[str, Any]) -> Any:
        if key in _FIXED:
            return value
        if key == "pool":
            if isinstance(value, Mapping):
                return {**value, "name": self._pool(value["name"])}
            return self._pool(value)
        if key in _REFERENCES:
            return self._table[_REFERENCES[key]].get(value, value)
        if key == "name" and owner.get("resource") == "pods":
            return self._table["pod"].get(value, value)
        if key == "message":
            return "; ".join(_INSUFFICIENT.findall(value))
        return self._value(value)

    def _pool(self, name: str) -> str:
        return self._table["node"].get(name) or self._table["pool"].get(name, name)


def _numbered(word: str, names: set[str]) -> dict[str, str]:
    ordered = sorted(names - {""})
    width = len(str(len(ordered)))
    return {name: f"{word}-{number:0{width}}" for number, name in enumerate(ordered, 1)}


def _claims(snapshot: Obj) -> Iterable[Obj]:
    return [*snapshot["claims"], *snapshot["allocated"]]


def _selected_labels(snapshot: Obj) -> set[str]:
    """The labels of nodes by which anything is selected; others only say whose nodes these are."""
    found: set[str] = {_HOSTNAME}

    def look(value: Any) -> None:
        if isinstance(value, Mapping):
            for item in value.get("matchExpressions") or ():
                found.add(item["key"])
            found.update(value.get("nodeSelector") or ())
            for item in value.values():
                look(item)
        elif isinstance(value, list):
            for item in value:
                look(item)

    for field in ("slices", "claims", "allocated", "pods"):
        look(snapshot.get(field) or [])
    return found
