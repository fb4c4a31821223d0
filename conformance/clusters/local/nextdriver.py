"""A rolling update of a driver: its next version runs beside it, and takes its place or fails.

Both are the same program; what tells the instances apart is POD_UID in their environment, by which
they call their sockets (k8s.io/dynamic-resource-allocation/kubeletplugin, RollingUpdate). The next
version has a record of its own until it takes over the driver's.
"""

from __future__ import annotations

import dataclasses
import shutil
from typing import Final

from conformance.clusters.base import ClusterError
from conformance.clusters.local import attached, node
from conformance.clusters.local.api import LocalApi
from conformance.clusters.local.layout import SECOND_POD_UID, NodeLayout
from conformance.clusters.local.processes import Processes, ProcessSpec

ACTIONS: Final = ("startNext", "startUnregistered", "killNext", "replace")
PART: Final = "next-driver"
"""What stands behind a node's name for the instance beside its driver."""

_POD_UID: Final = "POD_UID"
_REGISTRAR: Final = "KUBELET_REGISTRAR_DIRECTORY_PATH"


class NextDriver:
    """The instance beside the driver of one node, whether it runs or not."""

    def __init__(
        self,
        layout: NodeLayout,
        processes: Processes,
        api: LocalApi,
        kubelet: LocalApi,
        driver_name: str,
    ) -> None:
        self._layout = layout
        self._processes = processes
        self._api = api
        self._kubelet = kubelet
        self._driver_name = driver_name
        self._old = f"{layout.name}/driver"
        self._name = f"{layout.name}/{PART}"
        self._nowhere = layout.driver / "unregistered"  # where no kubelet looks

    def disturb(self, action: str, grace_seconds: float) -> None:
        """Carry out one of `ACTIONS`.

        Args:
            action: which.
            grace_seconds: for the old driver to end.

        Raises:
            ClusterError: the next version did not get as far, or what runs never does.
        """
        if action == "killNext":
            self.kill()
        elif action == "replace":
            self._replace(grace_seconds)
        else:
            self._start(registers=action == "startNext")

    def kill(self) -> None:
        """End it at once, if it runs; the sockets of a process that is killed stay."""
        self._processes.stop(self._name, grace_seconds=0)
        self._processes.forget(self._name)
        shutil.rmtree(self._nowhere, ignore_errors=True)

    def end(self, *, forget: bool) -> None:
        """End it, and if wanted have the kubelet forget it."""
        self.kill()
        if forget:
            self._forget_dead()

    def _start(self, *, registers: bool) -> None:
        if self._processes.alive(self._name):
            return
        self._forget_dead()
        before = set(attached.registered_plugins(self._kubelet))
        self._processes.start(self._spec(registers=registers))
        try:
            if registers:
                self._wait_attached_beside(before)
            else:
                attached.wait_named(self._processes, self._name, self._driver_name, self._nowhere)
        except ClusterError:
            self.kill()
            raise

    def _wait_attached_beside(self, before: set[str]) -> None:
        """Wait until the kubelet has registered a plugin more, and the slices are complete."""
        self._processes.wait_ready(
            self._name,
            lambda: bool(set(attached.registered_plugins(self._kubelet)) - before),
            attached.READY_SECONDS,
            f"waiting for the kubelet of {self._layout.name} to register it beside the driver",
        )
        attached.wait_published(
            self._processes, self._name, self._driver_name, self._layout.name, self._api
        )

    def _replace(self, grace_seconds: float) -> None:
        self._start(registers=True)
        new = self._processes.records()[self._name].spec
        if new.env[_REGISTRAR] == str(self._nowhere):
            raise ClusterError(
                f"{self._old}: what runs beside it never registers, and replaces nothing"
            )
        self._processes.stop(self._old, grace_seconds=grace_seconds)
        self._processes.rename(self._name, self._old)
        self._forget_dead()

    def _spec(self, *, registers: bool) -> ProcessSpec:
        """The driver's own, but for what tells it apart; so both write the same log."""
        old = self._processes.records()[self._old].spec
        env = dict(old.env)
        if env.pop(_POD_UID, "") != SECOND_POD_UID:
            env[_POD_UID] = SECOND_POD_UID
        if not registers:
            env[_REGISTRAR] = str(self._nowhere)
            self._nowhere.mkdir(parents=True, exist_ok=True)
        return dataclasses.replace(old, name=self._name, env=env)

    def _forget_dead(self) -> None:
        """Remove sockets at which nobody answers; the kubelet lets go of who had them."""
        sockets = [path for path in self._layout.registrar.glob("*") if path.is_socket()]
        for path in sockets:
            if not node.accepts_connections(path):
                path.unlink(missing_ok=True)
        left = {str(path) for path in sockets if path.exists()}
        self._processes.wait_ready(
            f"{self._layout.name}/kubelet",
            lambda: set(attached.registered_plugins(self._kubelet)) <= left,
            attached.READY_SECONDS,
            "waiting for a driver that has ended to be unregistered",
        )
