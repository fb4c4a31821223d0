"""References between the manifests that are checked together.

Others may be in the cluster already, or come from a chart. So what is not among the manifests is
only worth a warning, and that only where others of its kind are there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

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
)
from conformance.scenario.lint.retired import GROUP, list_objects
from kubesim.apiserver import new_objects
from kubesim.resources import KINDS
from reference_allocator.api import PoolId, ResourceSlice
from reference_allocator.cluster.gathering import find_unknown_counter, keep_newest

Located = tuple[Document, Problem]
RequestsKey = tuple[str, str | None, str]
"""Kind, namespace and name of a claim or template."""


@dataclass(slots=True)
class GivenObjects:
    """The manifests of one check.

    Attributes:
        documents: each with what `add_manifest` has found in it.
        pools: slice -> where it is, by pool.
    """

    documents: list[tuple[Document, CreatedObjects]] = field(default_factory=list)
    pools: dict[PoolId, dict[ResourceSlice, tuple[Document, PathTuple]]] = field(
        default_factory=lambda: defaultdict(dict)
    )

    def add(self, document: Document, *, valid: bool) -> None:
        """Note the objects of a document; slices only where nothing else is wrong."""
        created = CreatedObjects()
        for path, obj in list_objects(as_mapping(document.data)):
            add_manifest(created, obj, path, 0)
            is_dra = as_text(obj.get("apiVersion")).startswith(f"{GROUP}/")
            if valid and is_dra and obj.get("kind") == "ResourceSlice":
                kind = KINDS["ResourceSlice"]
                item = ResourceSlice.from_dict(new_objects.take_in(kind, dict(obj)))
                self.pools[item.pool_id][item] = document, path
        if created.classes or created.pods or created.list_names("DeviceClass"):
            self.documents.append((document, created))

    def list_problems(self) -> Iterator[Located]:
        """Yield what names something that is not there, each with its document."""
        yield from self._check_classes()
        yield from self._check_pods()
        for slices in self.pools.values():
            yield from _check_pool(slices)

    def _check_classes(self) -> Iterator[Located]:
        class_names = {
            name for _, created in self.documents for name in created.list_names("DeviceClass")
        }
        for document, created in self.documents:
            for named, _ in created.classes:
                if class_names and named.name not in class_names:
                    yield document, _warn_of_absent(named, class_names)

    def _check_pods(self) -> Iterator[Located]:
        requests = [(document, created.requests) for document, created in self.documents]
        for document, created in self.documents:
            for pod in created.pods:
                for problem in _check_pod(pod, document, requests):
                    yield document, problem


def _warn_of_absent(named: NameAt, names: Iterable[str]) -> Problem:
    text = f"no {named.kind} {named.name!r} is among what is checked; {hint(named.name, names)}"
    return Problem(named.path, text, "warning")


def _check_pod(
    pod: PodShape,
    document: Document,
    requests: list[tuple[Document, dict[RequestsKey, frozenset[str]]]],
) -> Iterator[Problem]:
    """Yield names of claims and of their requests that are not there.

    Of several objects of a name, as examples have them, those of the pod's file are meant.
    """
    names_by_claim: dict[str, set[str]] = {}
    for pod_claim, named in pod.claims.items():
        candidates = [
            (holder, key[2], names)
            for holder, requests_by_key in requests
            for key, names in requests_by_key.items()
            if key[0] == named.kind and (pod.namespace is None or key[1] in (None, pod.namespace))
        ]
        same_name = [(holder, names) for holder, name, names in candidates if name == named.name]
        if candidates and not same_name:
            yield _warn_of_absent(named, [name for _, name, _ in candidates])
        same_file = [item for item in same_name if item[0].file == document.file]
        if same_name:
            names_by_claim[pod_claim] = set().union(*(names for _, names in same_file or same_name))
    for named, pod_claim in pod.requests:
        request_names = names_by_claim.get(pod_claim)
        if request_names is not None and named.name not in request_names:
            source = pod.claims[pod_claim]
            text = f"{source.kind} {source.name} has no request {named.name!r}"
            yield Problem(named.path, f"{text}; {hint(named.name, request_names)}")


def _check_pool(slices: dict[ResourceSlice, tuple[Document, PathTuple]]) -> Iterator[Located]:
    """Yield what is wrong in the newest generation of a pool, if all of it is there."""
    newest: list[ResourceSlice] = []
    for item in slices:
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
        document, path = slices[item]
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
