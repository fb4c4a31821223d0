"""Say what is wrong, and what replaced it, in Kubernetes manifests that use DRA.

Manifests that people copy from articles are often of a version that no cluster serves any more. An
API server then answers with "could not find the requested resource" or names an unknown field; this
says what to write instead, with file and line, and needs no cluster.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from conformance.scenario.documents.yamlfile import PathTuple, Problem, as_mapping, list_mappings
from conformance.scenario.lint.manifest_claims import (
    check_claim_spec,
    check_class,
    check_pods,
    check_slice,
)

GROUP = "resource.k8s.io"

RETIRED_VERSIONS = {
    "v1alpha1": "is not served since Kubernetes 1.27",
    "v1alpha2": "is not served since Kubernetes 1.31",
    "v1alpha3": "is not served any more for this kind",
}
BETA_VERSIONS = ("v1beta1", "v1beta2")

RETIRED_KINDS = {
    "ResourceClass": (
        "ResourceClass was replaced by DeviceClass in Kubernetes 1.31; write kind: DeviceClass,"
        " apiVersion: resource.k8s.io/v1, with spec.selectors that choose the devices"
    ),
    "PodSchedulingContext": (
        "PodSchedulingContext is gone since Kubernetes 1.32: the scheduler allocates devices"
        " itself; remove it"
    ),
    "ResourceClassParameters": (
        "ResourceClassParameters is gone since Kubernetes 1.31; use spec.selectors and spec.config"
        " of a DeviceClass"
    ),
    "ResourceClaimParameters": (
        "ResourceClaimParameters is gone since Kubernetes 1.31; use spec.devices.requests and"
        " spec.devices.config of the ResourceClaim"
    ),
}
_NEW_SHAPES = {
    "ResourceClaim": ", with each request's fields below exactly",
    "ResourceClaimTemplate": ", with each request's fields below exactly",
    "ResourceSlice": ", with attributes and capacity directly in each device, without basic",
}
"""Kind -> what else changes when one moves from v1beta1 to v1."""

STABLE_KINDS = ("DeviceClass", "ResourceClaim", "ResourceClaimTemplate", "ResourceSlice")


def manifest_problems(data: Any) -> Iterator[Problem]:
    """Yield everything to mend in one manifest, with paths inside it."""
    if not isinstance(data, dict):
        yield Problem((), "is not a Kubernetes object: expected apiVersion, kind, metadata")
        return
    for field in ("apiVersion", "kind"):
        if not isinstance(data.get(field), str):
            near = {key.lower(): key for key in data}.get(field.lower(), field)
            meant = f"; did you mean {field} (found {near})?" if near != field else ""
            yield Problem((near,), f"is not a Kubernetes object: {field} is missing{meant}")
            return
    for path, obj in list_objects(data):
        yield from _check_object(obj, path)


def list_objects(data: Mapping[str, Any]) -> Iterator[tuple[PathTuple, Mapping[str, Any]]]:
    """Yield the object, or those of a List, each with its path."""
    if data.get("kind") == "List" and isinstance(data.get("items"), list):
        yield from ((("items", index), item) for index, item in list_mappings(data["items"]))
    else:
        yield (), data


def _check_object(data: Mapping[str, Any], path: PathTuple) -> Iterator[Problem]:
    group, _, version = str(data.get("apiVersion", "")).rpartition("/")
    kind = str(data.get("kind", ""))
    if group != GROUP:
        yield from check_pods(data, path)
        return
    yield from _check_version(kind, version, path)
    # What a retired version says is measured by the version that one has to move to.
    target = version if version in BETA_VERSIONS else "v1"
    if kind in {"ResourceClass", "DeviceClass"}:
        yield from check_class(data, path)
    elif kind == "ResourceClaim":
        yield from check_claim_spec(data.get("spec"), target, (*path, "spec"))
    elif kind == "ResourceClaimTemplate":
        inner = as_mapping(data.get("spec")).get("spec")
        yield from check_claim_spec(inner, target, (*path, "spec", "spec"))
    elif kind == "ResourceSlice":
        yield from check_slice(data, target, path)


def _check_version(kind: str, version: str, path: PathTuple) -> Iterator[Problem]:
    version_path = (*path, "apiVersion")
    if kind in RETIRED_KINDS:
        yield Problem((*path, "kind"), RETIRED_KINDS[kind])
    elif kind in STABLE_KINDS and version in RETIRED_VERSIONS:
        yield Problem(
            version_path, f"{GROUP}/{version} {RETIRED_VERSIONS[version]}; use {GROUP}/v1"
        )
    elif kind in STABLE_KINDS and version in BETA_VERSIONS:
        shape = _NEW_SHAPES.get(kind, "") if version == "v1beta1" else ""
        yield Problem(
            version_path,
            f"{GROUP}/{version} is off by default; use {GROUP}/v1"
            f" (Kubernetes 1.34 and newer){shape}",
            severity="warning",
        )
    elif kind in STABLE_KINDS and version != "v1":
        yield Problem(version_path, f"there is no {GROUP}/{version}; use {GROUP}/v1")
