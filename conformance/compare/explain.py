"""Why is this claim pending? Asked of a snapshot, or of a cluster that is only read.

The answer is the reference allocator's: for each node, which rule removed how many devices.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from conformance.errors import UsageError
from conformance.strictjson import read_object
from conformance.targets.seam.scope import Scope
from conformance.targets.seam.values import Obj, Ref
from reference_allocator.api.reading import InputError
from reference_allocator.explain import explain
from reference_allocator.snapshot import Snapshot

SECONDS = 30.0  # The longest that the search for a smallest set of claims in conflict may take.
_MAX_BYTES = 256 << 20
_ALLOCATES = (
    "the reference allocator finds devices on {nodes}, so no rule of DRA keeps the claim pending: "
    "look for other reasons in the pod's events (taints, affinity, resources)"
)


def explain_file(path: Path) -> str:
    """Why the claims of a Snapshot file are pending, by node. Raises UsageError: no snapshot."""
    try:
        return _text(Snapshot.from_dict(read_object(path, _MAX_BYTES)))
    except InputError as error:
        raise UsageError(f"{path}: is not a snapshot: {error}") from None


def explain_pending(scope: Scope, name: str) -> str:
    """Why a claim of the scope's namespace, or the claims of a pod there, are pending.

    Raises:
        UsageError: there is neither, or nothing of it waits for an allocation.
        ApiError: something that an allocation depends on may not be read.
        TargetError: no answer.
    """
    subject = f"{scope.namespace}/{name}"
    wanted = _claims_of(scope, name, subject)
    snapshot = scope.snapshot()
    waiting = [item for item in snapshot["claims"] if item["metadata"]["name"] in wanted]
    if not waiting:
        raise UsageError(f"{subject}: is not pending: {_allocated(snapshot, scope, wanted)}")
    return _text(Snapshot.from_dict({**snapshot, "claims": waiting}))


def _claims_of(scope: Scope, name: str, subject: str) -> frozenset[str]:
    """Names of the claims in question: they are allocated together."""
    if scope.get(Ref("resource.k8s.io/v1", "ResourceClaim", name, scope.namespace)) is not None:
        return frozenset({name})
    pod = scope.get(Ref("v1", "Pod", name, scope.namespace))
    if pod is None:
        raise UsageError(f"{subject}: there is no ResourceClaim and no Pod of that name")
    generated = {
        item["name"]: item.get("resourceClaimName")
        for item in pod.get("status", {}).get("resourceClaimStatuses", ())
    }
    found = {
        item.get("resourceClaimName") or generated.get(item["name"])
        for item in pod["spec"].get("resourceClaims", ())
    }
    extended = pod.get("status", {}).get("extendedResourceClaimStatus", {})
    found.add(extended.get("resourceClaimName"))
    names = frozenset(item for item in found if item)
    if not names:
        raise UsageError(f"{subject}: the pod has no ResourceClaims (yet)")
    return names


def _allocated(snapshot: Obj, scope: Scope, names: Iterable[str]) -> str:
    parts = []
    for claim in snapshot["allocated"]:
        meta = claim["metadata"]
        if meta["namespace"] == scope.namespace and meta["name"] in names:
            results = claim["status"]["allocation"].get("devices", {}).get("results", ())
            devices = [f"{item['driver']}/{item['pool']}/{item['device']}" for item in results]
            parts.append(f"claim {meta['name']} has {', '.join(devices) or 'no devices'}")
    return "; ".join(parts) or "its claims do not exist (yet)"


def _text(snapshot: Snapshot) -> str:
    if not snapshot.claims:
        return "no claim of the snapshot waits for an allocation"
    if not snapshot.nodes:
        return "there is no node"
    found = explain(snapshot, seconds=SECONDS)
    names = ", ".join(
        f"{item['metadata'].get('namespace', '')}/{item['metadata']['name']}"
        for item in snapshot.claims
    )
    fitting = [report.node for report in found.nodes if report.kind == "allocated"]
    hint = "\n" + _ALLOCATES.format(nodes=", ".join(fitting)) if fitting else ""
    return f"{names}: {found.text}{hint}"
