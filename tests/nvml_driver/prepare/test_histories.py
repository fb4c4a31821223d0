"""Random histories of a node against a model: a dict of what must be prepared.

prepare, unprepare, a new allocation, crash at any fault point, restart, reboot, a change of the
node's devices, a second instance of the driver beside the first, somebody else who makes MIG
devices and destroys them, also those that claims have; claims ask for time slices of GPUs.
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

from nvml_driver.core import DriverCore
from nvml_driver.devices.discovery import discover_devices
from nvml_driver.errors import PrepareError
from nvml_driver.mig.profiles import device_name
from nvml_driver.model.inventory import Inventory
from nvml_driver.nvml.library import NvmlLibrary
from nvml_driver.prepare.timeslicing import TimeSlices
from nvml_driver.storage import faults
from tests.nvml_driver import claim_invariants
from tests.nvml_driver.fake_mig import PARTITIONS, FileMig, partitionable
from tests.nvml_driver.fake_smi import FileSmi
from tests.nvml_driver.helpers import NOWHERE, gpu_config, make_claim, opaque, options_below, result

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
        self.made: dict[str, dict[str, int]] = {}
        self.foreign: set[int] = set()
        self.destroyed: set[int] = set()
        self.smi = FileSmi(self.root / "time-slices.json")
        self.unset: set[str] = set()
        self.drivers: list[DriverCore] = []

    @initialize()
    def begin(self) -> None:
        self.whole = partitionable(
            discover_devices(NvmlLibrary.load_simulated("t4x4"), NOWHERE, salt="node-a")
        )
        self.inventory = self.whole
        self._reboot_id()
        self.drivers = [self._start()]

    def teardown(self) -> None:
        faults.install_hook(None)
        shutil.rmtree(self.root)

    def _reboot_id(self) -> None:
        (self.root / "state").mkdir(exist_ok=True)
        (self.root / "state" / "boot_id").write_text(f"boot-{self.boot}\n")

    def _start(self) -> DriverCore:
        return DriverCore(
            options_below(self.root, device_metadata=True),
            NvmlLibrary.load_simulated("t4x4"),
            partitions=self.mig,
            inventory=self.inventory,
            time_slices=TimeSlices(self.smi),
        )

    def _is_there(self, uid: str) -> bool:
        """Whether all devices of a prepared claim are the ones that were prepared."""
        for name, known in self.uuids[uid].items():
            device = self.inventory.get(name)
            if device is None or (known and device.uuid and known != device.uuid):
                return False
        return True

    def _gone(self, uid: str, *, admin: bool) -> bool:
        """Whether a MIG device that the claim made, or looks at, is there no more."""
        there = {instance.gi_id for instance in self.mig.all()}
        looked_at = {name for name, is_admin in self.prepared[uid] if is_admin}
        return any(
            number not in there
            for name, number in self.made[uid].items()
            if (name in looked_at) is admin
        )

    def _is_repeated(self, uid: str, wanted: list[tuple[str, bool]]) -> bool:
        """Whether preparing changes nothing."""
        return self.prepared.get(uid) == wanted and not self._gone(uid, admin=False)

    def _expect_prepare(self, uid: str, wanted: list[tuple[str, bool]]) -> bool:
        """Whether it should succeed, from the model alone."""
        if self._is_repeated(uid, wanted):
            return self._is_there(uid) and not self._gone(uid, admin=True)
        if any(self.inventory.get(name) is None for name, _ in wanted):
            return False
        held = [pair for other, pairs in self.prepared.items() if other != uid for pair in pairs]
        real = [name for name, admin in wanted if not admin]
        taken = [name for name, admin in held if not admin]
        for index, name in enumerate(real):
            if any(_overlap(name, other) for other in [*taken, *real[:index]]):
                return False
        foreign = [each for each in self.mig.all() if each.gi_id in self.foreign]
        if any(
            set(_slots(name)) & set(range(each.place.start, each.place.start + each.place.size))
            for name in real
            if name in PARTITIONS
            for each in foreign
        ):
            return False
        # Admin access looks on: a partition must exist, made by another claim or somebody else.
        own = self.made.get(uid, {}).values()
        there = {device_name(each.place) for each in self.mig.all() if each.gi_id not in own}
        return all(name in there for name, admin in wanted if admin and name in PARTITIONS)

    @rule(
        uid=st.sampled_from(UIDS),
        devices=allocations,
        slices=st.sampled_from([None, None, "Default", "Long", "Short"]),
    )
    def allocate(self, uid: str, devices: list[tuple[str, bool]], slices: str | None) -> None:
        results = [
            result(name, f"r{index}", **({"adminAccess": True} if admin else {}))
            for index, (name, admin) in enumerate(devices)
        ]
        config = None if slices is None else [opaque(gpu_config(slices))]
        self.claims[uid] = {
            "object": make_claim(*results, uid=uid, config=config),
            "devices": devices,
        }

    @precondition(lambda self: bool(self.claims))
    @rule(data=st.data(), which=st.integers(0, 1))
    def prepare(self, data: st.DataObject, which: int) -> None:
        uid = data.draw(st.sampled_from(sorted(self.claims)))
        claim = self.claims[uid]
        driver = self.drivers[which % len(self.drivers)]
        should = self._expect_prepare(uid, claim["devices"])
        same = self._is_repeated(uid, claim["devices"])
        try:
            devices = driver.prepare(claim["object"])
        except PrepareError:
            assert not should, f"{uid} was refused"
            if not same:
                self._forget(uid)
        else:
            assert should, f"{uid} was prepared"
            assert [d.device_name for d in devices] == [name for name, _ in claim["devices"]]
            self.unset.discard(uid)
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
        faults.install_hook(hook)
        try:
            if unprepare:
                self.drivers[0].unprepare(uid)
            else:
                self.drivers[0].prepare(self.claims[uid]["object"])
        except (Killed, PrepareError):
            pass
        finally:
            faults.install_hook(None)
        self.drivers = [self._start()]
        now = self.drivers[0].list_prepared().get(uid)
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
        self.foreign.clear()
        self.smi.path.unlink(missing_ok=True)
        self.unset = set(self.prepared)
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

    @rule(name=st.sampled_from(PARTITIONS))
    def somebody_makes(self, name: str) -> None:
        """With ``nvidia-smi mig``, where there is room."""
        device = self.whole.get(name)
        assert device is not None
        assert device.place is not None
        if self.mig.find_instance(device.place) is None:
            self.foreign.add(self.mig.create_instance(device.place).gi_id)

    @precondition(lambda self: bool(self.mig.all()))
    @rule(data=st.data())
    def somebody_destroys(self, data: st.DataObject) -> None:
        """Likewise, whoever made it and whether or not a claim has it."""
        instance = data.draw(st.sampled_from(self.mig.all()))
        self.mig.destroy_instance(instance)
        if instance.gi_id in self.foreign:
            self.foreign.remove(instance.gi_id)
        else:
            self.destroyed.add(instance.gi_id)

    def _remember(self, uid: str, pairs: list[tuple[str, bool]]) -> None:
        self.prepared[uid] = pairs
        found = ((name, self.inventory.get(name)) for name, _ in pairs)
        self.uuids[uid] = {name: d.uuid if d is not None else None for name, d in found}
        devices = self.drivers[0].list_prepared()[uid]
        self.made[uid] = {d.device_name: d.made.gi_id for d in devices if d.made is not None}

    def _forget(self, uid: str) -> None:
        self.prepared.pop(uid, None)
        self.uuids.pop(uid, None)
        self.made.pop(uid, None)
        self.unset.discard(uid)

    @invariant()
    def nothing_is_lost_or_left(self) -> None:
        for driver in self.drivers:
            found = {
                uid: [(device.device_name, device.admin_access) for device in devices]
                for uid, devices in driver.list_prepared().items()
            }
            assert found == self.prepared
            claim_invariants.check(
                driver,
                lost={uid for uid in self.prepared if not self._is_there(uid)},
                foreign=self.foreign,
                destroyed=self.destroyed,
                smi=self.smi,
                unset=self.unset,
            )
            gone = {
                name
                for uid, pairs in self.prepared.items()
                for name, _ in pairs
                if name in self.made[uid]
                and self.made[uid][name] not in {each.gi_id for each in self.mig.all()}
            }
            news = driver.find_mig_changes()
            assert news is not None
            assert set(news.vanished) == gone


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
    stateful_step_count=25, suppress_health_check=[HealthCheck.too_slow]
)
TestHistories = Node.TestCase
