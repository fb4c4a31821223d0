"""Components of a cluster by name: ``kube-scheduler``, or ``node-1/kubelet`` for one of a node."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

OTHER_SCHEDULER: Final = "other-scheduler"
"""A scheduler beside a cluster's own, as a component."""

OTHER_DRIVER: Final = "other-driver"
"""A second driver of a node, as a component: it runs only while a scenario needs it."""

REMOVE: Final = "remove"
"""The action that ends a second driver and removes what it has published."""

START_ORDER: Final = (
    "etcd",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "node",
    "containerd",
    "kubelet",
    "driver",
    OTHER_DRIVER,
)
"""Roles, each after those without which it does not get ready."""

OF_A_NODE: Final = frozenset(START_ORDER[START_ORDER.index("node") :])
"""Roles of which each node has its own."""

API: Final = frozenset({"etcd", "kube-apiserver"})
"""Without them nothing can be asked, and no component does anything."""


def role_of(component: str) -> str:
    """``kubelet`` of ``node-1/kubelet``: what a component is, on whichever node."""
    return component.rpartition("/")[2]


def match_components(component: str, known: Iterable[str]) -> list[str]:
    """Return the components that a name or a role stands for, in the order in which they start."""
    return in_start_order(name for name in known if component in (name, role_of(name)))


def in_start_order(components: Iterable[str]) -> list[str]:
    """Components, each once, after those without which it does not get ready."""
    return sorted(dict.fromkeys(components), key=_place)


def _place(component: str) -> int:
    role = role_of(component)
    return START_ORDER.index(role) if role in START_ORDER else len(START_ORDER)
