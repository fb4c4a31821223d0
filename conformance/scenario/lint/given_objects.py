"""References between the manifests that are checked together.

Others may be in the cluster already, or come from a chart. So what is not among the manifests is
only worth a warning, and that only where others of its kind are there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from conformance.scenario.documents.validate import hint
from conformance.scenario.documents.yamlfile import (
    Document,
    PathTuple,
    Problem,
    as_mapping,
    as_text,
)
from conformance.scenario.lint.created_objects import (
    CreatedObjects,
    NameAt,
    PodShape,
    add_manifest,
    get_name,
    get_namespace,
)
from conformance.scenario.lint.retired import GROUP, list_objects
from kubesim.apiserver import new_objects
from kubesim.resources import KINDS
from kubesim.validation.allocation import ADMIN_LABEL, admin_refusal
from reference_allocator.api import ResourceSlice, schema
from reference_allocator.cluster.gathering import find_unknown_counter, keep_newest

_REQUESTS: Final = frozenset({"DeviceRequest", "ExactDeviceRequest"})

PlacedSlice = tuple[Document, PathTuple, Mapping[str, Any]]
Located = tuple[Document, Problem]
Requests = defaultdict[str, defaultdict[str, list[tuple[Document, str | None, frozenset[str]]]]]
"""Kind and name of claims and templates -> document, namespace and request names of each."""


@dataclass(slots=True)
class GivenObjects:
    """The manifests of one check.

    Attributes:
        documents: each with what `add_manifest` has found in it.
        namespaces: name -> labels.
        admin_requests: where claims and templates ask for admin access, and in which namespace.
        pools: driver and name of a pool -> its slices, and where they are.
    """

    documents: list[tuple[Document, CreatedObjects]] = field(default_factory=list)
    namespaces: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    admin_requests: list[tuple[Document, PathTuple, str | None]] = field(default_factory=list)
    pools: dict[tuple[str, str], list[PlacedSlice]] = field(
        default_factory=lambda: defaultdict(list)
    )

    def add(self, document: Document, *, valid: bool) -> None:
        """Note the objects of a document; slices only where nothing else is wrong."""
        created = CreatedObjects()
        for path, obj in list_objects(as_mapping(document.data)):
            if obj.get("kind") == "Namespace":
                labels = as_mapping(as_mapping(obj.get("metadata")).get("labels"))
                self.namespaces[get_name(obj)] = labels
            elif obj.get("kind") != "ResourceSlice":
                add_manifest(created, obj, path, 0)
                self._add_admin_requests(document, path, obj)
            elif valid and as_text(obj.get("apiVersion")).startswith(f"{GROUP}/"):
                pool = obj["spec"]["driver"], obj["spec"]["pool"]["name"]
                self.pools[pool].append((document, path, obj))
        if created.classes or created.pods or created.list_names("DeviceClass"):
            self.documents.append((document, created))

    def _add_admin_requests(
        self, document: Document, path: PathTuple, obj: Mapping[str, Any]
    ) -> None:
        root = schema.root_of(as_text(obj.get("kind")), as_text(obj.get("apiVersion")))
        self.admin_requests += [
            (document, (*place, "adminAccess"), get_namespace(obj))
            for place, _, request in schema.list_parts(root or "", obj, _REQUESTS, path)
            if request.get("adminAccess") is True
        ]

    def list_problems(self) -> Iterator[Located]:
        """Yield what names something that is not there, each with its document."""
        yield from self._check_classes()
        yield from self._check_pods()
        yield from self._check_admin_access()
        for slices in self.pools.values():
            if len(slices) > 1 or any(map(_has_counters, slices)):
                yield from _check_pool(slices)

    def _check_classes(self) -> Iterator[Located]:
        class_names = {
            name for _, created in self.documents for name in created.list_names("DeviceClass")
        }
        for document, created in self.documents:
            for named, _ in created.classes:
                if class_names and named.name not in class_names:
                    yield document, _warn_of_absent(named, class_names)

    def _check_admin_access(self) -> Iterator[Located]:
        for document, path, namespace in self.admin_requests:
            labels = self.namespaces.get(namespace) if namespace is not None else None
            if labels is None:
                where = f"namespace {namespace}" if namespace else "the namespace"
                text = f"is refused unless {where} has the label {ADMIN_LABEL}: 'true'"
                yield document, Problem(path, f"{text}; it is not among what is checked", "warning")
            elif labels.get(ADMIN_LABEL) != "true":
                yield document, Problem(path, admin_refusal("").body)

    def _check_pods(self) -> Iterator[Located]:
        requests: Requests = defaultdict(lambda: defaultdict(list))
        for document, created in self.documents:
            for (kind, namespace, name), request_names in created.requests.items():
                requests[kind][name].append((document, namespace, request_names))
        for document, created in self.documents:
            for pod in created.pods:
                for problem in _check_pod(pod, document, requests):
                    yield document, problem


def _warn_of_absent(named: NameAt, names: Iterable[str]) -> Problem:
    text = f"no {named.kind} {named.name!r} is among what is checked; {hint(named.name, names)}"
    return Problem(named.path, text, "warning")


def _check_pod(pod: PodShape, document: Document, requests: Requests) -> Iterator[Problem]:
    """Yield names of claims and of their requests that are not there.

    Of several objects of a name, as examples have them, those of the pod's file are meant.
    """
    names_by_claim: dict[str, set[str]] = {}
    for pod_claim, named in pod.claims.items():
        of_kind = requests[named.kind]
        same_name = _in_namespace(of_kind.get(named.name, ()), pod.namespace)
        if not same_name:
            others = [
                name for name, given in of_kind.items() if _in_namespace(given, pod.namespace)
            ]
            if others:
                yield _warn_of_absent(named, others)
        same_file = [item for item in same_name if item[0].file == document.file]
        if same_name:
            names_by_claim[pod_claim] = set().union(*(names for _, names in same_file or same_name))
    for named, pod_claim in pod.requests:
        request_names = names_by_claim.get(pod_claim)
        if request_names is not None and named.name not in request_names:
            source = pod.claims[pod_claim]
            text = f"{source.kind} {source.name} has no request {named.name!r}"
            yield Problem(named.path, f"{text}; {hint(named.name, request_names)}")


def _in_namespace(
    given: Iterable[tuple[Document, str | None, frozenset[str]]], namespace: str | None
) -> list[tuple[Document, frozenset[str]]]:
    """Return those that may be of a pod's namespace; where none is said, it may be any."""
    return [
        (document, names)
        for document, own_namespace, names in given
        if namespace is None or own_namespace in (None, namespace)
    ]


def _has_counters(placed: PlacedSlice) -> bool:
    spec = placed[2]["spec"]
    devices = [item.get("basic") or item for item in spec.get("devices") or []]
    return bool(spec.get("sharedCounters")) or any("consumesCounters" in item for item in devices)


def _check_pool(placed_slices: Iterable[PlacedSlice]) -> Iterator[Located]:
    """Yield what is wrong in the newest generation of a pool, if all of it is there."""
    newest: list[ResourceSlice] = []
    places: dict[ResourceSlice, tuple[Document, PathTuple]] = {}
    for document, path, obj in placed_slices:
        stored = new_objects.take_in(KINDS["ResourceSlice"], dict(obj))
        item = ResourceSlice.from_dict(stored)
        places[item] = document, path
        keep_newest(newest, item)
    if len(newest) != newest[0].resource_slice_count:
        return
    counters = {
        counter_set.name: counter_set.counters
        for item in newest
        for counter_set in item.shared_counters
    }
    consumed = {
        consumption.counter_set
        for item in newest
        for device in item.devices
        for consumption in device.consumes_counters
    }
    device_names: set[str] = set()
    for item in newest:
        document, path = places[item]
        for index, device in enumerate(item.devices):
            place = (*path, "spec", "devices", index)
            if unknown := find_unknown_counter(device, counters):
                text = f"{unknown} in the pool; no device of it can be allocated"
                yield document, Problem((*place, "consumesCounters"), text)
            if device.name in device_names:
                text = f"{device.name!r} is in another slice of the pool, too"
                yield document, Problem((*place, "name"), f"{text}; no device can be allocated")
        device_names |= {device.name for device in item.devices}
        for index, counter_set in enumerate(item.shared_counters):
            if counter_set.name not in consumed:
                place = (*path, "spec", "sharedCounters", index, "name")
                text = f"no device of the pool consumes counters of {counter_set.name!r}"
                yield document, Problem(place, text, "warning")
