"""Requests for two API servers: drawn from a seed, each case by itself.

A case is a few requests about objects of its own, so that it can be sent at any time, alone, and
after any other: `case_of(seed, number)` is always the same.
"""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlencode

from kube.values import Obj
from kubesim.apiserver.conversion import to_version
from kubesim.resources import KINDS, Kind
from reference_allocator.api import schema

NAMESPACE: Final = "apidiff"
_JSON: Final = "application/json"
_MERGE, _STRATEGIC, _JSON_PATCH, _APPLY = (
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/json-patch+json",
    "application/apply-patch+yaml",
)
_AT_ONCE: Final = (("gracePeriodSeconds", "0"),)
_META: Final = "g=meta.k8s.io;v=v1"
_ACCEPTS: Final = (
    *(f"{_JSON};as={target};{_META}" for target in ("Table", "PartialObjectMetadata")),
    f"{_JSON};as=PartialObjectMetadataList;{_META}",
    f"{_JSON};as=Table;{_META},{_JSON}",
    *(_JSON, "*/*", "text/plain", f"{_JSON};as=Nothing;{_META}"),
)


@dataclass(frozen=True, slots=True)
class Sent:
    """One request. ``body``: JSON to send as ``content_type``, or text as it is; None for none."""

    method: str
    path: str
    query: tuple[tuple[str, str], ...] = ()
    body: Any = None
    content_type: str = _JSON
    accept: str = ""

    @property
    def url(self) -> str:
        return f"{self.path}?{urlencode(self.query)}" if self.query else self.path

    def encode(self) -> bytes | None:
        """Return the body as it goes over the wire."""
        if self.body is None or isinstance(self.body, str):
            return None if self.body is None else self.body.encode()
        return json.dumps(self.body, separators=(",", ":")).encode()


@dataclass(frozen=True)
class Case:
    """A few requests, in their order, and those that leave nothing behind."""

    requests: list[Sent]
    cleanup: list[Sent] = field(default_factory=list)


DRIVER: Final = "d.example.com"
_DEVICE: Final[Obj] = {
    "name": "dev-0",
    "attributes": {
        "model": {"string": "a"},
        "index": {"int": 1},
        "healthy": {"bool": True},
        f"{DRIVER}/driver": {"version": "1.0.0"},
    },
    "capacity": {
        "memory": {
            "value": "8Gi",
            "requestPolicy": {
                "default": "1Gi",
                "validRange": {"min": "1Gi", "max": "8Gi", "step": "1Gi"},
            },
        }
    },
    "allowMultipleAllocations": True,
    "taints": [{"key": "example.com/a", "value": "b", "effect": "NoSchedule"}],
}
_CONFIG: Final[Obj] = {"opaque": {"driver": DRIVER, "parameters": {"a": 1}}}
_SELECTOR: Final[Obj] = {"cel": {"expression": f"device.driver == '{DRIVER}'"}}
_EXACTLY: Final[Obj] = {
    "deviceClassName": "class-a",
    "allocationMode": "ExactCount",
    "count": 2,
    "selectors": [_SELECTOR],
    "tolerations": [{"key": "a", "operator": "Exists", "effect": "NoExecute"}],
}
_CLAIM_SPEC: Final[Obj] = {
    "devices": {
        "requests": [
            {"name": "r0", "exactly": _EXACTLY},
            {
                "name": "r1",
                "firstAvailable": [
                    {"name": "s0", "deviceClassName": "class-a", "count": 1},
                    {"name": "s1", "deviceClassName": "class-b", "allocationMode": "All"},
                ],
            },
        ],
        "constraints": [{"requests": ["r0"], "matchAttribute": f"{DRIVER}/model"}],
        "config": [{"requests": ["r0"], **_CONFIG}],
    }
}
_RESULT: Final[Obj] = {"request": "r0", "driver": DRIVER, "pool": "p", "device": "dev-0"}
_STATUS: Final[Obj] = {
    "allocation": {
        "devices": {
            "results": [_RESULT],
            "config": [{"source": "FromClaim", "requests": ["r0"], **_CONFIG}],
        },
        "nodeSelector": {
            "nodeSelectorTerms": [
                {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}
            ]
        },
    },
    "reservedFor": [{"resource": "pods", "name": "p", "uid": "1"}],
    "devices": [
        {
            "driver": DRIVER,
            "pool": "p",
            "device": "dev-0",
            "conditions": [
                {
                    "type": "Ready",
                    "status": "True",
                    "reason": "Good",
                    "message": "",
                    "lastTransitionTime": "2026-01-01T00:00:00Z",
                }
            ],
            "data": {"a": 1},
            "networkData": {
                "interfaceName": "eth0",
                "ips": ["10.0.0.1/24"],
                "hardwareAddress": "00:11",
            },
        }
    ],
}
_SPECS: Final[dict[str, Obj]] = {
    "ResourceSlice": {
        "driver": DRIVER,
        "nodeName": "node-1",
        "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
        "devices": [_DEVICE, {"name": "dev-1"}],
    },
    "ResourceClaim": _CLAIM_SPEC,
    "ResourceClaimTemplate": {"metadata": {"labels": {"a": "b"}}, "spec": _CLAIM_SPEC},
    "DeviceClass": {"selectors": [_SELECTOR], "config": [_CONFIG]},
    "DeviceTaintRule": {
        "deviceSelector": {"driver": DRIVER, "pool": "p", "device": "dev-0"},
        "taint": {"key": "example.com/a", "value": "b", "effect": "NoExecute"},
    },
}
_COUNTERS: Final[Obj] = {
    "sharedCounters": [{"name": "set", "counters": {"memory": {"value": "8Gi"}}}]
}
_CONSUMES: Final[Obj] = {
    "consumesCounters": [{"counterSet": "set", "counters": {"memory": {"value": "1Gi"}}}]
}
_BINDS: Final[Obj] = {
    "bindsToNode": True,
    "bindingConditions": ["example.com/ready"],
    "bindingFailureConditions": ["example.com/failed"],
}
_TEXTS: Final = (
    *("", "a", "A", "a.b", "-a", "a/b", "a/b/c", "example.com/a", "EXAMPLE.com", "x" * 64),
    *("x" * 254, "ü", "a b", "All", "None", "NoExecute", "1", "10.0.0.1", "0.1.2", "device.x"),
)
_VALUES: Final[dict[str, tuple[Any, ...]]] = {
    "string": _TEXTS,
    "int32": (0, 1, -1, 33, 2**31, 1.5, "1"),
    "int64": (0, 1, -1, 129, 2**63, 1.5, "1"),
    "bool": (True, False, "true", 0),
    "quantity": ("0", "1", "-1", "1.5", "1Gi", "x", "", 3, "1000000000000000000000"),
    "time": ("2026-01-01T00:00:00Z", "yesterday", "", 1),
    "any": ({}, [], "", "a", 1, {"a": None}),
    "intorstring": (0, "25%", "x"),
}
_UNMUTATED: Final = frozenset({"managedFields", "creationTimestamp", "deletionTimestamp"})


def case_of(seed: int, number: int) -> Case:
    """Return a case: of a seed and a number there is one."""
    return Draw(random.Random(f"{seed}/{number}"), f"c{number}").draw()


def watch_of(seed: int, number: int) -> Case:
    """Return a case with a watch, which takes a second."""
    return Draw(random.Random(f"{seed}/watch/{number}"), f"w{number}").draw_watch()


class Draw:
    """What is drawn for one case, whose objects all have names that begin with ``name``.

    ``specs``: kind -> the spec of a valid object, of which versions and faults are drawn.
    """

    def __init__(self, dice: random.Random, name: str, specs: Mapping[str, Obj] = _SPECS) -> None:
        self._dice = dice
        self._name = name
        self._specs = specs
        self._kind: Kind = KINDS[dice.choice([*specs])]
        versions = [*self._kind.api_versions]
        weights = [3, *[1] * (len(versions) - 1)]
        self._version = dice.choices(versions, weights)[0]
        place = f"/namespaces/{NAMESPACE}" if self._kind.namespaced else ""
        root = f"/apis/{self._version}" if self._kind.group else f"/api/{self._version}"
        self._collection = f"{root}{place}/{self._kind.plural}"
        self._item = f"{self._collection}/{name}"

    def draw(self) -> Case:
        """Draw what is asked."""
        weights = self._list_weights()
        drawn = self._dice.choices([*weights], [*weights.values()])[0]()
        return self._with_cleanup([*drawn])

    def _list_weights(self) -> dict[Callable[[], Iterator[Sent]], int]:
        """Return what there is to draw, and how often."""
        return {
            self._draw_creation: 40,
            self._draw_update: 14,
            self._draw_patch: 14,
            self._draw_status: 8,
            self._draw_reading: 8,
            self._draw_deletion: 6,
            self._draw_apply: 6,
            self._draw_odd_body: 4,
        }

    def _with_cleanup(self, sent: list[Sent]) -> Case:
        if all(("dryRun", "All") in request.query for request in sent):
            return Case(sent)
        freed = Sent("PATCH", self._item, (), {"metadata": {"finalizers": None}}, _MERGE)
        return Case(sent, [Sent("DELETE", self._item, _AT_ONCE), freed])

    def draw_watch(self) -> Case:
        """Draw a watch of an object, which takes a second."""
        choose = self._dice.choice
        query = [("watch", choose(("true", "true", "1", ""))), ("timeoutSeconds", "1")]
        query.append(("labelSelector", f"case={self._name}"))
        if self._dice.random() < 0.5:
            query.append(("sendInitialEvents", choose(("true", "true", "false"))))
            query.append(
                ("resourceVersionMatch", choose(("NotOlderThan", "NotOlderThan", "Exact")))
            )
        for name, values in {
            "allowWatchBookmarks": ("true", "true", "false"),
            "resourceVersion": ("", "", "0", "x", "-1", "99999999999"),
            "fieldSelector": (f"metadata.name={self._name}", "metadata.name=x", "a=b"),
            "includeObject": ("None", "Object", "Metadata"),
            "limit": ("1", "x"),
        }.items():
            if self._dice.random() < 0.3:
                query.append((name, choose(values)))
        accept = choose((*_ACCEPTS, "application/json;stream=watch")) if choose((0, 1)) else ""
        path = self._item if self._dice.random() < 0.2 else self._collection
        watch = Sent("GET", path, tuple(query), accept=accept)
        return self._with_cleanup([self._create(), watch])

    def _build_object(self, faults: int) -> Obj:
        obj: Obj = {
            "apiVersion": self._kind.api_version,
            "kind": self._kind.name,
            "metadata": {"name": self._name, "labels": {"case": self._name}},
            "spec": copy.deepcopy(self._specs[self._kind.name]),
        }
        if self._kind.name == "ResourceSlice":
            self._vary_slice(obj["spec"])
        obj = to_version(obj, self._version)
        for _ in range(faults):
            self._break(obj)
        return obj

    def _vary_slice(self, spec: Obj) -> None:
        variant = self._dice.randrange(5)
        if variant == 0:
            spec["devices"][0] |= copy.deepcopy(_BINDS)
        elif variant == 1:
            spec["devices"][0] |= copy.deepcopy(_CONSUMES)
        elif variant == 2:
            del spec["devices"]
            spec |= copy.deepcopy(_COUNTERS)
        elif variant == 3:
            del spec["nodeName"]
            spec["allNodes"] = True

    def _break(self, obj: Obj) -> None:
        """Change one place of an object, chosen by chance, to something that is likely wrong."""
        places = self._list_places(obj)
        if not places:
            return
        holder, key, shape = self._dice.choice(places)
        action = self._dice.randrange(9)
        if action == 0 and isinstance(holder, dict):
            del holder[key]
        elif action == 1:
            holder[key] = None
        elif action == 2 and isinstance(holder[key], list) and holder[key]:
            holder[key].append(copy.deepcopy(holder[key][0]))
        elif action == 3 and isinstance(holder[key], list):
            holder[key] *= self._dice.choice((0, 9, 17, 33, 129))
        elif action == 4 and isinstance(holder, dict):
            holder[self._dice.choice(("unknown", "Name", "spec", "x"))] = self._dice.choice(_TEXTS)
        elif action == 5:
            holder[key] = self._dice.choice(({}, [], "", 0, False))
        elif shape in schema.types():
            added = self._dice.choice(self._list_fields(shape))
            value = holder[key]
            if isinstance(value, dict):
                value.setdefault(added, self._draw_value(schema.types()[shape][added]))
        else:
            holder[key] = self._draw_value(shape)

    def _list_places(self, obj: Obj) -> list[Place]:
        """Return the places of an object that may be changed."""
        return [*list_places(schema.roots()[f"{self._version}/{self._kind.name}"], obj)]

    def _list_fields(self, shape: str) -> list[str]:
        """Return the fields of a type that may be drawn."""
        return [field for field in schema.types()[shape] if field not in _UNMUTATED]

    def _draw_value(self, shape: str) -> Any:
        if shape.startswith(schema.LIST):
            return [self._draw_value(shape[len(schema.LIST) :])] * self._dice.randrange(3)
        if shape.startswith(schema.MAP):
            inner = self._draw_value(shape[len(schema.MAP) :])
            return {self._dice.choice(_TEXTS): inner}
        if shape in schema.types():
            fields = self._list_fields(shape)
            chosen = self._dice.sample(fields, min(len(fields), self._dice.randrange(3)))
            return {name: self._draw_value(schema.types()[shape][name]) for name in chosen}
        return self._dice.choice(_VALUES[shape])

    def _draw_query(self, *fixed: tuple[str, str]) -> tuple[tuple[str, str], ...]:
        drawn = [*fixed]
        if self._dice.random() < 0.25:
            value = self._dice.choice(("Strict", "Strict", "Ignore", "Warn", "", "x"))
            drawn.append(("fieldValidation", value))
        if self._dice.random() < 0.05:
            manager = self._dice.choice(("m", "", "x" * 129, "a\tb", "ü"))
            drawn.append(("fieldManager", manager))
        if self._dice.random() < 0.04:
            drawn.append(("dryRun", self._dice.choice(("All", "", "Some"))))
        if self._dice.random() < 0.02:
            drawn.append((self._dice.choice(("force", "unknown", "timeout")), "true"))
        return tuple(drawn)

    def _draw_creation(self) -> Iterator[Sent]:
        obj = self._build_object(self._dice.choices((0, 1, 2), (1, 6, 3))[0])
        yield Sent("POST", self._collection, self._draw_query(("dryRun", "All")), obj)

    def _create(self) -> Sent:
        return Sent("POST", self._collection, (), self._build_object(0))

    def _draw_update(self) -> Iterator[Sent]:
        created = self._create()
        yield created
        changed = copy.deepcopy(created.body)
        for _ in range(self._dice.choices((0, 1, 2), (1, 6, 2))[0]):
            self._break(changed)
        if self._dice.random() < 0.15:
            choices = {"resourceVersion": ("1", "x", ""), "uid": ("x", ""), "generation": (7,)}
            name = self._dice.choice([*choices])
            if isinstance(changed.get("metadata"), dict):
                changed["metadata"][name] = self._dice.choice(choices[name])
        path = self._item if self._dice.random() < 0.97 else f"{self._item}-other"
        yield Sent("PUT", path, self._draw_query(), changed)
        yield Sent("GET", self._item)

    def _draw_patch(self) -> Iterator[Sent]:
        created = self._create()
        yield created
        content_type = self._dice.choice((_MERGE, _MERGE, _STRATEGIC, _JSON_PATCH))
        yield Sent(
            "PATCH",
            self._item,
            self._draw_query(),
            self._draw_patch_body(content_type, created.body),
            content_type,
        )
        yield Sent("GET", self._item)

    def _draw_patch_body(self, content_type: str, obj: Obj) -> Any:
        root = schema.roots()[f"{self._version}/{self._kind.name}"]
        if content_type == _JSON_PATCH:
            return [self._draw_operation(obj) for _ in range(self._dice.choice((1, 1, 2)))]
        changed = copy.deepcopy(obj)
        self._break(changed)
        part = self._dice.choice(("metadata", "metadata", "spec"))
        if self._dice.random() < 0.5:
            return {part: changed.get(part)}
        shape = schema.types()[root][part]
        name = self._dice.choice(self._list_fields(shape))
        return {part: {name: self._draw_value(schema.types()[shape][name])}}

    def _draw_operation(self, obj: Obj) -> Obj:
        paths = ["/metadata/labels/x", "/metadata/annotations", "/spec", "/nothing/x", "/metadata"]
        paths += [f"/spec/{name}" for name in obj["spec"]] + ["/metadata/labels", "x", ""]
        operation: Obj = {
            "op": self._dice.choice(("add", "remove", "replace", "test", "copy", "move", "x")),
            "path": self._dice.choice(paths),
        }
        if operation["op"] in ("copy", "move"):
            operation["from"] = self._dice.choice(paths)
        if operation["op"] == "replace" and not operation["path"]:
            operation["path"] = (
                "/spec"  # kube-apiserver 1.37.1 ends the connection without an answer
            )
        if operation["op"] in ("add", "replace", "test"):
            operation["value"] = self._dice.choice(({}, {"a": "b"}, "a", None, 1, []))
        return operation

    def _draw_status(self) -> Iterator[Sent]:
        yield self._create()
        status = self._build_status()
        sent = {"apiVersion": self._version, "kind": self._kind.name, "status": status}
        for _ in range(self._dice.choices((0, 1, 2), (2, 6, 2))[0]):
            self._break(sent)
        sent.pop("spec", None)
        yield Sent("PATCH", f"{self._item}/status", self._draw_query(), sent, _MERGE)
        yield Sent("GET", self._item)

    def _build_status(self) -> Obj:
        return copy.deepcopy(_STATUS) if self._kind.name == "ResourceClaim" else {}

    def _draw_reading(self) -> Iterator[Sent]:
        yield self._create()
        choose = self._dice.choice
        query: list[tuple[str, str]] = [("labelSelector", f"case={self._name}")]
        for name, values in {
            "limit": ("0", "1", "-1", "x", ""),
            "resourceVersion": ("", "x", "-1", "99999999999"),  # 0 may answer from long ago
            "resourceVersionMatch": ("Exact", "NotOlderThan", "x", ""),
            "continue": ("x", "abc", "!"),
            "fieldSelector": ("metadata.name=x", "spec.driver=d", "a", "a=b", "metadata.name!="),
            "sendInitialEvents": ("true", "false"),
            "includeObject": ("None", "Object", "Metadata"),
        }.items():
            if self._dice.random() < 0.15:
                query.append((name, choose(values)))
        accept = choose(_ACCEPTS) if self._dice.random() < 0.5 else ""
        if self._dice.random() < 0.3:
            selector = choose(("a b", "a=b=c", "a in (b", "-a", "!a", "a!=b", "a notin (b,c)", ","))
            query[0] = ("labelSelector", f"case={self._name},{selector}")
        path = self._item if self._dice.random() < 0.3 else self._collection
        yield Sent("GET", path, tuple(query), accept=accept)

    def _draw_deletion(self) -> Iterator[Sent]:
        yield self._create()
        choose = self._dice.choice
        options: Obj = {}
        for name, values in {
            "dryRun": (["All"], ["Some"], [], "All"),
            "propagationPolicy": ("Foreground", "Background", "Orphan", "x", "", 1),
            "gracePeriodSeconds": (0, 1, -1, "x"),
            "orphanDependents": (True, False, "x"),
            "preconditions": ({"uid": "x"}, {"resourceVersion": "1"}, {}, "x"),
            "kind": ("DeleteOptions", "Pod", ""),
            "apiVersion": ("v1", "meta.k8s.io/v1", self._version),
            "unknown": (1,),
        }.items():
            if self._dice.random() < 0.25:
                options[name] = choose(values)
        many = self._dice.random() < 0.3
        path = self._collection if many else self._item
        query = [("labelSelector", f"case={self._name}")] if many else []
        if self._dice.random() < 0.5:
            yield Sent("DELETE", path, tuple(query), options)
        else:
            names = ("dryRun", "propagationPolicy", "gracePeriodSeconds", "orphanDependents")
            for name in names:
                value = options.get(name, [])
                items: list[Any] = value if isinstance(value, list) else [value]
                query += [(name, str(item)) for item in items]
            yield Sent("DELETE", path, tuple(query))
        yield Sent("GET", self._item)

    def _draw_apply(self) -> Iterator[Sent]:
        first = self._build_object(0)
        yield Sent("PATCH", self._item, (("fieldManager", "m"),), first, _APPLY)
        second = copy.deepcopy(first)
        for _ in range(self._dice.choice((0, 1, 1))):
            self._break(second)
        manager = self._dice.choice(("m", "n"))
        query = [("fieldManager", manager)]
        if self._dice.random() < 0.3:
            query.append(("force", "true"))
        yield Sent("PATCH", self._item, tuple(query), second, _APPLY)
        yield Sent("GET", self._item)

    def _draw_odd_body(self) -> Iterator[Sent]:
        obj = self._build_object(0)
        text = json.dumps(obj)
        other = self._dice.choice([*self._specs])
        body = self._dice.choice(
            (
                *("", "{", "[]", "null", '"a"', "{}", text[:-1], text + "}", text + " "),
                text.replace('"spec"', '"kind": "x", "spec"'),
                text.replace('"labels"', '"labels": {"a": "b"}, "labels"'),
                json.dumps({**obj, "kind": other}),
                json.dumps({**obj, "kind": "Pod", "apiVersion": "v1"}),
                json.dumps({**obj, "apiVersion": "resource.k8s.io/v1beta1"}),
                json.dumps({**obj, "apiVersion": ""}),
                json.dumps({**obj, "kind": ""}),
                json.dumps({**obj, "metadata": {"namespace": "other", "name": self._name}}),
                json.dumps({**obj, "metadata": {"generateName": "x-"}}),
            )
        )
        types = (_JSON, "", "text/plain", "application/yaml", f"{_JSON}; charset=utf-8")
        content_type = self._dice.choices(types, (6, 1, 1, 1, 1))[0]
        yield Sent("POST", self._collection, (("dryRun", "All"),), body, content_type)


Place = tuple[Any, Any, str]
"""What holds a value, under which key, and the value's shape."""


def list_places(shape: str, value: Any) -> Iterator[Place]:
    """Yield every place in a value of a shape."""
    fields = schema.types().get(shape)
    inner = None
    if shape.startswith(schema.LIST):
        inner = shape[len(schema.LIST) :]
    elif shape.startswith(schema.MAP):
        inner = shape[len(schema.MAP) :]
    if isinstance(value, dict) and (fields is not None or inner is not None):
        pairs = [(key, (fields or {}).get(key) or inner) for key in value]
    elif isinstance(value, list) and inner is not None:
        pairs = [(index, inner) for index in range(len(value))]
    else:
        return
    for key, place_shape in pairs:
        if place_shape is not None and key not in ("apiVersion", "kind"):
            yield value, key, place_shape
            yield from list_places(place_shape, value[key])
