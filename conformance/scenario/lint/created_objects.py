"""What the steps of a scenario make: the names that its other steps may refer to.

Names are compared as they are written, with their variables.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from conformance.scenario.documents.yamlfile import (
    PathTuple,
    as_mapping,
    as_text,
    list_mappings,
    walk,
)
from conformance.scenario.expectations.rejected import RejectedExpectation
from conformance.scenario.lint.manifest_claims import CONTAINERS, SOURCES, pod_specs
from conformance.scenario.model import Scenario

BEFORE = -1  # The step of what is there before the first one.


class NameAt(NamedTuple):
    """The place where a name stands, and what it is that of."""

    path: PathTuple
    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class PodShape:
    """A pod, or the pods that a workload makes.

    Attributes:
        kind: ``Pod``, or the kind of the workload.
        name: of the pod or of the workload, whose pods have generated names that begin with it.
        namespace: None for that of the scenario.
        claims: name in ``resourceClaims`` -> the claim or template it names.
        requests: (place, name in ``resourceClaims``) of each request that a container names.
        nodes: the nodes that its affinity names.
    """

    kind: str
    name: str
    namespace: str | None
    containers: frozenset[str]
    claims: Mapping[str, NameAt]
    requests: tuple[tuple[NameAt, str], ...]
    nodes: tuple[NameAt, ...]
    step: int


@dataclass(slots=True)
class CreatedObjects:
    """All that the steps of a scenario make.

    Attributes:
        first: (kind, namespace, name) -> the step that makes it first.
        rejected: (kind, name) of what must be refused, and so is never there.
        requests: (kind, namespace, name) of a claim or template -> names of its requests.
        classes: (place of a DeviceClass's name in a claim or template, key of that in requests).
        inside: (place where a claim's constraint or configuration names a request, its requests).
        devices: names of all devices in ResourceSlices, also in changes of such.
    """

    creating_step: dict[tuple[str, str | None, str], int] = field(default_factory=dict)
    rejected: set[tuple[str, str]] = field(default_factory=set)
    pods: list[PodShape] = field(default_factory=list)
    requests: dict[tuple[str, str | None, str], frozenset[str]] = field(default_factory=dict)
    classes: list[tuple[NameAt, tuple[str, str | None, str]]] = field(default_factory=list)
    requests_named_inside: list[tuple[NameAt, frozenset[str]]] = field(default_factory=list)
    devices: set[str] = field(default_factory=set)

    def list_names(self, kind: str, namespace: str | None = None) -> list[str]:
        """Return names of a kind in a namespace (None: the scenario's, or none)."""
        return [key[2] for key in self.creating_step if key[:2] == (kind, namespace)]

    def pods_called(self, name: str) -> list[PodShape]:
        """Return the pods that a name in the scenario's namespace may mean."""
        own_pods = [pod for pod in self.pods if pod.namespace is None]
        exact = [pod for pod in own_pods if pod.kind == "Pod" and pod.name == name]
        return exact or [
            pod for pod in own_pods if pod.kind != "Pod" and name.startswith(f"{pod.name}-")
        ]


def collect_created_objects(scenario: Scenario) -> CreatedObjects:
    """Go through the steps and note what they make."""
    created = CreatedObjects()
    for node in scenario.spec.nodes:
        created.creating_step["Node", None, f"${{node.{node}}}"] = BEFORE
    for path, manifest in list_applied_objects(scenario):
        add_manifest(created, manifest, path, int(path[2]))
    for step in scenario.spec.steps:
        if step.patch is not None and step.patch.kind == "ResourceSlice":
            created.devices |= _list_device_names(step.patch.body)
        if step.update is not None and step.update.object.get("kind") == "ResourceSlice":
            created.devices |= _list_device_names(step.update.object)
        for expectation in step.expect or ():
            if isinstance(expectation, RejectedExpectation):
                refused = expectation.rejected.object or {}
                created.rejected.add((as_text(refused.get("kind")), get_name(refused)))
    return created


def list_applied_objects(scenario: Scenario) -> Iterator[tuple[PathTuple, Mapping[str, Any]]]:
    """Yield every object that a step makes, with its place; the index of the step is in it."""
    for index, step in enumerate(scenario.spec.steps):
        for position, manifest in enumerate(step.apply or ()):
            yield ("spec", "steps", index, "apply", position), manifest
        ssa = step.server_side_apply
        if ssa is not None and ssa.subresource is None:
            yield ("spec", "steps", index, "serverSideApply", "object"), ssa.object
        for position, manifest in enumerate(step.churn.objects if step.churn else ()):
            yield ("spec", "steps", index, "churn", "objects", position), manifest


def get_name(manifest: Mapping[str, Any]) -> str:
    """Return ``metadata.name``, empty if there is none."""
    return as_text(as_mapping(manifest.get("metadata")).get("name"))


def get_namespace(manifest: Mapping[str, Any]) -> str | None:
    """Return ``metadata.namespace``; None is the scenario's own."""
    return as_text(as_mapping(manifest.get("metadata")).get("namespace")) or None


def add_manifest(
    made: CreatedObjects, manifest: Mapping[str, Any], path: PathTuple, step: int
) -> None:
    """Note an object that was found at a path, and is made by a step."""
    kind, name = as_text(manifest.get("kind")), get_name(manifest)
    key = (kind, get_namespace(manifest), name)
    made.creating_step.setdefault(key, step)
    spec = as_mapping(manifest.get("spec"))
    if kind == "ResourceSlice":
        made.devices |= _list_device_names(spec)
    if kind in {"ResourceClaim", "ResourceClaimTemplate"}:
        inner, spec_path = spec, (*path, "spec")
        if kind == "ResourceClaimTemplate":
            inner, spec_path = as_mapping(spec.get("spec")), (*spec_path, "spec")
        names, classes = _read_requests(inner, spec_path)
        made.requests[key] = made.requests.get(key, frozenset()) | names
        made.classes += [(named, key) for named in classes]
        made.requests_named_inside += [
            (named, names) for named in _list_requests_named_inside(inner, spec_path)
        ]
    else:
        made.pods += [
            _describe_pod(manifest, pod, step, spec_path)
            for spec_path, pod in pod_specs(manifest, path)
        ]


def _list_device_names(part: Any) -> set[str]:
    """Return the names of devices and pool in a ResourceSlice, or in what changes one."""
    return {as_text(value.get("name")) for _, value in walk(part) if isinstance(value, dict)}


def _read_requests(spec: Mapping[str, Any], path: PathTuple) -> tuple[frozenset[str], list[NameAt]]:
    """Return names of a claim's requests (``request``, ``request/alternative``) and its classes."""
    names: set[str] = set()
    classes = []
    for index, request in list_mappings(as_mapping(spec.get("devices")).get("requests")):
        request_path = (*path, "devices", "requests", index)
        name = as_text(request.get("name"))
        names.add(name)
        exact_requests = [
            (request_path, request),
            ((*request_path, "exactly"), as_mapping(request.get("exactly"))),
        ]
        for position, alternative in list_mappings(request.get("firstAvailable")):
            names.add(f"{name}/{as_text(alternative.get('name'))}")
            exact_requests.append(((*request_path, "firstAvailable", position), alternative))
        for exact_path, exact_request in exact_requests:
            if device_class := as_text(exact_request.get("deviceClassName")):
                classes.append(
                    NameAt((*exact_path, "deviceClassName"), "DeviceClass", device_class)
                )
    return frozenset(names), classes


def _list_requests_named_inside(spec: Mapping[str, Any], path: PathTuple) -> Iterator[NameAt]:
    """Yield requests that are named by the claim's own constraints and configuration."""
    devices = as_mapping(spec.get("devices"))
    for group in ("constraints", "config"):
        for index, entry in list_mappings(devices.get(group)):
            listed = entry.get("requests")
            for position, name in enumerate(listed if isinstance(listed, list) else []):
                name_path = (*path, "devices", group, index, "requests", position)
                yield NameAt(name_path, "request", as_text(name))


def _describe_pod(
    manifest: Mapping[str, Any], spec: Mapping[str, Any], step: int, path: PathTuple
) -> PodShape:
    claims = {}
    for index, entry in list_mappings(spec.get("resourceClaims")):
        for source, kind in SOURCES.items():
            if name := as_text(entry.get(source)):
                field_path = (*path, "resourceClaims", index, source)
                claims[as_text(entry.get("name"))] = NameAt(field_path, kind, name)
    containers = set()
    requests = []
    for group in CONTAINERS:
        for index, container in list_mappings(spec.get(group)):
            containers.add(as_text(container.get("name")))
            claims_used = as_mapping(container.get("resources")).get("claims")
            for position, entry in list_mappings(claims_used):
                field_path = (*path, group, index, "resources", "claims", position, "request")
                if request := as_text(entry.get("request")):
                    requests.append(
                        (NameAt(field_path, "request", request), as_text(entry.get("name")))
                    )
    return PodShape(
        as_text(manifest.get("kind")),
        get_name(manifest),
        get_namespace(manifest),
        frozenset(containers),
        claims,
        tuple(requests),
        tuple(_list_nodes(spec, path)),
        step,
    )


def _list_nodes(spec: Mapping[str, Any], path: PathTuple) -> Iterator[NameAt]:
    """Yield the nodes that a pod is ``on``: fields of a node are its name alone."""
    for value_path, value in walk(spec.get("affinity"), (*path, "affinity")):
        if value_path[-2:-1] == ("values",) and "matchFields" in value_path:
            yield NameAt(value_path, "Node", as_text(value))
