"""Makes a snapshot of the objects that are read from a dump, one by one.

Objects come as an API server has stored them, or as somebody has typed them, so that defaults are
filled in and old versions converted. What a decision does not read is dropped at once: Secrets, env
and logs are never kept (`capture.keep_relevant`, `seam.pods.reduced_pod`).
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple

from conformance.compare.evidence import claim_names, has_ended, named_classes
from conformance.seam.pods import reduced_pod
from conformance.targets.cluster.capture import keep_relevant
from conformance.targets.cluster.snapshots import TAINT_RULE, allocation_of, by_name, make_snapshot
from kube.api import DRA_GROUP, DRA_VERSIONS
from kube.base.errors import UsageError
from kube.base.strictjson import make_sharing_hook, share_parts
from kube.base.text import join_some
from kube.manifests import Manifest
from kube.values import Obj
from kubesim.apiserver.conversion import to_storage
from kubesim.store import clone
from kubesim.world import KUBERNETES
from reference_allocator.api import DeviceClass, Node, ResourceClaim, ResourceSlice, reading
from reference_allocator.api.defaulting import default_claim, default_claim_spec, default_slice
from reference_allocator.gates import gates_for_version

_KUBECTL: Final = {
    "ResourceSlice": "resourceslices",
    "DeviceClass": "deviceclasses",
    "ResourceClaim": "resourceclaims -A",
    "ResourceClaimTemplate": "resourceclaimtemplates -A",
    "Node": "nodes",
    "Pod": "pods -A",
    TAINT_RULE: "devicetaintrules",
}
"""The kinds that an allocation depends on -> what `kubectl get` calls them."""

_NAMESPACED: Final = frozenset({"ResourceClaim", "ResourceClaimTemplate", "Pod"})
_RULE_VERSIONS: Final = (*DRA_VERSIONS, "v1alpha3")
_VERSION: Final = re.compile(r"\d+\.\d+\.\d")
_MAX_TOLD: Final = 20  # problems of one kind that are named

_READERS: Final[Mapping[str, Callable[[object], object]]] = {
    "ResourceSlice": ResourceSlice.from_dict,
    "DeviceClass": DeviceClass.from_dict,
    "ResourceClaim": ResourceClaim.from_dict,
    "Node": Node.from_dict,
}


class UnreadError(Exception):
    """An object cannot be used; says why."""


class Gathering:
    """The objects that were read until now, reduced."""

    def __init__(self, report_unread: Callable[[str], object]) -> None:
        self._objects: dict[tuple[str, str, str], _Kept] = {}
        self._share = make_sharing_hook()
        self._kubelets: set[str] = set()
        self._problems = Counter[str]()
        self._report_unread = report_unread

    @property
    def is_empty(self) -> bool:
        return not self._objects

    def take(self, manifest: Manifest, name: str) -> None:
        """Keep what an allocation depends on of one object of the text ``name``."""
        obj, where = manifest.obj, f"{name}:{manifest.line}"
        kind = obj.get("kind")
        if kind == "Status" and obj.get("status") == "Failure":
            self._tell(f"{where}: is a refusal of an API server ({obj.get('code')}), and no object")
        if kind not in _KUBECTL:
            return
        try:
            prepared = share_parts(prepare_object(obj), self._share)
            version = int(obj["metadata"].get("resourceVersion") or 0)
            self._add(_Kept(prepared, where, version))
            if kind == "Node":
                info = (obj.get("status") or {}).get("nodeInfo") or {}
                self._kubelets.add(str(info.get("kubeletVersion") or "").removeprefix("v"))
        except (reading.InputError, UnreadError) as error:
            self._tell(f"{where}: {kind} {_label(obj)}: {error}")
        except (AttributeError, KeyError, TypeError, ValueError):
            self._tell(f"{where}: {kind} {_label(obj)}: has not the form of its kind")

    def _tell(self, problem: str) -> None:
        sort = problem.rpartition(": ")[2]
        self._problems[sort] += 1
        if self._problems[sort] <= _MAX_TOLD:
            self._report_unread(problem)
        elif self._problems[sort] == _MAX_TOLD + 1:
            self._report_unread(f"and more, too: {sort}")

    def _add(self, kept: _Kept) -> None:
        key = (kept.obj["kind"], *by_name(kept.obj))
        known = self._objects.get(key)
        if known is None or kept.version > known.version:
            self._objects[key] = kept
        elif kept.version == known.version == 0 and kept.obj != known.obj:
            # Of a stored object the newer is taken: must-gather has pods twice.
            name = "/".join(filter(None, key[1:]))
            self._tell(
                f"{kept.where}: {key[0]} {name}, of {known.where}, is there again and"
                " differs; the first is taken"
            )

    def make_document(
        self, name: str, report_missing: Callable[[str], object], kubernetes: str = ""
    ) -> Obj:
        """Return the snapshot's document; tell what is not there, and what is assumed.

        ``kubernetes``: its version; empty: the newest kubelet's.
        Raises UsageError: the text or folder ``name`` has nothing that an allocation depends on.
        """
        if self.is_empty:
            kinds = ", ".join(_KUBECTL)
            problem = f"has none of what an allocation depends on ({kinds})"
            plurals = ",".join(text.partition(" ")[0] for text in _KUBECTL.values())
            command = f"kubectl get {plurals} -A -o yaml"
            raise UsageError(f"{name}: {problem}; give what `{command}` prints")
        objects = [kept.obj for kept in self._objects.values()]
        by_kind: dict[str, list[Obj]] = {kind: [] for kind in _KUBECTL}
        for obj in sorted(objects, key=by_name):
            by_kind[obj["kind"]].append(obj)
        pods, templates, claims = (
            by_kind["Pod"],
            by_kind["ResourceClaimTemplate"],
            by_kind["ResourceClaim"],
        )
        if not by_kind["Node"]:
            names = {item["spec"].get("nodeName") for item in by_kind["ResourceSlice"]} - {None, ""}
            by_kind["Node"] = [_bare_node(name) for name in sorted(names)]
            instead = (
                f"; taken as bare names from the slices: {join_some(sorted(names))}"
                if names
                else ""
            )
            report_missing(_ask_for("Node", instead=instead))
        for missing in _list_missing(by_kind):
            report_missing(missing)
        reserved = {
            consumer.get("uid")
            for claim in claims
            for consumer in (claim.get("status") or {}).get("reservedFor") or ()
        }
        kept_pods = [pod for pod in pods if reduced_pod(pod, reserved) is not None]
        decided = [obj for kind in (*_READERS, TAINT_RULE) for obj in by_kind[kind]]
        waiting = [claim for claim in claims if not allocation_of(claim)]
        version = kubernetes or self._find_version(report_missing)
        document = make_snapshot(version, {}, decided, waiting)
        return (
            document
            | ({"pods": kept_pods} if pods else {})
            | ({"templates": templates} if templates else {})
        )

    def _find_version(self, report_missing: Callable[[str], object]) -> str:
        """Return the newest kubelet's version: no kubelet is newer than its API server."""
        known = [version for version in self._kubelets if _VERSION.match(version)]
        if known:
            newest = max(known, key=lambda version: [*map(int, version.split(".")[:2])])
            try:
                gates_for_version(newest)
            except ValueError as error:
                minors = f"Kubernetes {KUBERNETES} is assumed; `--kubernetes` takes another"
                report_missing(f"{error}: {minors}")
                return KUBERNETES
            return newest
        report_missing(
            f"no Node with a version in what was given: Kubernetes {KUBERNETES} is assumed"
        )
        return KUBERNETES


class _Kept(NamedTuple):
    obj: Obj
    where: str
    version: int
    """`metadata.resourceVersion`, 0 where there is none."""


def identify_object(obj: Obj) -> Obj:
    """Return an object with its namespace and uid, which are made up where they are missing.

    Raises InputError, UnreadError: it has no name, or is of an API version that is not read.
    """
    kind, (group, _, version) = obj["kind"], str(obj.get("apiVersion")).rpartition("/")
    if kind in ("Node", "Pod"):
        group, version = "v1" if (group, version) == ("", "v1") else "", ""
        if not group:
            raise UnreadError(f"its apiVersion is {obj.get('apiVersion')}, not v1")
    elif group != DRA_GROUP or version not in (
        _RULE_VERSIONS if kind == TAINT_RULE else DRA_VERSIONS
    ):
        raise UnreadError(
            f"{obj.get('apiVersion')} is served by no Kubernetes since 1.34; get it from a newer"
            " one"
        )
    metadata = dict(reading.required_child(obj, "metadata", reading.expect_object))
    name = reading.required_child(
        obj, "metadata", lambda meta: reading.required_string(meta, "name")
    )
    if kind in _NAMESPACED:
        metadata.setdefault("namespace", "default")
    metadata.setdefault("uid", "-".join(("given", kind, str(metadata.get("namespace", "")), name)))
    return {**obj, "metadata": metadata}


def prepare_object(obj: Obj) -> Obj:
    """Return an object as a snapshot has it: converted, with defaults, checked and reduced.

    Raises InputError, UnreadError: it cannot be used.
    """
    obj = identify_object(obj)
    kind, metadata = obj["kind"], obj["metadata"]
    if str(obj["apiVersion"]).endswith("/v1beta1"):
        obj = clone(obj)
        to_storage(obj)
    elif kind not in ("Node", "Pod"):
        obj["apiVersion"] = f"{DRA_GROUP}/v1" if kind != TAINT_RULE else obj["apiVersion"]
    match kind:
        case "ResourceClaim":
            obj = default_claim(obj)
        case "ResourceClaimTemplate":
            spec = reading.required_child(obj, "spec", reading.expect_object)
            obj["spec"] = {**spec, "spec": default_claim_spec(spec.get("spec") or {})}
        case "ResourceSlice":
            obj = default_slice(obj)
    if kind in _READERS:
        _READERS[kind](obj)
    if kind == "Pod":
        return reduced_pod(obj, {metadata["uid"]}) or {}
    return keep_relevant(obj)


def _label(obj: Obj) -> str:
    meta = obj.get("metadata")
    return (
        str(meta.get("name")) if isinstance(meta, dict) and meta.get("name") else "without a name"
    )


def _bare_node(name: str) -> Obj:
    meta = {"name": name, "labels": {"kubernetes.io/hostname": name}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": meta, "spec": {}, "status": {}}


def _list_missing(by_kind: Mapping[str, list[Obj]]) -> Iterator[str]:
    """Yield what objects name and what is not there, with the command that gives it."""
    present = {kind: set(map(by_name, objects)) for kind, objects in by_kind.items()}
    wanted: dict[str, dict[tuple[str, str], None]] = defaultdict(dict)
    for template in by_kind["ResourceClaimTemplate"]:
        for name in named_classes(template["spec"]):
            wanted["DeviceClass"]["", name] = None
    for claim in by_kind["ResourceClaim"]:
        for name in named_classes(claim):
            wanted["DeviceClass"]["", name] = None
    for pod in by_kind["Pod"]:
        if has_ended(pod):
            continue
        namespace = pod["metadata"]["namespace"]
        for name in claim_names(pod):
            wanted["ResourceClaim"][namespace, name] = None
        if not pod["spec"].get("nodeName"):
            for entry in pod["spec"].get("resourceClaims") or ():
                if entry.get("resourceClaimTemplateName"):
                    wanted["ResourceClaimTemplate"][
                        namespace, entry["resourceClaimTemplateName"]
                    ] = None
    for kind, names in wanted.items():
        absent = sorted("/".join(filter(None, key)) for key in names if key not in present[kind])
        if absent:
            yield _ask_for(kind, join_some(absent))
    if not present["ResourceSlice"]:
        yield _ask_for("ResourceSlice")
    if not present["Pod"]:
        yield _ask_for("Pod")


def _ask_for(kind: str, names: str = "", instead: str = "") -> str:
    what = f"{kind} {names}" if names else kind
    return f"no {what} in what was given: `kubectl get {_KUBECTL[kind]} -o yaml`{instead}"
