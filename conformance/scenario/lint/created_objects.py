"""What the steps of a scenario make: the names that its other steps may refer to.

Names are compared as they are written, with their variables.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from conformance.scenario.documents.yamlfile import PathTuple, elements, mapping, text, walk
from conformance.scenario.expectations.rejected import RejectedExpectation
from conformance.scenario.lint.manifests.claims import CONTAINERS, SOURCES, pod_specs
from conformance.scenario.model import Scenario

BEFORE = -1  # The step of what is there before the first one.


class Named(NamedTuple):
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
    claims: Mapping[str, Named]
    requests: tuple[tuple[Named, str], ...]
    nodes: tuple[Named, ...]
    step: int


@dataclass(slots=True)
class Made:
    """All that the steps of a scenario make.

    Attributes:
        first: (kind, namespace, name) -> the step that makes it first.
        rejected: (kind, name) of what must be refused, and so is never there.
        requests: (kind, namespace, name) of a claim or template -> names of its requests.
        classes: (place of a DeviceClass's name in a claim or template, key of that in requests).
        inside: (place where a claim's constraint or configuration names a request, its requests).
        devices: names of all devices in ResourceSlices, also in changes of such.
    """

    first: dict[tuple[str, str | None, str], int] = field(default_factory=dict)
    rejected: set[tuple[str, str]] = field(default_factory=set)
    pods: list[PodShape] = field(default_factory=list)
    requests: dict[tuple[str, str | None, str], frozenset[str]] = field(default_factory=dict)
    classes: list[tuple[Named, tuple[str, str | None, str]]] = field(default_factory=list)
    inside: list[tuple[Named, frozenset[str]]] = field(default_factory=list)
    devices: set[str] = field(default_factory=set)

    def names(self, kind: str, namespace: str | None = None) -> list[str]:
        """Names of a kind in a namespace (None: the scenario's, or none)."""
        return [key[2] for key in self.first if key[:2] == (kind, namespace)]

    def pods_called(self, name: str) -> list[PodShape]:
        """The pods that a name in the scenario's namespace may mean."""
        own = [pod for pod in self.pods if pod.namespace is None]
        exact = [pod for pod in own if pod.kind == "Pod" and pod.name == name]
        return exact or [
            pod for pod in own if pod.kind != "Pod" and name.startswith(f"{pod.name}-")
        ]


def made_by(scenario: Scenario) -> Made:
    """Go through the steps and note what they make."""
    made = Made()
    for node in scenario.spec.nodes:
        made.first["Node", None, f"${{node.{node}}}"] = BEFORE
    for path, manifest in applied(scenario):
        _note(made, manifest, path)
    for step in scenario.spec.steps:
        if step.patch is not None and step.patch.kind == "ResourceSlice":
            made.devices |= _devices(step.patch.body)
        if step.update is not None and step.update.object.get("kind") == "ResourceSlice":
            made.devices |= _devices(step.update.object)
        for expectation in step.expect or ():
            if isinstance(expectation, RejectedExpectation):
                refused = expectation.rejected.object or {}
                made.rejected.add((text(refused.get("kind")), name_of(refused)))
    return made


def applied(scenario: Scenario) -> Iterator[tuple[PathTuple, Mapping[str, Any]]]:
    """Every object that a step makes, with its place; the index of the step is in it."""
    for index, step in enumerate(scenario.spec.steps):
        for position, manifest in enumerate(step.apply or ()):
            yield ("spec", "steps", index, "apply", position), manifest
        ssa = step.server_side_apply
        if ssa is not None and ssa.subresource is None:
            yield ("spec", "steps", index, "serverSideApply", "object"), ssa.object
        for position, manifest in enumerate(step.churn.objects if step.churn else ()):
            yield ("spec", "steps", index, "churn", "objects", position), manifest


def name_of(manifest: Mapping[str, Any]) -> str:
    """``metadata.name``, empty if there is none."""
    return text(mapping(manifest.get("metadata")).get("name"))


def namespace_of(manifest: Mapping[str, Any]) -> str | None:
    """``metadata.namespace``; None is the scenario's own."""
    return text(mapping(manifest.get("metadata")).get("namespace")) or None


def _note(made: Made, manifest: Mapping[str, Any], path: PathTuple) -> None:
    kind, name = text(manifest.get("kind")), name_of(manifest)
    key = (kind, namespace_of(manifest), name)
    step = int(path[2])
    made.first.setdefault(key, step)
    spec = mapping(manifest.get("spec"))
    if kind == "ResourceSlice":
        made.devices |= _devices(spec)
    if kind in {"ResourceClaim", "ResourceClaimTemplate"}:
        inner, place = spec, (*path, "spec")
        if kind == "ResourceClaimTemplate":
            inner, place = mapping(spec.get("spec")), (*place, "spec")
        names, classes = _requests(inner, place)
        made.requests[key] = made.requests.get(key, frozenset()) | names
        made.classes += [(named, key) for named in classes]
        made.inside += [(named, names) for named in _inside(inner, place)]
    else:
        made.pods += [_pod(manifest, pod, step, place) for place, pod in pod_specs(manifest, path)]


def _devices(part: Any) -> set[str]:
    """Names of what is in a ResourceSlice, or in what changes one: its devices and its pool."""
    return {text(value.get("name")) for _, value in walk(part) if isinstance(value, dict)}


def _requests(spec: Mapping[str, Any], path: PathTuple) -> tuple[frozenset[str], list[Named]]:
    """Names of a claim's requests (``request``, ``request/alternative``) and its classes."""
    names: set[str] = set()
    classes = []
    for index, request in elements(mapping(spec.get("devices")).get("requests")):
        place = (*path, "devices", "requests", index)
        name = text(request.get("name"))
        names.add(name)
        wanted = [(place, request), ((*place, "exactly"), mapping(request.get("exactly")))]
        for position, alternative in elements(request.get("firstAvailable")):
            names.add(f"{name}/{text(alternative.get('name'))}")
            wanted.append(((*place, "firstAvailable", position), alternative))
        for where, one in wanted:
            if device_class := text(one.get("deviceClassName")):
                classes.append(Named((*where, "deviceClassName"), "DeviceClass", device_class))
    return frozenset(names), classes


def _inside(spec: Mapping[str, Any], path: PathTuple) -> Iterator[Named]:
    """Requests that are named by the claim's own constraints and configuration."""
    devices = mapping(spec.get("devices"))
    for group in ("constraints", "config"):
        for index, entry in elements(devices.get(group)):
            listed = entry.get("requests")
            for position, name in enumerate(listed if isinstance(listed, list) else []):
                place = (*path, "devices", group, index, "requests", position)
                yield Named(place, "request", text(name))


def _pod(
    manifest: Mapping[str, Any], spec: Mapping[str, Any], step: int, path: PathTuple
) -> PodShape:
    claims = {}
    for index, entry in elements(spec.get("resourceClaims")):
        for source, kind in SOURCES.items():
            if name := text(entry.get(source)):
                place = (*path, "resourceClaims", index, source)
                claims[text(entry.get("name"))] = Named(place, kind, name)
    containers = set()
    requests = []
    for group in CONTAINERS:
        for index, container in elements(spec.get(group)):
            containers.add(text(container.get("name")))
            wanted = mapping(container.get("resources")).get("claims")
            for position, entry in elements(wanted):
                place = (*path, group, index, "resources", "claims", position, "request")
                if request := text(entry.get("request")):
                    requests.append((Named(place, "request", request), text(entry.get("name"))))
    return PodShape(
        text(manifest.get("kind")),
        name_of(manifest),
        namespace_of(manifest),
        frozenset(containers),
        claims,
        tuple(requests),
        tuple(_nodes(spec, path)),
        step,
    )


def _nodes(spec: Mapping[str, Any], path: PathTuple) -> Iterator[Named]:
    """The nodes that a pod is ``on``: fields of a node are its name alone."""
    for place, value in walk(spec.get("affinity"), (*path, "affinity")):
        if place[-2:-1] == ("values",) and "matchFields" in place:
            yield Named(place, "Node", text(value))
