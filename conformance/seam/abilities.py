"""What some targets can do and others cannot, by the names that scenarios ask for it.

A scenario says in ``requires.abilities`` what it needs, and a target says what it has
(:class:`conformance.seam.values.Capabilities`). Two kinds of ability name a component: to disturb
it, and to read what it counts.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from kube.components import role_of


class Ability(StrEnum):
    """An ability that names no component."""

    ANOTHER_SCHEDULER = "another-scheduler"
    """Another scheduler has the pods that name none, and the default one is beside it."""

    CDI = "cdi"
    """The CDI specs of a node can be read."""

    DEVICE_HEALTH = "device-health"
    """The driver can be made to find its devices healthy or not."""

    DISTINCT_DEVICES = "distinct-devices"
    """The node with most free devices has one that can be asked for alone (``last_by_node``)."""

    DOUBLE_ALLOCATION = "double-allocation"
    """One device may be given to two claims."""

    FEATURE_GATES = "feature-gates"
    """Components can be restarted with other feature gates."""

    HOLLOW_NODES = "hollow-nodes"
    """Scenarios may bring nodes without a kubelet; a target has it unless it says why not."""

    IMAGE = "image"
    """Containers of the probe's image run."""

    IMPERSONATION = "impersonation"
    """Requests can be sent in the name of accounts that the suite gives rights."""

    KUBELET_ACCOUNT = "kubelet-account"
    """Requests can be sent in the name of a node's kubelet, which has its own rights alone."""

    KUBELET_METRICS = "kubelet-metrics"
    """What a kubelet counts can be read."""

    PARTITIONS = "partitions"
    """Two free devices of a node draw on one set of counters."""

    POD_RESOURCES = "pod-resources"
    """Kubelets can be asked by the PodResources API."""

    ROOT_CONTAINERS = "root-containers"
    """Containers may be root, and have more capabilities than a cluster's constraints may admit."""

    SHARED_DEVICES = "shared-devices"
    """The device that can be asked for alone has two free shares, for two claims."""

    UPGRADE = "upgrade"
    """Components can be restarted as the next minor."""


def fault_ability(component: str) -> str:
    """Return the ability to stop and start a component, or all components of a role."""
    return f"fault:{component}"


def metrics_ability(component: str) -> str:
    """Return the ability to read what a component counts."""
    return Ability.KUBELET_METRICS if component == "kubelet" else f"metrics:{component}"


def list_fault_abilities(components: Iterable[str]) -> set[str]:
    """Return the abilities of a target that can disturb these components, and so their roles."""
    return {
        fault_ability(name) for component in components for name in (component, role_of(component))
    }
