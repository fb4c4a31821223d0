"""Requests that once were answered otherwise than on a cluster, each by a name.

Their real answers are in ``page-1.37.json``. As a program it asks bare API servers for them again.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from kube.values import Obj
from localkube.binaries.build import resolve_binaries
from localkube.layout import default_cache
from tests.kubesim.apidiff.differences import ask
from tests.kubesim.apidiff.requests import DRIVER, NAMESPACE, Case, Sent
from tests.kubesim.apidiff.servers import PROGRAMS, bare_server

FILE: Final = Path(__file__).with_name("page-1.37.json")
_GROUP: Final = "/apis/resource.k8s.io/v1"
_CLASSES: Final = f"{_GROUP}/deviceclasses"
_CLAIMS: Final = f"{_GROUP}/namespaces/{NAMESPACE}/resourceclaims"
_TEMPLATES: Final = f"{_GROUP}/namespaces/{NAMESPACE}/resourceclaimtemplates"
_SLICES: Final = f"{_GROUP}/resourceslices"
_RULES: Final = f"{_GROUP}/devicetaintrules"
_POOLS: Final = "/apis/resource.k8s.io/v1alpha3/resourcepoolstatusrequests"
_DRY: Final = (("dryRun", "All"),)
_APPLY: Final = "application/apply-patch+yaml"
_MERGE: Final = "application/merge-patch+json"
_META: Final = "application/json;g=meta.k8s.io;v=v1;as="


def _class(name: str = "page", **spec: Any) -> Obj:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": name},
        "spec": spec,
    }


def _claim(*requests: Obj, version: str = "v1", **devices: Any) -> Obj:
    return {
        "apiVersion": f"resource.k8s.io/{version}",
        "kind": "ResourceClaim",
        "metadata": {"name": "page"},
        "spec": {"devices": {"requests": [*requests], **devices}},
    }


def _slice(*devices: Obj, **spec: Any) -> Obj:
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    built = {"driver": DRIVER, "nodeName": "node-1", "pool": pool, "devices": [*devices], **spec}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": "page"},
        "spec": {name: value for name, value in built.items() if value is not None},
    }


_CLASS: Final = Sent("POST", _CLASSES, (), _class())
_ONE_CLAIM: Final = Sent("POST", _CLAIMS, (), _claim())
_GET_CLASS: Final = Sent("GET", f"{_CLASSES}/page")


def _one(version: str, **exactly: Any) -> Obj:
    """Return a claim with one request."""
    exactly = {"deviceClassName": "class-a", **exactly}
    flat = version == "v1beta1"
    return _claim({"name": "r", **(exactly if flat else {"exactly": exactly})}, version=version)


def _pools(**spec: Any) -> Obj:
    return {"metadata": {"name": "page"}, "spec": {"driver": DRIVER, **spec}}


def _mapping(mapping: Obj) -> Obj:
    return {"nodeAllocatableResources": {"cpu": {"mapping": mapping}}}


def _delete(body: Any = None, **query: str) -> list[Sent]:
    return [_CLASS, Sent("DELETE", f"{_CLASSES}/page", tuple(query.items()), body), _GET_CLASS]


def _apply(manager: str, **more: Any) -> Sent:
    body = {**_class(), **more}
    return Sent("PATCH", f"{_CLASSES}/page", (("fieldManager", manager),), body, _APPLY)


def _labels(**labels: str) -> Obj:
    return {"metadata": {"name": "page", "labels": labels}}


_LONG: Final = '{"a":"' + "b" * 10231 + '"}'
_OPAQUE: Final = json.dumps(
    _claim(config=[{"opaque": {"driver": DRIVER, "parameters": "PARAMETERS"}}])
)
_FLAT: Final = _CLAIMS.replace("/v1/", "/v1beta1/")
_ALTERNATIVES: Final = {
    "name": "r",
    "firstAvailable": [{"name": "s", "deviceClassName": "class-a"}],
}

PAGE: Final[dict[str, list[Sent]]] = {
    "S1 dryRun in the body of a deletion": _delete(
        {"kind": "DeleteOptions", "apiVersion": "v1", "dryRun": ["All"]}
    ),
    "S1 dryRun in the body of a deletion of many": [
        _CLASS,
        Sent("DELETE", _CLASSES, (("fieldSelector", "metadata.name=page"),), {"dryRun": ["All"]}),
        _GET_CLASS,
    ],
    "S2 unknown propagationPolicy": _delete(propagationPolicy="Foo"),
    "S2 unknown propagationPolicy in the body": _delete({"propagationPolicy": "Foo"}),
    "S2 a grace period that is no number": _delete(gracePeriodSeconds="x"),
    "S3 unknown dryRun": [Sent("POST", _CLASSES, (("dryRun", "Some"),), _class())],
    "S4 unknown field": [Sent("POST", _CLASSES, _DRY, _class(foo=1))],
    "S4 unknown field, Strict": [
        Sent("POST", _CLASSES, (*_DRY, ("fieldValidation", "Strict")), _class(foo=1))
    ],
    "S4 unknown field, Ignore": [
        Sent("POST", _CLASSES, (*_DRY, ("fieldValidation", "Ignore")), _class(foo=1))
    ],
    "S4 unknown field in a merge patch": [
        _CLASS,
        Sent("PATCH", f"{_CLASSES}/page", (), {"spec": {"foo": 1}}, _MERGE),
    ],
    "S5 a key twice": [
        Sent("POST", _CLASSES, _DRY, '{"metadata":{"name":"page"},"spec":{},"spec":{}}')
    ],
    "S5 unknown fieldValidation": [Sent("POST", _CLASSES, (("fieldValidation", "x"),), _class())],
    "S7 parameters with a space are too long as sent": [
        Sent("POST", _CLAIMS, _DRY, _OPAQUE.replace('"PARAMETERS"', _LONG.replace(":", ":  ")))
    ],
    "S8 parameters count as UTF-8": [
        Sent("POST", _CLAIMS, _DRY, _OPAQUE.replace('"PARAMETERS"', '{"a":"' + "é" * 5116 + '"}'))
    ],
    "parameters with a truth value where a number was": [
        Sent("POST", _CLAIMS, (), _OPAQUE.replace('"PARAMETERS"', '{"a":1}')),
        Sent("PUT", f"{_CLAIMS}/page", (), _OPAQUE.replace('"PARAMETERS"', '{"a":true}')),
    ],
    "S10 null attribute": [
        Sent("POST", _SLICES, _DRY, _slice({"name": "d", "attributes": {"x": None}}))
    ],
    "S11 null counter": [
        Sent(
            "POST",
            _SLICES,
            _DRY,
            _slice(devices=None, sharedCounters=[{"name": "c", "counters": {"a": None}}]),
        )
    ],
    **{
        f"S13 zero {field} beside alternatives in v1beta1": [
            Sent("POST", _FLAT, _DRY, _claim({**_ALTERNATIVES, field: zero}, version="v1beta1"))
        ]
        for field, zero in (("count", 0), ("allocationMode", ""), ("deviceClassName", ""))
    },
    "S16 apply without kind": [
        _CLASS,
        Sent("PATCH", f"{_CLASSES}/page", (("fieldManager", "m"),), {"metadata": {}}, _APPLY),
    ],
    "S16 apply with managedFields": [
        _CLASS,
        _apply("m", metadata={"name": "page", "managedFields": []}),
    ],
    "S16 a long field manager": [_apply("x" * 129)],
    "S17 list at no version": [Sent("GET", _CLASSES, (("resourceVersion", "abc"),))],
    "S17 initial events without a match": [
        Sent("GET", _CLASSES, (("watch", "1"), ("sendInitialEvents", "true")))
    ],
    "S18 initial events without bookmarks": [
        _CLASS,
        Sent(
            "GET",
            _CLASSES,
            (
                *(("watch", "1"), ("timeoutSeconds", "1"), ("sendInitialEvents", "true")),
                ("resourceVersionMatch", "NotOlderThan"),
                ("fieldSelector", "metadata.name=page"),
            ),
        ),
    ],
    "a watch of one object is a get": [
        _CLASS,
        Sent("GET", f"{_CLASSES}/page", (("watch", "true"), ("timeoutSeconds", "1"))),
    ],
    "S19 a version that goes": [Sent("GET", f"{_FLAT}/none")],
    "S19 capitals in a driver's name": [
        Sent("POST", _SLICES, _DRY, _slice({"name": "d"}, driver="D.example.com"))
    ],
    "S20 deletion answers the object": _delete(),
    "S20 deletion of many answers a list": [
        _CLASS,
        Sent("DELETE", _CLASSES, (("fieldSelector", "metadata.name=page"),)),
    ],
    "S21 a claim without requests": [_ONE_CLAIM],
    "S21 an empty allocation": [
        _ONE_CLAIM,
        Sent("PATCH", f"{_CLAIMS}/page/status", (), {"status": {"allocation": {}}}, _MERGE),
    ],
    "S21 a device's status without conditions": [
        Sent(
            "POST",
            _CLAIMS,
            (),
            _claim({"name": "r", "exactly": {"deviceClassName": "class-a"}}),
        ),
        Sent(
            "PATCH",
            f"{_CLAIMS}/page/status",
            (),
            {
                "status": {
                    "allocation": {
                        "devices": {
                            "results": [
                                {"request": "r", "driver": DRIVER, "pool": "p", "device": "d"}
                            ]
                        }
                    },
                    "devices": [{"driver": DRIVER, "pool": "p", "device": "d"}],
                }
            },
            _MERGE,
        ),
    ],
    "S21 a template's metadata": [
        Sent(
            "POST",
            _TEMPLATES,
            _DRY,
            {"metadata": {"name": "page"}, "spec": {"spec": {"devices": {"requests": []}}}},
        )
    ],
    "S21 alternatives in v1beta1": [
        Sent("POST", _FLAT, _DRY, _claim(_ALTERNATIVES, version="v1beta1"))
    ],
    "S21 empty lists of a slice": [Sent("POST", _SLICES, _DRY, _slice())],
    "S22 items of a list": [
        _CLASS,
        Sent("GET", _CLASSES, (("fieldSelector", "metadata.name=page"),)),
    ],
    "S23 apply creates": [_apply("m")],
    "S23 conflict of appliers": [_apply("m", **_labels(a="1")), _apply("n", **_labels(a="2"))],
    "S23 conflict with an updater": [
        Sent("POST", _CLASSES, (("fieldManager", "create"),), {**_class(), **_labels(a="1")}),
        _apply("n", **_labels(a="2")),
    ],
    "S24 partial metadata": [
        _CLASS,
        Sent(
            "GET",
            _CLASSES,
            (("fieldSelector", "metadata.name=page"),),
            accept=f"{_META}PartialObjectMetadataList",
        ),
    ],
    "S25 table of pods": [
        Sent("GET", f"/api/v1/namespaces/{NAMESPACE}/pods", accept=f"{_META}Table")
    ],
    "S27 field selector of slices": [Sent("GET", _SLICES, (("fieldSelector", "spec.allNodes=x"),))],
    "S27 field selector of claims": [Sent("GET", _CLAIMS, (("fieldSelector", "status.x=x"),))],
    "S29 another uid": _delete({"preconditions": {"uid": "x"}}),
    "S29 bad media type": [Sent("POST", _CLASSES, (), _class(), "text/plain")],
    "S29 wrong kind": [Sent("POST", _CLASSES, (), {**_class(), "kind": "Pod"})],
    "S29 wrong version": [
        Sent("POST", _CLASSES, (), {**_class(), "apiVersion": "resource.k8s.io/v1beta1"})
    ],
    "S29 wrong namespace": [
        Sent("POST", _CLAIMS, (), {**_claim(), "metadata": {"name": "page", "namespace": "x"}})
    ],
    "S29 bad continue": [Sent("GET", _CLASSES, (("continue", "abc"),))],
    **{
        f"an empty list of {field} in an update, {version}": [
            Sent("POST", _CLAIMS.replace("/v1/", f"/{version}/"), (), _one(version)),
            Sent(
                "PUT",
                f"{_CLAIMS}/page".replace("/v1/", f"/{version}/"),
                (("fieldManager", "other"),),
                _one(version, **{field: []}),
            ),
        ]
        for field in ("tolerations", "selectors", "derivedAttributes")
        for version in ("v1", "v1beta1")
    },
    "many warnings": [
        Sent("POST", _CLASSES, _DRY, {**_class(), **{f"{i}{'x' * 200}": 1 for i in range(30)}})
    ],
    "a rule without resourceVersion in v1": [
        Sent(
            method,
            f"{_RULES}{place}",
            (),
            {
                "metadata": {"name": "page"},
                "spec": {"taint": {"key": "a", "effect": "NoExecute"}},
            },
        )
        for method, place in (("POST", ""), ("PUT", "/page"))
    ],
}
"""Name of a row -> its requests."""

GATES: Final = dict.fromkeys(
    ("DRADerivedAttributes", "DRANodeAllocatableResources", "DRAResourcePoolStatus"), True
)
GATED_PAGE: Final[dict[str, list[Sent]]] = {
    f"S14 a mapping {name}": [
        Sent("POST", _SLICES, _DRY, _slice({"name": "d", **_mapping(mapping)}))
    ]
    for name, mapping in {
        "of two": {"capacityKey": "c", "capacityMultiplier": "1", "deviceMultiplier": "1"},
        "of none": {},
    }.items()
} | {
    "derived attributes of a request with two forms": [
        Sent(
            "POST",
            _CLAIMS,
            _DRY,
            _claim(
                {
                    "name": "r",
                    "exactly": {
                        "deviceClassName": "class-a",
                        "derivedAttributes": [{"name": "a", "expression": "x"}, {"name": ""}],
                    },
                    "firstAvailable": [{"name": "s", "deviceClassName": "class-a"}],
                }
            ),
        )
    ],
    "status of pools": [
        Sent("POST", _POOLS, (), _pools(limit=1001)),
        Sent("POST", _POOLS, (), _pools()),
        Sent("PATCH", f"{_POOLS}/page/status", (), {"status": {"pools": [{}]}}, _MERGE),
        Sent("PATCH", f"{_POOLS}/page/status", (), {"status": {"poolCount": 3}}, _MERGE),
        Sent("GET", f"{_POOLS}/page", accept=f"{_META}Table"),
        Sent("PATCH", f"{_POOLS}/page/status", (), {"status": {"poolCount": 4}}, _MERGE),
        Sent("PATCH", f"{_POOLS}/page", (), {"spec": {"limit": 2}}, _MERGE),
    ],
}
"""The same of a server with these gates."""

_CLEANUP: Final = [
    Sent("DELETE", f"{path}/page")
    for path in (_CLASSES, _CLAIMS, _TEMPLATES, _SLICES, _RULES, _POOLS)
]


def case_of_row(name: str) -> Case:
    """Return the case of a row."""
    return Case((PAGE | GATED_PAGE)[name], _CLEANUP)


def main() -> None:
    """Write the real answers of all rows."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--binaries", type=Path, help="folder with etcd and kube-apiserver")
    binaries = resolve_binaries(parser.parse_args().binaries, default_cache(), PROGRAMS, print)
    answers = {}
    for page, gates in ((PAGE, {}), (GATED_PAGE, GATES)):
        with TemporaryDirectory() as folder, bare_server(binaries, Path(folder), gates) as real:
            for name in page:
                asked = ask(real, case_of_row(name))
                answers[name] = [dataclasses.asdict(answer) for answer in asked]
    FILE.write_text(json.dumps(answers, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
