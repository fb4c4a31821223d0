"""Defects that show while a driver is replaced by its next version."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kubesim.nodes import dra_manager
from kubesim.nodes.dra_manager import NotPreparedError
from kubesim.nodes.driver import NodeDriver
from kubesim.nodes.kubelet import _WIPING_DELAY, Kubelet
from kubesim.world import World
from tests.mutants.replacing import Defects, Original, replace


def leaves_claims_of_the_old(world: World) -> None:
    """What another instance has prepared is told to be unprepared, and stays."""
    for kubelet in world.kubelets:
        driver = kubelet.driver
        if driver is None:
            continue
        of_the_old: set[str] = set()

        def start_next(
            original: Callable[[], None],
            driver: NodeDriver = driver,
            of_the_old: set[str] = of_the_old,
        ) -> None:
            original()
            of_the_old.update(driver.spec_files())

        def end_next(original: Callable[[], None], of_the_old: set[str] = of_the_old) -> None:
            original()
            of_the_old.clear()

        def unprepare(
            original: Callable[[str], None], uid: str, of_the_old: set[str] = of_the_old
        ) -> None:
            if uid not in of_the_old:
                original(uid)

        replace(driver.start_next, start_next)
        replace(driver.end_next, end_next)
        replace(driver.unprepare, unprepare)


def wipes_slices_of_updated_drivers(world: World) -> None:
    """The kubelet does not see that another instance of the driver is there."""
    due: dict[str, float] = {}

    def driver_replaced(original: Callable[[str], None], name: str) -> None:
        original(name)
        due[name] = world.clock.wake_in(_WIPING_DELAY)

    replace(world.components.replace_driver, driver_replaced)
    for kubelet in world.kubelets:

        def sync(original: Callable[[], None], kubelet: Kubelet = kubelet) -> None:
            name = f"{kubelet.node}/driver"
            if kubelet.driver is not None and due.get(name, world.clock.now + 1) <= world.clock.now:
                del due[name]
                kubelet.wipe_slices(kubelet.driver.name)
            original()

        replace(kubelet.sync, sync)


def asks_every_instance(world: World) -> None:
    for kubelet in world.kubelets:

        def prepare(original: Original, *asked: object, kubelet: Kubelet = kubelet) -> Any:
            if world.components.next_drivers.get(f"{kubelet.node}/driver"):
                with kubelet.dra_manager._count_driver_calls(dra_manager._PREPARE):
                    original(*asked)
            return original(*asked)

        replace(kubelet.dra_manager._prepare, prepare)


def asks_crashed_instances(world: World) -> None:
    for kubelet in world.kubelets:
        crashed: list[bool] = []

        def lose(original: Callable[[], None], crashed: list[bool] = crashed) -> None:
            original()
            crashed.append(True)

        def prepare(original: Original, *asked: object, crashed: list[bool] = crashed) -> Any:
            if crashed:
                raise NotPreparedError("connect: connection refused")
            return original(*asked)

        replace(kubelet.lose_next_driver, lose)
        replace(kubelet.dra_manager._prepare, prepare)


def takes_over_unregistered(world: World) -> None:
    """The instance that begins removes the sockets of the one that runs, and has them back late."""
    kubelets = {f"{kubelet.node}/driver": kubelet for kubelet in world.kubelets}

    def start_next(original: Original, name: str, *, registers: bool = True) -> None:
        original(name, registers=registers)
        if not registers:
            kubelets[name].stop_driver()

    def kill_next(original: Callable[[str], None], name: str) -> None:
        if world.components.next_drivers.get(name) is False:
            kubelets[name].start_driver()
        original(name)

    replace(world.components.start_next, start_next)
    replace(world.components.kill_next, kill_next)


DEFECTS: Defects = {
    "driver-leaves-claims-of-the-old": leaves_claims_of_the_old,
    "driver-takes-over-unregistered": takes_over_unregistered,
    "kubelet-asks-crashed-instances": asks_crashed_instances,
    "kubelet-asks-every-instance": asks_every_instance,
    "kubelet-wipes-slices-of-updated-drivers": wipes_slices_of_updated_drivers,
}
