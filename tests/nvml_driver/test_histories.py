"""Random histories of a node against a model: a dict of what must be prepared.

prepare, unprepare, a new allocation, crash at any fault point, restart, reboot, a change of the
node's devices, a second instance of the driver beside the first.
"""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from nvml_driver import faults
from nvml_driver.core import DriverCore
from nvml_driver.discovery import discover
from nvml_driver.errors import PrepareError
from nvml_driver.inventory import Inventory
from nvml_driver.library import NvmlLibrary
from nvml_driver.options import DriverOptions
from tests.nvml_driver import claim_invariants
from tests.nvml_driver.fake_mig import PARTITIONS, FileMig, partitionable
from tests.nvml_driver.helpers import make_claim, result

UIDS = ("u1", "u2", "u3", "u4")
DEVICES = ("gpu-0", "gpu-1", "gpu-2", *PARTITIONS)
allocations = st.lists(
    st.tuples(st.sampled_from(DEVICES), st.sampled_from([False, False, False, True])),
    min_size=1,
    max_size=3,
    unique_by=lambda pair: pair[0],
)


class Killed(BaseException):
    """Stands for the end of the process."""


class Node(RuleBasedStateMachine):
    """A node with one or two instances of the driver, and what should be true of it."""

    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp(prefix="history-"))
        self.boot = 0
        self.mig = FileMig(self.root / "mig")
        self.claims: dict[str, dict[str, Any]] = {}
        self.prepared: dict[str, list[tuple[str, bool]]] = {}
        self.uuids: dict[str, dict[str, str | None]] = {}
        self.drivers: list[DriverCore] = []

    @initialize()
    def begin(self) -> None:
        self.whole = partitionable(
            discover(NvmlLibrary.simulated("t4x4"), Path("/nowhere"), salt="node-a")
        )
        self.inventory = self.whole
        self._reboot_id()
        self.drivers = [self._start()]

    def teardown(self) -> None:
        faults.install(None)
        shutil.rmtree(self.root)

    def _reboot_id(self) -> None:
        (self.root / "boot_id").write_text(f"boot-{self.boot}\n")

    def _start(self) -> DriverCore:
        return DriverCore(
            DriverOptions(
                node_name="node-a",
                cdi_root=self.root / "cdi",
                state_dir=self.root / "state",
                device_nodes="declare",
                durable=False,
                device_metadata=True,
                boot_id_path=self.root / "boot_id",
            ),
            NvmlLibrary.simulated("t4x4"),
            partitions=self.mig,
            inventory=self.inventory,
        )

    def _is_there(self, uid: str) -> bool:
        """Whether all devices of a prepared claim are the ones that were prepared."""
        for name, known in self.uuids[uid].items():
            device = self.inventory.get(name)
            if device is None or (known and device.uuid and known != device.uuid):
                return False
        return True

    def _expect_prepare(self, uid: str, wanted: list[tuple[str, bool]]) -> bool:
        """Whether it should succeed, from the model alone."""
        if self.prepared.get(uid) == wanted:
            return self._is_there(uid)
        if any(self.inventory.get(name) is None for name, _ in wanted):
            return False
        held = [pair for other, pairs in self.prepared.items() if other != uid for pair in pairs]
        real = [name for name, admin in wanted if not admin]
        taken = [name for name, admin in held if not admin]
        for index, name in enumerate(real):
            if any(_overlap(name, other) for other in [*taken, *real[:index]]):
                return False
        # Admin access looks on: a partition must exist, made by another claim.
        return all(name in taken for name, admin in wanted if admin and name in PARTITIONS)

    @rule(uid=st.sampled_from(UIDS), devices=allocations)
    def allocate(self, uid: str, devices: list[tuple[str, bool]]) -> None:
        results = [
            result(name, f"r{index}", **({"adminAccess": True} if admin else {}))
            for index, (name, admin) in enumerate(devices)
        ]
        self.claims[uid] = {"object": make_claim(*results, uid=uid), "devices": devices}

    @precondition(lambda self: bool(self.claims))
    @rule(data=st.data(), which=st.integers(0, 1))
    def prepare(self, data: st.DataObject, which: int) -> None:
        uid = data.draw(st.sampled_from(sorted(self.claims)))
        claim = self.claims[uid]
        driver = self.drivers[which % len(self.drivers)]
        should = self._expect_prepare(uid, claim["devices"])
        same = self.prepared.get(uid) == claim["devices"]
        try:
            devices = driver.prepare(claim["object"])
        except PrepareError:
            assert not should, f"{uid} was refused"
            if not same:
                self._forget(uid)
        else:
            assert should, f"{uid} was prepared"
            assert [d.device_name for d in devices] == [name for name, _ in claim["devices"]]
            if not same:
                self._remember(uid, claim["devices"])

    @rule(uid=st.sampled_from(UIDS), which=st.integers(0, 1))
    def unprepare(self, uid: str, which: int) -> None:
        self.drivers[which % len(self.drivers)].unprepare(uid)
        self._forget(uid)

    @precondition(lambda self: bool(self.claims))
    @rule(data=st.data(), at=st.integers(0, 30), unprepare=st.booleans())
    def crash(self, data: st.DataObject, at: int, unprepare: bool) -> None:
        """Die in a call; what the claim's state is afterwards is the driver's to say."""
        uid = data.draw(st.sampled_from(sorted(self.claims)))
        left = [at]

        def hook(_point: str) -> None:
            left[0] -= 1
            if left[0] < 0:
                raise Killed

        before = self.prepared.get(uid)
        faults.install(hook)
        try:
            if unprepare:
                self.drivers[0].unprepare(uid)
            else:
                self.drivers[0].prepare(self.claims[uid]["object"])
        except (Killed, PrepareError):
            pass
        finally:
            faults.install(None)
        self.drivers = [self._start()]
        now = self.drivers[0].prepared().get(uid)
        if now is None:
            self._forget(uid)
            return
        pairs = [(device.device_name, device.admin_access) for device in now]
        assert pairs in (before, self.claims[uid]["devices"])
        if pairs != before:
            self._remember(uid, pairs)

    @rule()
    def restart(self) -> None:
        self.drivers = [self._start()]

    @rule()
    def start_beside(self) -> None:
        """A rolling update; whichever of the two is called, they agree."""
        if len(self.drivers) == 1:
            self.drivers.insert(0, self._start())
        else:
            self.drivers.pop()

    @rule()
    def reboot(self) -> None:
        self.boot += 1
        self._reboot_id()
        shutil.rmtree(self.root / "cdi")
        shutil.rmtree(self.root / "mig", ignore_errors=True)
        lost = [
            uid
            for uid, pairs in self.prepared.items()
            if not self._is_there(uid) or any(name in PARTITIONS for name, _ in pairs)
        ]
        for uid in lost:
            self._forget(uid)
        self.drivers = [self._start()]

    @rule(gone=st.sets(st.sampled_from(("gpu-1", "gpu-2"))), swapped=st.booleans())
    def change_inventory(self, gone: set[str], swapped: bool) -> None:
        """GPUs fall off the bus and come back, or another one has the name of an old one."""
        devices = tuple(device for device in self.whole if device.name not in gone)
        if swapped:
            devices = tuple(
                replace(d, uuid="GPU-another") if d.name == "gpu-2" else d for d in devices
            )
        self.inventory = Inventory(devices=devices, simulated=True)
        for driver in self.drivers:
            driver.set_inventory(self.inventory)

    def _remember(self, uid: str, pairs: list[tuple[str, bool]]) -> None:
        self.prepared[uid] = pairs
        found = ((name, self.inventory.get(name)) for name, _ in pairs)
        self.uuids[uid] = {name: d.uuid if d is not None else None for name, d in found}

    def _forget(self, uid: str) -> None:
        self.prepared.pop(uid, None)
        self.uuids.pop(uid, None)

    @invariant()
    def nothing_is_lost_or_left(self) -> None:
        for driver in self.drivers:
            found = {
                uid: [(device.device_name, device.admin_access) for device in devices]
                for uid, devices in driver.prepared().items()
            }
            assert found == self.prepared
            claim_invariants.check(
                driver, lost={uid for uid in self.prepared if not self._is_there(uid)}
            )


def _overlap(one: str, two: str) -> bool:
    """Of two device names, after what they mean on this node."""
    if one == two:
        return True
    if not (one.startswith("gpu-0") and two.startswith("gpu-0")):
        return False
    if "gpu-0" in (one, two):
        return True
    return bool(set(_slots(one)) & set(_slots(two)))


def _slots(name: str) -> range:
    start = int(name.rpartition("-")[2])
    return range(start, start + int(name.split("-mig-")[1][0]))


Node.TestCase.settings = settings(
    max_examples=40,
    stateful_step_count=25,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
TestHistories = Node.TestCase
