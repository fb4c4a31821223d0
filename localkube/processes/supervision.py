"""Processes that outlive the program that started them, and can be stopped by another one.

Each process is started in a session of its own with its output in a log file, and is written down
in the cluster's state directory with its identity (procfs.py), so that `down` works from any
process, at any later time. A record also says how the process was started, which is what a fault
step needs to start it again.
"""

from __future__ import annotations

import dataclasses
import json
import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from pydantic import TypeAdapter

from kube.base.processes import Identity, identify_process, is_alive, send, wait_gone
from localkube.base import ClusterError
from localkube.layout import Layout
from localkube.processes import procfs
from localkube.processes.tools import describe_log, find_tool

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class ProcessSpec:
    """How to start one component.

    Attributes:
        name: "etcd", or "node-1/kubelet" for a component of a node.
        command: absolute path of the program and its arguments.
        log: file that gets standard output and standard error.
        env: environment variables, beside the cluster's mark.
        inherit_env: whether this program's own environment is passed on below `env`. Only a
            driver needs it: the cluster's components must not see proxies or settings of the user.
        inside: the node in whose namespaces it runs, "" for the machine's own.
    """

    name: str
    command: tuple[str, ...]
    log: Path
    env: Mapping[str, str] = field(default_factory=dict)
    inherit_env: bool = False
    inside: str = ""


@dataclass(frozen=True)
class ProcessRecord:
    """A started component: how it was started, and which process it is."""

    spec: ProcessSpec
    identity: Identity


_RECORD: Final = TypeAdapter(ProcessRecord)
"""In the state directory. No credentials: those lie in files that it names."""


@dataclass(frozen=True)
class ComponentStatus:
    """One component, as `dra-conformance cluster status` shows it.

    ``name``: "etcd", or "node-1/kubelet" for one of a node; "node-1" holds the node's namespaces.
    """

    name: str
    running: bool
    pid: int
    log: Path


class Processes:
    """The processes of one cluster, by name."""

    def __init__(self, layout: Layout) -> None:
        """Use the records in the state directory of `layout`; it need not exist."""
        self._layout = layout
        self._closed = threading.Event()

    def close(self) -> None:
        """Start nothing any more and end all waits: a start failed in another thread."""
        self._closed.set()

    def records(self) -> dict[str, ProcessRecord]:
        """Return all recorded processes, running or not, by name.

        A half-written record is left out: the mark in the environment finds its process all the
        same.
        """
        record_by_name = {}
        for path in sorted(self._layout.processes.glob("*.json")):
            try:
                record = _RECORD.validate_json(path.read_bytes())
            except (OSError, ValueError):
                continue
            record_by_name[record.spec.name] = record
        return record_by_name

    def list_statuses(self) -> list[ComponentStatus]:
        """Return all recorded components, running or not, by name."""
        return [
            ComponentStatus(name, is_alive(record.identity), record.identity.pid, record.spec.log)
            for name, record in self.records().items()
        ]

    def alive(self, name: str) -> bool:
        """Return whether the recorded process of that name runs."""
        record = self.records().get(name)
        return record is not None and is_alive(record.identity)

    def start(self, spec: ProcessSpec) -> ProcessRecord:
        """Start a component and record it. It may not be ready, or fail, right afterwards.

        Raises ClusterError: its program cannot be executed.
        """
        self._check_open(spec.name)
        spec.log.parent.mkdir(parents=True, exist_ok=True)
        self._layout.processes.mkdir(parents=True, exist_ok=True)
        command = self._entering(spec) + spec.command
        environment = dict(os.environ) if spec.inherit_env else {}
        environment |= spec.env
        environment[procfs.MARK] = str(self._layout.dir)
        output = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        actions = [
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(spec.log), output, 0o600),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ]
        try:
            pid = os.posix_spawn(
                command[0], command, environment, file_actions=actions, setsid=True
            )
        except OSError as error:
            raise ClusterError(
                f"{spec.name}: cannot start {command[0]}: {error.strerror}"
            ) from error
        identity = identify_process(pid)
        assert identity is not None, "a child stays at least as a zombie until it is waited for"
        # Killed before this is written, it is found by the mark (`procfs.find_marked`).
        record = ProcessRecord(spec, identity)
        self._write(record)
        return record

    def stop(self, *names: str, grace_seconds: float) -> None:
        """Stop components together: SIGTERM, then SIGKILL after `grace_seconds` (0: at once).

        Their records stay, so that they can be started again. Nothing happens to those that do not
        run.
        """
        records = self.records()
        running = [record for name, record in records.items() if name in names]
        running = [record for record in running if is_alive(record.identity)]
        _LOG.info("stopping %s, %g s of grace", ", ".join(names), grace_seconds)
        for record in running:
            # Written before the signal, so that whoever sees the process end knows it was meant.
            self._mark(record.spec.name).write_text(_text(record.identity))
            if grace_seconds > 0:
                send(_signalled(record) or [record.identity.pid], signal.SIGTERM)
        # One deadline for all: they end side by side.
        deadline = time.monotonic() + grace_seconds
        surviving = [
            record
            for record in running
            if not wait_gone(record.identity, max(0, deadline - time.monotonic()))
        ]
        for record in surviving:
            send([*_signalled(record), record.identity.pid], signal.SIGKILL)
        for record in surviving:
            wait_gone(record.identity, 10)

    def was_stopped(self, record: ProcessRecord) -> bool:
        """Return whether it was `stop` that ended this very process, in whichever program."""
        try:
            return self._mark(record.spec.name).read_text() == _text(record.identity)
        except OSError:
            return False

    def forget(self, name: str) -> None:
        self._path(name).unlink(missing_ok=True)

    def rename(self, name: str, new: str) -> None:
        """Let a process that runs have the name of another one, which has ended."""
        record = self.records()[name]
        self._write(dataclasses.replace(record, spec=dataclasses.replace(record.spec, name=new)))
        self.forget(name)

    def wait_ready(
        self, name: str, ready: Callable[[], bool], timeout_seconds: float, what: str
    ) -> None:
        """Wait until `ready()`; give up early when the component has exited.

        Raises ClusterError: it exited or the time is over; the message has the end of its log.
        """
        _LOG.debug("%s: %s, for up to %g s", name, what, timeout_seconds)
        deadline = time.monotonic() + timeout_seconds
        record = self.records()[name]
        while not ready():
            self._check_open(name)
            if not is_alive(record.identity):
                raise ClusterError(f"{name} exited while {what} {describe_log(record.spec.log)}")
            if time.monotonic() > deadline:
                raise ClusterError(
                    f"{name}: gave up after {timeout_seconds:.0f} s of {what} "
                    f"{describe_log(record.spec.log)}"
                )
            self._closed.wait(procfs.POLL_SECONDS)

    def node_init(self, node: str) -> int:
        """Pid of the process that holds the node's namespaces (the first one in them).

        Raises ClusterError: it does not run.
        """
        record = self.records().get(node)
        if record is not None and is_alive(record.identity):
            for pid in procfs.list_children(record.identity.pid):
                return pid
        raise ClusterError(f"{node} is not running: its namespaces are gone")

    def _write(self, record: ProcessRecord) -> None:
        path = self._path(record.spec.name)
        temporary = path.with_suffix(".new")
        temporary.write_bytes(_RECORD.dump_json(record, indent=1))
        temporary.replace(path)

    def _check_open(self, name: str) -> None:
        if self._closed.is_set():
            raise ClusterError(f"{name}: given up, because the start of another component failed")

    def _entering(self, spec: ProcessSpec) -> tuple[str, ...]:
        if not spec.inside:
            return ()
        return enter_command(self.node_init(spec.inside), pid_namespace=True)

    def _path(self, name: str) -> Path:
        return self._layout.processes / (name.replace("/", "_") + ".json")

    def _mark(self, name: str) -> Path:
        return self._path(name).with_suffix(".stopped")


def enter_command(init: int, *, pid_namespace: bool) -> tuple[str, ...]:
    """Start of a command line that runs its rest in the namespaces of the process `init`.

    `ip netns exec` would do for the network, but it remounts /sys, and the kubelet then finds no
    cgroups.
    """
    options = ("--net", "--mount", "--pid") if pid_namespace else ("--net", "--mount")
    return (find_tool("nsenter"), "--target", str(init), *options, "--")


def _signalled(record: ProcessRecord) -> list[int]:
    """Return whom to signal for a component: nsenter, which leads into a node, passes none on."""
    pid = record.identity.pid
    return procfs.list_children(pid) if record.spec.inside else [pid]


def _text(identity: Identity) -> str:
    return json.dumps(dataclasses.asdict(identity))
