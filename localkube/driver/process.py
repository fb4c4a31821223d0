"""The driver processes of a node: its driver, the next version of that one, and a second driver.

For a rolling update the next version runs beside the driver, and takes its place or fails. Both are
the same program; they differ by POD_UID in their environment, by which they name
their sockets (k8s.io/dynamic-resource-allocation/kubeletplugin, RollingUpdate). The next version
has a record of its own until it takes over the driver's.
"""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar, Final

from kube.components import OTHER_DRIVER
from kube.kubelet.plugins import KUBELET_ROOT
from localkube.api import accepts_connections
from localkube.base import ClusterError, ClusterUsageError
from localkube.component import STOP_SECONDS, OfNode, Running
from localkube.driver.attached import (
    ATTACH_SECONDS,
    NAMED_SECONDS,
    delete_slices,
    explain_refusal,
    explain_undiallable,
    has_published,
    list_offers,
    registered_plugins,
)
from localkube.driver.spec import other_spec
from localkube.layout import SECOND_POD_UID
from localkube.processes.deaths import NEXT
from localkube.processes.supervision import ProcessSpec
from localkube.processes.tools import describe_log

NEXT_ACTIONS: Final = ("startNext", "startUnregistered", "killNext", "replace")

_POD_UID: Final = "POD_UID"
_REGISTRAR: Final = "KUBELET_REGISTRAR_DIRECTORY_PATH"


_UNREGISTERED: Final = (
    f"nothing answers on a socket in KUBELET_REGISTRAR_DIRECTORY_PATH, which is {KUBELET_ROOT}"
    "/plugins_registry on its node"
)
_UNPUBLISHED: Final = (
    "it is registered, and has published nothing for this node: it found no device, or takes its "
    "node's name from elsewhere than NODE_NAME, or was refused by the API server (its log says so)"
)


class Driver(OfNode):
    """The driver of a node, and its next version while there is one."""

    role: ClassVar[str] = "driver"

    def __init__(self, cluster: Running, name: str) -> None:
        super().__init__(cluster, name)
        self.driver_name = cluster.driver_name
        self._next = f"{self.node.name}/{NEXT}"
        self._unregistered = self.node.driver / "unregistered"  # where no kubelet looks

    def alive(self) -> bool:
        return self.processes.alive(self.name)

    def start(self) -> None:
        """As `Component.start`. It runs alone then: its next version ends."""
        runs = self.alive()
        self._kill_next()
        if runs:
            self._forget_dead()
        else:
            self.launch(self.spec())

    def launch(self, spec: ProcessSpec) -> None:
        """Start it in this way, and wait until it is attached (attached.py).

        Raises ClusterError: it exited, registers in a way that never leads there, or took too long.
        """
        other_sockets = self._other_sockets()
        # A driver that was killed leaves its registration socket; the kubelet takes it for
        # registered until the socket is gone, and would hide whether the new one registers.
        for stale in self.node.registrar.glob("*"):
            if str(stale) not in other_sockets:
                stale.unlink(missing_ok=True)
        self._wait_forgotten(other_sockets)
        self.processes.start(spec)
        with self._explained(lambda: "" if list_offers(self.node.registrar) else _UNREGISTERED):
            self._wait(
                self.name, lambda: self._registered(other_sockets), "the kubelet to register it"
            )
        self._wait_named(self.name, self.node.registrar)
        with self._explained(self._undiallable):
            purpose = "waiting for an answer at its endpoint"
            self.processes.wait_ready(
                self.name, lambda: not self._undiallable(), NAMED_SECONDS, purpose
            )
        with self._explained(lambda: _UNPUBLISHED):
            self.wait_published(self.name)

    def disturb_next(self, action: str) -> None:
        """Carry out one of `NEXT_ACTIONS`.

        Raises ClusterError: the next version did not get as far, or what runs never does.
        """
        if action == "killNext":
            self._kill_next()
        elif action == "replace":
            self._replace()
        else:
            self._start_next(registers=action == "startNext")

    def wait_published(self, component: str, seconds: float | None = None) -> None:
        """Wait until its slices for the node are complete.

        ``seconds``: at most for so long; None: as for any step of becoming attached.

        Raises ClusterError: they did not get so; ClusterUsageError: whose they are is not known.
        """
        if not self.driver_name:
            raise ClusterUsageError(
                f"{component} has a driver beside it, and LocalOptions.driver does not say which"
            )
        self._wait(
            component,
            lambda: has_published(self.cluster.api, self.driver_name, self.node.name),
            f"complete ResourceSlices of driver {self.driver_name} for {self.node.name}",
            seconds,
        )

    def _other_sockets(self) -> set[str]:
        """Return registration sockets of another driver on the node, also those it left behind."""
        other = self.cluster.other_driver
        return self._sockets(f"{other.name}-*") if other is not None else set()

    def _sockets(self, pattern: str) -> set[str]:
        return {str(path) for path in self.node.registrar.glob(pattern)}

    def _undiallable(self) -> str:
        return explain_undiallable(list_offers(self.node.registrar), self.node.kubelet_root)

    @contextmanager
    def _explained(self, why: Callable[[], str]) -> Iterator[None]:
        """Say with an error what is likely its cause, if the driver still runs."""
        try:
            yield
        except ClusterError as error:
            reason = why() if self.alive() else ""
            raise ClusterError(f"{error}\n{reason}" if reason else str(error)) from None

    def _registered(self, others: set[str]) -> bool:
        if set(registered_plugins(self.kubelet)) - others:
            return True
        if why := explain_refusal(list_offers(self.node.registrar)):
            log = self.processes.records()[self.name].spec.log
            raise ClusterError(f"{self.name}: {why} {describe_log(log)}")
        return False

    def _wait_named(self, component: str, registrar: Path) -> None:
        """Wait until a driver of that name offers itself in a folder for registration sockets."""

        def names() -> set[str]:
            return {offer.name for offer in list_offers(registrar)}

        self.processes.wait_ready(
            component,
            lambda: self.driver_name in names(),
            NAMED_SECONDS,
            f"waiting for a driver {self.driver_name}, the name in its profile (--driver), to "
            f"register; what registers calls itself {', '.join(sorted(names())) or 'nothing'}",
        )

    def _start_next(self, *, registers: bool) -> None:
        if self.processes.alive(self._next):
            return
        self._forget_dead()
        plugins_before = set(registered_plugins(self.kubelet))
        self.processes.start(self._next_spec(registers=registers))
        try:
            if registers:
                self._wait(
                    self._next,
                    lambda: bool(set(registered_plugins(self.kubelet)) - plugins_before),
                    f"the kubelet of {self.node.name} to register it beside the driver",
                )
                self.wait_published(self._next)
            else:
                self._wait_named(self._next, self._unregistered)
        except ClusterError:
            self._kill_next()
            raise

    def _next_spec(self, *, registers: bool) -> ProcessSpec:
        """Return the driver's own but for POD_UID; so both write the same log."""
        spec = self.spec()
        env = dict(spec.env)
        if env.pop(_POD_UID, "") != SECOND_POD_UID:
            env[_POD_UID] = SECOND_POD_UID
        if not registers:
            env[_REGISTRAR] = str(self._unregistered)
            self._unregistered.mkdir(parents=True, exist_ok=True)
        return dataclasses.replace(spec, name=self._next, env=env)

    def _kill_next(self) -> None:
        """End the next version, if it runs; the sockets of a process that is killed stay."""
        self.processes.stop(self._next, grace_seconds=0)
        self.processes.forget(self._next)
        shutil.rmtree(self._unregistered, ignore_errors=True)

    def _replace(self) -> None:
        self._start_next(registers=True)
        new = self.processes.records()[self._next].spec
        if new.env[_REGISTRAR] == str(self._unregistered):
            raise ClusterError(
                f"{self.name}: what runs beside it never registers, and replaces nothing"
            )
        # The next one serves by now: a kubelet has somebody to call all the time.
        self.stop(STOP_SECONDS)
        self.processes.rename(self._next, self.name)
        self._forget_dead()

    def _forget_dead(self) -> None:
        """Remove sockets at which nobody answers; the kubelet then forgets their plugins."""
        sockets = [path for path in self.node.registrar.glob("*") if path.is_socket()]
        for path in sockets:
            if not accepts_connections(path):
                path.unlink(missing_ok=True)
        self._wait_forgotten({str(path) for path in sockets if path.exists()})

    def _wait_forgotten(self, left: set[str]) -> None:
        """Wait until the kubelet has none registered but those at these sockets."""
        self._wait(
            f"{self.node.name}/kubelet",
            lambda: set(registered_plugins(self.kubelet)) <= left,
            "a driver that has ended to be unregistered",
        )

    def _wait(
        self,
        component: str,
        check: Callable[[], bool],
        what: str,
        seconds: float | None = None,
    ) -> None:
        limit = ATTACH_SECONDS if seconds is None else seconds
        self.processes.wait_ready(component, check, limit, f"waiting for {what}")


class OtherDriver(Driver):
    """A second driver beside a node's own: there while it is needed, and nothing of it afterwards.

    It has another name than the node's driver. Both use the node's one directory for CDI specs and
    that for registration sockets, as drivers of several vendors do.
    """

    role: ClassVar[str] = OTHER_DRIVER

    def __init__(self, cluster: Running, name: str) -> None:
        super().__init__(cluster, name)
        assert cluster.other_driver is not None, "it is among the cluster's components"
        self.driver_name = cluster.other_driver.name
        self._program = cluster.other_driver

    def spec(self) -> ProcessSpec:
        return other_spec(self.cluster.layout, self._program, self.node)

    def start(self) -> None:
        """As `Component.start`."""
        if not self.alive():
            self.launch(self.spec())

    def remove(self) -> None:
        """End it, and remove its slices and files; nothing happens where it never ran."""
        if self.name not in self.processes.records():
            return
        self.stop(STOP_SECONDS)
        self.processes.forget(self.name)
        for socket in self._sockets(f"{self.driver_name}-*"):
            Path(socket).unlink(missing_ok=True)
        shutil.rmtree(self.node.other, ignore_errors=True)
        # A kubelet deletes them only 30 s after it has lost the driver.
        delete_slices(self.cluster.api, self.driver_name, self.node.name)

    def _other_sockets(self) -> set[str]:
        return self._sockets("*") - self._sockets(f"{self.driver_name}-*")
