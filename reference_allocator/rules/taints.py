"""Taints of devices and the tolerations of requests (KEP-5055)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from reference_allocator.api import Taint, Toleration

BLOCKING_EFFECTS = frozenset({"NoSchedule", "NoExecute"})
"""Effects that keep a device from being allocated; all others, also unknown ones, do not."""


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Whether one toleration covers one taint.

    An empty effect or key covers all; the operator Equal, also where it is empty, compares the
    value, Exists does not; an unknown operator covers nothing (resourceclaim.ToleratesTaint).
    """
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator in ("", "Equal"):
        return toleration.value == taint.value
    return toleration.operator == "Exists"


def blocking_taint(taints: Iterable[Taint], tolerations: Sequence[Toleration]) -> Taint | None:
    """The first taint that keeps a request with these tolerations off the device, if any."""
    for taint in taints:
        if taint.effect in BLOCKING_EFFECTS and not any(
            tolerates(toleration, taint) for toleration in tolerations
        ):
            return taint
    return None
