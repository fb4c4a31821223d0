"""What must hold on a node after any history: checked from disk, as a stranger would."""

from __future__ import annotations

import json
from collections.abc import Collection
from itertools import combinations

from kube.cdi.reading import resolve
from nvml_driver.cdi import specs as cdi
from nvml_driver.cdi.metadata import HOST_DIRECTORY
from nvml_driver.core import DriverCore
from nvml_driver.model.prepared import ClaimState
from nvml_driver.prepare.timeslicing import INTERVALS, interval_of
from tests.nvml_driver.fake_mig import FileMig
from tests.nvml_driver.fake_smi import FileSmi


def check(
    core: DriverCore,
    *,
    lost: Collection[str] = (),
    foreign: Collection[int] = (),
    destroyed: Collection[int] = (),
    smi: FileSmi | None = None,
    unset: Collection[str] = (),
) -> None:
    """Raise AssertionError if something is lost or left over.

    Args:
        core: a running driver.
        lost: claims whose device is gone from the node, so that their spec may be missing.
        foreign: ids of GPU instances that others made.
        destroyed: ids of GPU instances that others destroyed.
        smi: what the GPUs are set to.
        unset: claims whose settings a reboot took.
    """
    options = core.options
    records = core.list_records()
    document = json.loads((options.state_dir / "checkpoint.json").read_text())
    assert set(document["data"]["claims"]) == {record.uid for record in records}
    assert {record.state for record in records} <= {ClaimState.PREPARE_COMPLETED}, records

    for one, two in combinations(records, 2):
        for device in one.devices:
            for other in two.devices:
                assert not device.conflicts_with(other), f"{device} and {other} are both in use"

    owners = {
        cdi.claim_uid_of(path, options.driver_name) for path in options.cdi_root.glob("*.json")
    }
    uids = {record.uid for record in records}
    assert owners <= uids, "a CDI spec without a claim"
    assert uids - set(lost) <= owners, "a claim without a CDI spec"
    for record in records:
        if record.uid in owners:
            ids = [name for device in record.devices for name in device.cdi_device_ids]
            resolve([options.cdi_root], ids)
    for folder in (options.state_dir, options.cdi_root, options.state_dir / HOST_DIRECTORY):
        assert not list(folder.glob(".*.tmp")), "a scratch file is left"
    if options.device_metadata:
        metadata = {
            path.stem.rpartition("_")[0]
            for path in (options.state_dir / HOST_DIRECTORY).glob("*.json")
        }
        assert metadata <= uids
        assert uids - set(lost) <= metadata
    if smi is not None:
        asked = {
            device.uuid: (record.uid, INTERVALS[str(interval_of(device))])
            for record in records
            for device in record.devices
            if interval_of(device) is not None
        }
        for uuid, number in smi.set_now().items():
            assert asked.get(uuid, ("", 0))[1] == number, f"{uuid} is set for no claim"
        for device_uuid, (uid, number) in asked.items():
            if uid not in unset:
                assert smi.found().get(str(device_uuid), 0) == number, (
                    f"{uid} has not what it asked"
                )
    made = {
        device.made.gi_id
        for record in records
        for device in record.devices
        if device.makes_instance and device.made is not None
    }
    partitions = core._partitions
    if isinstance(partitions, FileMig):
        there = {instance.gi_id for instance in partitions.read_state().instances}
        assert made - set(destroyed) == there - set(foreign), "MIG devices leaked"
        assert set(foreign) <= there, "a MIG device of somebody else was destroyed"
