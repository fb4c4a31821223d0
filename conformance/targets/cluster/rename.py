"""A snapshot with other names, which says the same: for those who may not show theirs.

Namespaces, pods, claims, templates, slices, pools and nodes get numbers in the order of the
snapshot, which is that of names, so that what is tried first still is. Each is renamed where it is
named; a node's name, and what its label kubernetes.io/hostname says, wherever a value is that word:
in labels, in node selectors, in attributes, in CEL. Drivers, classes, devices and attributes stay:
they are the case.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from kube.values import Obj

_HOSTNAME = "kubernetes.io/hostname"
_FIXED = frozenset({"apiVersion", "kind", "resource", "uid", "driver", "key", "operator", "effect"})
_INSUFFICIENT = re.compile(r"Insufficient [\w./-]+")
_LISTS = {
    "nodes": "node",
    "slices": "slice",
    "claims": "claim",
    "allocated": "claim",
    "pods": "pod",
    "templates": "template",
}
_REFERENCES = {"resourceClaimName": "claim", "resourceClaimTemplateName": "template"}


def replace_names(snapshot: Obj) -> Obj:
    """Return the snapshot of ``capture`` with numbers for names; what changed is copied."""
    renaming = _Renaming(snapshot)
    return {
        field: [renaming.object(obj, _LISTS.get(field)) for obj in value]
        if isinstance(value, list)
        else value
        for field, value in snapshot.items()
    }


class _Renaming:
    def __init__(self, snapshot: Obj) -> None:
        self._numbers: dict[str, dict[str, str]] = defaultdict(dict)
        self._hosts: dict[str, str] = {}
        for node in snapshot["nodes"]:
            self._hosts[node["metadata"]["name"]] = self._name("node", node["metadata"]["name"])
        for node in snapshot["nodes"]:
            label = (node["metadata"].get("labels") or {}).get(_HOSTNAME)
            if label:
                self._hosts.setdefault(label, self._hosts[node["metadata"]["name"]])
        # The longest first: one may be another's beginning. A name is no part of a longer word.
        words = "|".join(map(re.escape, sorted(self._hosts, key=len, reverse=True)))
        self._word = re.compile(rf"(?<![\w.-])(?:{words or '(?!)'})(?![\w.-])")
        # Labels by which nothing is selected only say whose nodes these are.
        self._selecting = json.dumps([snapshot.get(field) for field in _LISTS if field != "nodes"])

    def object(self, obj: Obj, word: str | None) -> Obj:
        meta = dict(obj["metadata"])
        if word:
            meta["name"] = self._name(word, meta["name"])
        if meta.get("namespace"):
            meta["namespace"] = self._name("namespace", meta["namespace"])
        if "ownerReferences" in meta:
            meta["ownerReferences"] = [
                {**owner, "name": self._name("pod", owner["name"])}
                for owner in meta["ownerReferences"]
            ]
        if "labels" in meta:
            meta["labels"] = {
                key: self._value(value)
                for key, value in meta["labels"].items()
                if key == _HOSTNAME or f'"{key}"' in self._selecting
            }
        other_fields = {key: value for key, value in obj.items() if key != "metadata"}
        return {"metadata": meta, **self._value(other_fields)}

    def _name(self, word: str, name: str) -> str:
        numbered = self._numbers[word]
        return numbered.setdefault(name, f"{word}-{len(numbered) + 1:05}")

    def _value(self, value: Any) -> Any:
        if isinstance(value, Mapping):
            return {key: self._field(key, item, value) for key, item in value.items()}
        if isinstance(value, list):
            return [self._value(item) for item in value]
        if isinstance(value, str):
            return self._word.sub(lambda matched: self._hosts[matched[0]], value)
        return value

    def _field(self, key: str, value: Any, owner: Mapping[str, Any]) -> Any:
        if key in _FIXED:
            return value
        if key == "pool" and isinstance(value, Mapping):
            return {**value, "name": self._field(key, value["name"], value)}
        if key == "pool":
            return self._hosts.get(value) or self._name("pool", value)
        if key in _REFERENCES and value:
            return self._name(_REFERENCES[key], value)
        if key == "name" and owner.get("resource") == "pods":
            return self._name("pod", value)
        if key == "message":
            return "; ".join(_INSUFFICIENT.findall(value))
        return self._value(value)
