"""What `dra-conformance cluster status` shows: each component, running or not."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from conformance.clusters.local.processes import Processes
from conformance.clusters.local.procfs import is_alive


@dataclass(frozen=True)
class ComponentStatus:
    """One component.

    Attributes:
        name: "etcd", or "node-1/kubelet" for one of a node; "node-1" holds the node's namespaces.
        running: whether its process runs.
        pid: the process, as this machine numbers it.
        log: its log file.
    """

    name: str
    running: bool
    pid: int
    log: Path


def component_statuses(processes: Processes) -> list[ComponentStatus]:
    """All recorded components, by name."""
    return [
        ComponentStatus(name, is_alive(record.identity), record.identity.pid, record.spec.log)
        for name, record in processes.records().items()
    ]
