"""Which priority a new pod has: the admission plugin Priority.

Source: plugin/pkg/admission/priority/admission.go. The two classes that every cluster has
(system-cluster-critical and system-node-critical) are not there.
"""

from __future__ import annotations

from conformance.targets.reference.store import Store, name_of
from conformance.targets.seam.values import ApiError, Obj


def admit(store: Store, pod: Obj) -> None:
    """Give a new pod the priority of its class, or of the default class, in place.

    Raises:
        ApiError: 403 Forbidden: there is no such class, or the pod says another priority.
    """
    spec = pod["spec"]
    wanted = spec.get("priorityClassName")
    if wanted:
        found = store.get("PriorityClass", "", wanted)
        if found is None:
            raise _forbidden(pod, f"no PriorityClass with name {wanted} was found")
    else:
        defaults = [c for c in store.all("PriorityClass") if c.get("globalDefault")]
        found = min(defaults, key=lambda c: int(c["value"]), default=None)
        if found is not None:
            spec["priorityClassName"] = name_of(found)
    value = found["value"] if found is not None else 0
    if spec.get("priority", value) != value:
        text = (
            f"the integer value of priority ({spec['priority']}) must not be provided in pod spec; "
            f"priority admission controller computed {value} from the given PriorityClass name"
        )
        raise _forbidden(pod, text)
    policy = found["preemptionPolicy"] if found is not None else "PreemptLowerPriority"
    if spec.get("preemptionPolicy", policy) != policy:
        text = (
            f"the string value of PreemptionPolicy ({spec['preemptionPolicy']}) must not be "
            f"provided in pod spec; priority admission controller computed {policy} from the given "
            "PriorityClass name"
        )
        raise _forbidden(pod, text)
    spec["priority"], spec["preemptionPolicy"] = value, policy


def _forbidden(pod: Obj, why: str) -> ApiError:
    name = pod["metadata"].get("name") or ""
    return ApiError(403, "Forbidden", f'pods "{name}" is forbidden: {why}')
