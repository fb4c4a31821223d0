"""The Kubernetes API as values: objects, what names them, and requests that change them.

Objects are plain JSON (``dict`` with the API's camelCase names, ``apiVersion`` and ``kind`` set).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

Obj = dict[str, Any]
"""One Kubernetes object, or a part of one, as JSON."""

KUBE_SCHEDULER: Final = "default-scheduler"
"""``spec.schedulerName`` of a pod that names none (pkg/apis/core/v1/defaults.go)."""

POD_CLAIM_ANNOTATION: Final = "resource.kubernetes.io/pod-claim-name"
"""On a generated ResourceClaim (k8s.io/api/resource/v1, PodResourceClaimAnnotation)."""

_MAX_GENERATE_NAME: Final = 57


@dataclass(frozen=True, slots=True)
class Ref:
    """Names one object: ``namespace`` is None for a cluster-scoped kind."""

    api_version: str
    kind: str
    name: str
    namespace: str | None = None

    @classmethod
    def of(cls, obj: Mapping[str, Any]) -> Ref:
        """Return the reference to an object with ``apiVersion``, ``kind`` and ``metadata.name``."""
        meta = obj["metadata"]
        return cls(obj["apiVersion"], obj["kind"], meta["name"], meta.get("namespace"))

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


@dataclass(frozen=True, slots=True)
class Query:
    """Which objects of one kind are meant, in the words that lists and watches have.

    Attributes:
        namespace: in which they are; None is the scope's (or none, for a cluster-scoped kind).
        fields: a field selector, which the API server evaluates.
    """

    api_version: str
    kind: str
    labels: Mapping[str, str] | None = None
    namespace: str | None = None
    fields: Mapping[str, str] | None = None


NODES_GROUP: Final = "system:nodes"
"""The group of all kubelets (``user.NodesGroup`` of k8s.io/apiserver)."""


@dataclass(frozen=True, slots=True)
class User:
    """In whose name a request is made: a service account, or the kubelet of a node.

    Attributes:
        namespace: the service account's; "" for a kubelet.
        name: the service account's; "" for a kubelet.
        node: the node on which it acts, as the token of a pod there says, or whose kubelet it is;
            "" for none.
    """

    namespace: str
    name: str
    node: str = ""

    @classmethod
    def kubelet_of(cls, node: str) -> User:
        """Return the account of a node's kubelet."""
        return cls("", "", node)

    @property
    def is_kubelet(self) -> bool:
        return not self.name

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups that must be named where the user is impersonated; others follow from it."""
        return (NODES_GROUP,) if self.is_kubelet else ()

    def __str__(self) -> str:
        if self.is_kubelet:
            return f"system:node:{self.node}"
        return f"system:serviceaccount:{self.namespace}:{self.name}"


@dataclass(frozen=True, slots=True)
class FieldManager:
    """Who applies fields by server-side apply, and whether against the will of others."""

    name: str
    force: bool = False


@dataclass(frozen=True, slots=True)
class Request:
    """A request that changes something, as a scenario words it.

    Attributes:
        ref: the object; for ``deletecollection`` its name is empty.
        body: the object, the patch (a mapping is a merge patch, a list a JSON patch), or the
            options of a deletion (``metav1.DeleteOptions``).
        subresource: for example ``status``; with ``create`` ``eviction`` or ``binding``.
        labels: of what is deleted by ``deletecollection``.
        user: in whose name; None is the user who runs the suite.
        manager: of a patch that is a server-side apply; the body is what is applied.
    """

    verb: Literal["create", "update", "patch", "delete", "deletecollection"]
    ref: Ref
    body: Any = None
    subresource: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    dry_run: bool = False
    user: User | None = None
    manager: FieldManager | None = None


def cells_of(table: Mapping[str, Any]) -> Mapping[str, str]:
    """Return column -> text of the only row of a ``meta.k8s.io/v1`` Table; nothing without one."""
    names = [str(column["name"]) for column in table.get("columnDefinitions") or ()]
    rows: Sequence[Any] = table.get("rows") or ()
    return dict(zip(names, map(str, rows[0]["cells"]), strict=True)) if len(rows) == 1 else {}


def device_key(entry: Mapping[str, Any]) -> tuple[str | None, ...]:
    """Return what tells the device, or share of one, of a result or a report from any other."""
    return tuple(entry.get(field) for field in ("driver", "pool", "device", "shareID"))


def selected_node(selector: Mapping[str, Any] | None) -> str:
    """Return the one node that a NodeSelector names, "" where it names none or says more.

    As ``nodeNameFromAllocation`` of pkg/registry/resource/utils.go.
    """
    match selector:
        case {"nodeSelectorTerms": [{"matchFields": [field], **more}]} if not any(more.values()):
            match field:
                case {"key": "metadata.name", "operator": "In", "values": [node]}:
                    return str(node)
    return ""


def generate_name(pod: str, pod_claim: str) -> str:
    """``metadata.generateName`` of the claim that is made for an entry of a pod's resourceClaims.

    As pkg/controller/resourceclaim/controller.go of Kubernetes: both are cut where it is too long.
    """
    name = f"{pod}-{pod_claim}-"
    if len(name) <= _MAX_GENERATE_NAME:
        return name
    cut_pod = pod[: len(pod) * _MAX_GENERATE_NAME // len(name)]
    cut_claim = pod_claim[: len(pod_claim) * _MAX_GENERATE_NAME // len(name)]
    return f"{cut_pod}-{cut_claim}"
