"""Which groups, versions and resources there are, for clients that ask."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from kube.values import Obj
from kubesim.front import openapi
from kubesim.front.call import WITHOUT_STATUS
from kubesim.resources import Kind

_VERBS: Final = [
    *("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
]
_SHORT: Final = {
    "DaemonSet": ["ds"],
    "Deployment": ["deploy"],
    "Event": ["ev"],
    "Namespace": ["ns"],
    "Node": ["no"],
    "Pod": ["po"],
    "PriorityClass": ["pc"],
    "ReplicaSet": ["rs"],
    "ResourceQuota": ["quota"],
    "StatefulSet": ["sts"],
}
_ALL: Final = frozenset({"DaemonSet", "Deployment", "Job", "Pod", "ReplicaSet", "StatefulSet"})
_AGGREGATED: Final = "as=APIGroupDiscoveryList"
_AGGREGATED_TYPE: Final = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_POD_SUBRESOURCES: Final = {
    "binding": ("", "v1", "Binding"),
    "eviction": ("policy", "v1", "Eviction"),
}


@dataclass(frozen=True, slots=True)
class Discovered:
    """An answer of discovery."""

    body: Obj
    media_type: str = "application/json"


def answer_discovery(
    path: str, kubernetes: str, served_kinds: Mapping[str, Kind], accept: str
) -> Discovered | None:
    """Return what a path of discovery answers; None for any other path.

    ``kubernetes``: the version of the server, for example 1.37.1. ``accept``: what a client takes.
    """
    kinds = list(served_kinds.values())
    groups: dict[str, list[str]] = {}
    for kind in kinds:
        for version in kind.api_versions:
            if version not in groups.setdefault(kind.group, []):
                groups[kind.group].append(version)
    answer: Obj | None = None
    if _AGGREGATED in accept and path.rstrip("/") in ("/api", "/apis"):
        return Discovered(_aggregate(path.rstrip("/"), groups, kinds), _AGGREGATED_TYPE)
    match path.rstrip("/").split("/")[1:]:
        case ["version"]:
            major, minor, _ = kubernetes.split(".")
            # Clients that check types want each of them (``version.Info`` of k8s.io/apimachinery).
            answer = {
                "major": major,
                "minor": minor,
                "emulationMajor": major,
                "emulationMinor": minor,
                "minCompatibilityMajor": major,
                "minCompatibilityMinor": str(int(minor) - 1),
                "gitVersion": f"v{kubernetes}",
                "gitCommit": "",
                "gitTreeState": "clean",
                "buildDate": "1970-01-01T00:00:00Z",
                "goVersion": "",
                "compiler": "",
                "platform": "",
            }
        case ["healthz" | "livez" | "readyz"]:
            answer = {"status": "ok"}
        case ["api"]:
            answer = {"kind": "APIVersions", "versions": ["v1"]}
        case ["apis"]:
            listed = [_describe_group(name, versions) for name, versions in groups.items() if name]
            answer = {"kind": "APIGroupList", "apiVersion": "v1", "groups": listed}
        case ["apis", group] if group in groups:
            answer = {
                "kind": "APIGroup",
                "apiVersion": "v1",
                **_describe_group(group, groups[group]),
            }
        case ["api", "v1"]:
            answer = _list_resources("v1", kinds)
        case ["apis", group, version] if f"{group}/{version}" in groups.get(group, ()):
            answer = _list_resources(f"{group}/{version}", kinds)
        case ["openapi", "v3"]:
            answer = openapi.build_index([v for versions in groups.values() for v in versions])
        case ["openapi", "v3", *segments]:
            version = "/".join(segments[1:])
            if any(version in versions for versions in groups.values()):
                answer = openapi.build_document(version, kinds)
    return None if answer is None else Discovered(answer)


def _aggregate(path: str, groups: Mapping[str, list[str]], kinds: list[Kind]) -> Obj:
    """Return all groups of ``/api`` or ``/apis`` with their resources (KEP-3352)."""
    items = []
    for name, versions in groups.items():
        if bool(name) != (path == "/apis"):
            continue
        described = [
            {
                "version": version.rpartition("/")[2],
                "resources": _aggregate_resources(version, kinds),
                "freshness": "Current",
            }
            for version in versions
        ]
        metadata: Obj = {"name": name} if name else {}
        metadata["creationTimestamp"] = None
        items.append({"metadata": metadata, "versions": described})
    typed = {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2"}
    return {**typed, "metadata": {}, "items": items}


def _aggregate_resources(api_version: str, kinds: list[Kind]) -> list[Obj]:
    group, _, version = api_version.rpartition("/")
    resources: list[Obj] = []
    for entry in _list_resources(api_version, kinds)["resources"]:
        plural, _, subresource = entry["name"].partition("/")
        kind = {
            "group": entry.get("group", group),
            "version": entry.get("version", version),
            "kind": entry["kind"],
        }
        if subresource:
            described = {"subresource": subresource, "responseKind": kind, "verbs": entry["verbs"]}
            resources[-1].setdefault("subresources", []).append(described)
            continue
        scope = "Namespaced" if entry["namespaced"] else "Cluster"
        optional_fields = {
            field: entry[field] for field in ("shortNames", "categories") if field in entry
        }
        resources.append(
            {
                "resource": plural,
                "responseKind": kind,
                "scope": scope,
                "singularResource": entry["singularName"],
                "verbs": entry["verbs"],
                **optional_fields,
            }
        )
    return resources


def _describe_group(name: str, versions: list[str]) -> Obj:
    listed = [
        {"groupVersion": version, "version": version.rpartition("/")[2]} for version in versions
    ]
    return {"name": name, "versions": listed, "preferredVersion": listed[0]}


def _list_resources(api_version: str, kinds: list[Kind]) -> Obj:
    resources: list[Obj] = []
    for kind in kinds:
        if api_version not in kind.api_versions:
            continue
        named = {"kind": kind.name, "namespaced": kind.namespaced, "singularName": ""}
        optional_fields: Obj = {"shortNames": _SHORT[kind.name]} if kind.name in _SHORT else {}
        if kind.name in _ALL:
            optional_fields["categories"] = ["all"]
        singular = kind.name.lower()
        main_resource = {
            **named,
            **optional_fields,
            "name": kind.plural,
            "singularName": singular,
            "verbs": _VERBS,
        }
        resources.append(main_resource)
        if kind.name not in WITHOUT_STATUS:
            verbs = ["get", "patch", "update"]
            resources.append({**named, "name": f"{kind.plural}/status", "verbs": verbs})
        if kind.name == "Pod":
            for sub, (group, version, name) in _POD_SUBRESOURCES.items():
                typed = {"group": group, "version": version, "kind": name}
                resources.append({**named, **typed, "name": f"pods/{sub}", "verbs": ["create"]})
    listed = {"kind": "APIResourceList", "apiVersion": "v1"}
    return {**listed, "groupVersion": api_version, "resources": resources}
