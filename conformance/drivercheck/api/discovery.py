"""Which groups, versions and resources there are, for clients that ask."""

from __future__ import annotations

from conformance.drivercheck.api.objects import KUBERNETES
from conformance.targets.base import Obj
from conformance.targets.reference.resources import KINDS


def discovery(path: str) -> Obj | None:
    """What a path of discovery answers; None for any other path."""
    groups: dict[str, list[str]] = {}
    for kind in KINDS.values():
        for version in kind.api_versions:
            if version not in groups.setdefault(kind.group, []):
                groups[kind.group].append(version)
    named = [version for versions in groups.values() for version in versions]
    match path.rstrip("/").split("/")[1:]:
        case ["version"]:
            major, minor, _ = KUBERNETES.split(".")
            return {"major": major, "minor": minor, "gitVersion": f"v{KUBERNETES}"}
        case ["healthz" | "livez" | "readyz"]:
            return {"status": "ok"}
        case ["api"]:
            return {"kind": "APIVersions", "versions": ["v1"]}
        case ["apis"]:
            listed = [_group(name, found) for name, found in groups.items() if name]
            return {"kind": "APIGroupList", "apiVersion": "v1", "groups": listed}
        case ["api", "v1"]:
            return _resources("v1")
        case ["apis", group, version] if f"{group}/{version}" in named:
            return _resources(f"{group}/{version}")
    return None


def _group(name: str, versions: list[str]) -> Obj:
    listed = [{"groupVersion": one, "version": one.rpartition("/")[2]} for one in versions]
    return {"name": name, "versions": listed, "preferredVersion": listed[0]}


def _resources(api_version: str) -> Obj:
    found = [
        {
            "name": kind.plural,
            "kind": kind.name,
            "namespaced": kind.namespaced,
            "singularName": kind.name.lower(),
            "verbs": ["create", "delete", "get", "list", "patch", "update", "watch"],
        }
        for kind in KINDS.values()
        if api_version in kind.api_versions
    ]
    listed = {"kind": "APIResourceList", "apiVersion": "v1"}
    return {**listed, "groupVersion": api_version, "resources": found}
