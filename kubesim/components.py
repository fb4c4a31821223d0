"""Which parts of a reference run, by the names that the components of a local cluster have.

A part that is stopped does nothing until it is started. What it knows then is what a new process
would know: the API server's objects, the kubelet's and the driver's checkpoints, and the containers
that run on. A node that is switched off loses its containers and what lies in memory, such as CDI
specs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Protocol, runtime_checkable

from kube.base.errors import TargetError
from kube.components import API, OTHER_DRIVER, REMOVE, role_of
from kubesim.nodes.kubelet import Kubelet

MANAGER: Final = "kube-controller-manager"
SCHEDULER: Final = "kube-scheduler"
_ON_NODES: Final = ("containerd", "kubelet", "driver", OTHER_DRIVER)


@runtime_checkable
class Remembers(Protocol):
    """A part of the control plane that keeps something in memory."""

    def restart(self) -> None:
        """Forget it, as a new process has not seen what the old one saw."""
        ...


class Components:
    """The components of one reference.

    Args:
        control_plane: component -> its parts that keep something in memory.
        kubelets: of the nodes that have one; each stands for all that runs on its node.

    ``next_drivers``: drivers whose next version runs beside them, each with whether it registered.
    """

    def __init__(
        self, control_plane: Mapping[str, Sequence[Remembers]], kubelets: Sequence[Kubelet]
    ) -> None:
        self._control_plane = control_plane
        self._kubelets = {kubelet.node: kubelet for kubelet in kubelets}
        self.next_drivers: dict[str, bool] = {}
        self._started_others: set[str] = set()
        on_nodes = [
            f"{kubelet.node}/{role}"
            for kubelet in kubelets
            for role in ("node", *_ON_NODES)
            if (role != "driver" or kubelet.driver is not None)
            and (role != OTHER_DRIVER or kubelet.make_other is not None)
        ]
        self.down = {name for name in on_nodes if role_of(name) == OTHER_DRIVER}
        self.names = (*sorted(API), MANAGER, SCHEDULER, *on_nodes)

    def is_running(self, name: str) -> bool:
        """Return whether a part can do anything; the empty name: one that nobody stops."""
        return name not in self.down and not self.down & API

    def disturb(self, name: str, action: str) -> None:
        """Do what a step ``fault`` says (`Faults.disturb`)."""
        if action in {"restart", "kill", "stop"}:
            self.stop(name)
        if action in {"restart", "start"}:
            self.start(name)
        elif action in {"startNext", "startUnregistered"}:
            self.start_next(name, registers=action == "startNext")
        elif action == "killNext":
            self.kill_next(name)
        elif action == "replace":
            self.replace_driver(name)
        elif action == REMOVE:
            self.remove_driver(name)

    def has_registered_instance(self, driver: str) -> bool:
        """Return whether an instance of a driver runs that the kubelet has registered."""
        return driver not in self.down or self.next_drivers.get(driver, False)

    def start_next(self, driver: str, *, registers: bool = True) -> None:
        """Start a driver's next version beside it; nothing happens if one is there."""
        if driver not in self.next_drivers:
            self.next_drivers[driver] = registers
            if registers:
                self._kubelet_of(driver).register_next_driver()

    def kill_next(self, driver: str) -> None:
        """End what was started beside a driver; nothing happens if nothing was."""
        if self.next_drivers.pop(driver, False):
            self._kubelet_of(driver).lose_next_driver()
            if driver in self.down:
                self._kubelet_of(driver).stop_driver()

    def replace_driver(self, driver: str) -> None:
        """Replace a driver by its next version. Raises TargetError."""
        self.start_next(driver)
        if not self.next_drivers[driver]:
            raise TargetError(
                f"{driver}: what runs beside it never registers, and replaces nothing"
            )
        self.stop(driver)
        self.next_drivers.pop(driver)
        self.down.discard(driver)

    def remove_driver(self, driver: str) -> None:
        """End the other driver of a node, and have nothing left of it."""
        if driver in self._started_others:
            self.stop(driver)
            self._started_others.discard(driver)
            self._kubelet_of(driver).remove_other()

    def _roles_of(self, node: str) -> list[str]:
        """Return the roles that are switched off and on with a node."""
        other_was_started = f"{node}/{OTHER_DRIVER}" in self._started_others
        return [role for role in _ON_NODES if role != OTHER_DRIVER or other_was_started]

    def _kubelet_of(self, component: str) -> Kubelet:
        return self._kubelets[component.rpartition("/")[0]]

    def stop(self, name: str) -> None:
        """Stop one; nothing happens if it is stopped."""
        if name in self.down:
            return
        self.down.add(name)
        node, _, role = name.rpartition("/")
        kubelet = self._kubelets.get(node)
        if kubelet is None:
            return
        if role == "kubelet":
            kubelet.stop()
        elif role == "driver":
            if self.has_registered_instance(name):
                kubelet.lose_health_stream()
            else:
                kubelet.stop_driver()
        elif role == OTHER_DRIVER:
            kubelet.stop_driver(role)
        elif role == "containerd":
            kubelet.runtime_runs = False
        elif role == "node":
            self.kill_next(f"{node}/driver")
            for role_on_node in reversed(self._roles_of(node)):
                self.stop(f"{node}/{role_on_node}")
            kubelet.switch_off()

    def start(self, name: str) -> None:
        """Start one that is stopped; nothing happens if it runs, and if it is a driver, alone."""
        self.kill_next(name)
        if name not in self.down:
            return
        self.down.discard(name)
        for controller in self._control_plane.get(name, ()):
            controller.restart()
        node, _, role = name.rpartition("/")
        kubelet = self._kubelets.get(node)
        if kubelet is None:
            return
        if role == "kubelet":
            kubelet.start()
        elif role == "driver":
            kubelet.start_driver()
        elif role == OTHER_DRIVER:
            self._started_others.add(name)
            kubelet.start_driver(role)
        elif role == "containerd":
            kubelet.runtime_runs = True
        elif role == "node":
            for role_on_node in self._roles_of(node):
                self.start(f"{node}/{role_on_node}")
