"""The conditions that a kubelet sets on a pod (pkg/kubelet/status/generate.go)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from kube.values import Obj

_SANDBOX_HAS_NO_REASON: Final = ("1.34", "1.35", "1.36")
"""Minors whose kubelets do not say why there is no sandbox."""

_BY_PHASE: Final = {"Succeeded": "PodCompleted", "Failed": "PodFailed"}


def list_conditions(
    spec: Obj, status: Obj, *, prepared: bool, released: bool, minor: str
) -> Iterator[Obj]:
    """Yield the conditions of a pod whose phase and containers are in ``status``.

    Args:
        prepared: it has, or had, a sandbox.
        released: the sandbox is not there any more.
        minor: of the kubelet.
    """
    phase, main = status["phase"], status["containerStatuses"]
    containers, states = spec.get("initContainers") or (), status.get("initContainerStatuses") or ()
    init = list(zip(containers, states, strict=True))
    if prepared and not released:
        sandbox: Obj = {}
    else:
        why = "pod sandbox is not ready" if prepared else "no pod sandbox exists"
        sandbox = {"reason": "PodSandboxNotReady", "message": why}
    yield _condition(
        "PodReadyToStartContainers",
        not sandbox,
        {} if minor in _SANDBOX_HAS_NO_REASON else sandbox,
    )
    incomplete = [item["name"] for container, item in init if not _is_complete(container, item)]
    started = any("waiting" not in item["state"] for item in main)
    if phase == "Succeeded":
        yield _condition("Initialized", True, {"reason": "PodCompleted"})
    elif incomplete and not started:
        text = f"containers with incomplete status: {_list_names(incomplete)}"
        reason = {"reason": "ContainersNotInitialized", "message": text}
        yield _condition("Initialized", False, reason)
    else:
        yield _condition("Initialized", True, {})
    sidecars = [item for container, item in init if container.get("restartPolicy") == "Always"]
    unready = [item["name"] for item in (*sidecars, *main) if not item["ready"]]
    reason = {}
    if phase in _BY_PHASE:
        reason = {"reason": _BY_PHASE[phase]}
    elif unready:
        text = f"containers with unready status: {_list_names(unready)}"
        reason = {"reason": "ContainersNotReady", "message": text}
    for name in ("Ready", "ContainersReady"):
        yield _condition(name, not reason, reason)
    yield _condition("PodScheduled", True, {})


def _is_complete(container: Obj, status: Obj) -> bool:
    """Return whether an init container lets the next one start."""
    if container.get("restartPolicy") == "Always":
        return bool(status["started"])
    return "terminated" in status["state"]


def _condition(name: str, holds: bool, reason: Obj) -> Obj:
    return {
        "type": name,
        "status": "True" if holds else "False",
        "lastProbeTime": None,
        **reason,
    }


def _list_names(names: Sequence[str]) -> str:
    """Return names as Go prints a slice."""
    return f"[{' '.join(names)}]"
