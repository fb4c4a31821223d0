"""Which nodes of a cluster can be used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

RUN_LABEL = "dra-conformance.dev/run"
"""On everything that a run creates; nothing without it is ever touched."""


def is_ready(node: Mapping[str, Any]) -> bool:
    return any(
        condition.get("type") == "Ready" and condition.get("status") == "True"
        for condition in (node.get("status") or {}).get("conditions") or []
    )


def usable_nodes(nodes: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return names of the nodes with a kubelet that are ready and not made by a run.

    Whether pods may go there depends on what they tolerate.
    """
    names = []
    for node in nodes:
        ours = RUN_LABEL in (node["metadata"].get("labels") or {})
        kubelet = ((node.get("status") or {}).get("nodeInfo") or {}).get("kubeletVersion")
        if is_ready(node) and kubelet and not ours:
            names.append(node["metadata"]["name"])
    return tuple(sorted(names))
