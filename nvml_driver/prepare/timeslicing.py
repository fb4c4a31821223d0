"""Sets how long a process keeps a GPU that several use: for a claim, and resets it after it.

NVML has no function for it, ``nvidia-smi compute-policy`` does; dra-driver-nvidia-gpu does the same
(``sharing.go``, ``nvlib.go`` in ``cmd/gpu-kubelet-plugin``). Processes can only share a GPU in
compute mode DEFAULT, so that is set first. Nothing of it survives a reboot or a reset of the GPU,
so it is set again when a claim is prepared again.
"""

from __future__ import annotations

import logging
import subprocess
import time
from collections.abc import Iterable, Sequence
from typing import Protocol

from nvml_driver.errors import DriverError, PrepareError
from nvml_driver.model.prepared import ClaimRecord, PreparedDevice
from nvml_driver.nvml.installation import DriverRoot
from nvml_driver.storage import faults

_LOG = logging.getLogger(__name__)
SETTING = "TIMESLICE_INTERVAL"
INTERVALS = {"Default": 0, "Short": 1, "Medium": 2, "Long": 3}
"""As ``nvidia-smi compute-policy --set-timeslice`` takes them."""

COMMAND_SECONDS = 10.0
BUDGET_SECONDS = 30.0  # For all commands of a claim, of the 45 s that the kubelet waits.
_NO_SUCH_GPU = {6, 9, 15}  # not found, driver not loaded, fallen off the bus: nothing is set there
_CANNOT = {3, 13}  # the GPU or the driver has no time slices, so none were set


class CommandError(DriverError):
    """A command of nvidia-smi failed with an exit ``status`` (``nvidia-smi(1)``); None: no end."""

    def __init__(self, message: str, status: int | None) -> None:
        super().__init__(message)
        self.status = status


class NoToolError(CommandError):
    """nvidia-smi is not installed."""


class Tool(Protocol):
    """The use that the driver makes of nvidia-smi."""

    def run(self, arguments: Sequence[str], seconds: float) -> None:
        """Run it to its end; CommandError if it fails or takes longer than ``seconds``."""


class NvidiaSmi:
    """The nvidia-smi of an installed driver."""

    def __init__(self, root: DriverRoot) -> None:
        self._root = root

    def run(self, arguments: Sequence[str], seconds: float) -> None:
        """Run ``nvidia-smi`` without a shell. Raises CommandError."""
        tool = self._root.find_tool("nvidia-smi")
        if tool is None:
            raise NoToolError(
                f"nvidia-smi is not in {self._root.container}; set where the driver is installed "
                "with --nvidia-driver-root and --container-driver-root",
                None,
            )
        environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C"}
        library = self._root.find_library("libnvidia-ml.so.1")
        if library is not None and self._root.container.as_posix() != "/":
            environment["LD_PRELOAD"] = str(library)  # no loader looks for it below that root
        command = " ".join(["nvidia-smi", *arguments])
        try:
            completed = subprocess.run(
                [str(tool), *arguments],
                capture_output=True,
                text=True,
                errors="replace",
                check=False,
                timeout=seconds,
                env=environment,
                stdin=subprocess.DEVNULL,
            )
        except subprocess.TimeoutExpired:
            raise CommandError(f"`{command}` did not end within {seconds:.3g} s", None) from None
        except OSError as error:
            raise CommandError(f"`{command}` cannot be run: {error}", None) from None
        if completed.returncode != 0:
            output = " ".join((completed.stdout + completed.stderr).split())[-500:]
            raise CommandError(
                f"`{command}` failed (exit status {completed.returncode}): {output}",
                completed.returncode,
            )


class TimeSlices:
    """Sets and resets the time slices of a node's GPUs."""

    def __init__(
        self,
        tool: Tool,
        *,
        command_seconds: float = COMMAND_SECONDS,
        budget_seconds: float = BUDGET_SECONDS,
    ) -> None:
        """Use ``tool``, which may take so many seconds for one command, and for a claim."""
        self._tool = tool
        self._command = command_seconds
        self._budget = budget_seconds

    def set_for_claim(self, record: ClaimRecord, other_records: Iterable[ClaimRecord]) -> None:
        """Set the time slices that a claim asks for; nothing happens if it asks for none.

        The ``other_records`` are prepared claims, which may have shares of the same GPU.

        Raises:
            PrepareError: another claim has the GPU set otherwise, or NVML reports no UUID.
            CommandError: it could not be set; some of it may have been.
        """
        other_records = [another for another in other_records if another.uid != record.uid]
        for device in _time_sliced_devices(record):
            if device.uuid is None:
                raise PrepareError(
                    f"device {device.device_name}: without a UUID its time slices cannot be set"
                )
            for other, held in _find_holders(device, other_records):
                if interval_of(held) != interval_of(device):
                    raise PrepareError(
                        f"device {device.device_name}: {other} has shares of it with time slices "
                        f"{interval_of(held)}, so they cannot be {interval_of(device)}"
                    )
        deadline = time.monotonic() + self._budget
        for device in _time_sliced_devices(record):
            faults.reach("time-slice:begin")
            try:
                self._apply(str(device.uuid), INTERVALS[str(interval_of(device))], deadline)
            except NoToolError as error:
                if interval_of(device) != "Default":
                    raise
                _LOG.info("%s: time slices are left as they are: %s", device.device_name, error)
            faults.reach("time-slice:done")

    def reset_for_claim(self, record: ClaimRecord, other_records: Iterable[ClaimRecord]) -> None:
        """Set the default again, where no other claim needs what is set. Raises CommandError."""
        other_records = [other for other in other_records if other.uid != record.uid]
        deadline = time.monotonic() + self._budget
        for device in _time_sliced_devices(record):
            if device.uuid is None or any(True for _ in _find_holders(device, other_records)):
                continue
            faults.reach("time-slice-reset:begin")
            try:
                self._apply(device.uuid, INTERVALS["Default"], deadline)
            except CommandError as error:
                never_set = isinstance(error, NoToolError) and interval_of(device) == "Default"
                if not never_set and error.status not in _NO_SUCH_GPU | _CANNOT:
                    raise
                _LOG.warning("%s: there is nothing to reset: %s", device.device_name, error)
            faults.reach("time-slice-reset:done")

    def _apply(self, uuid: str, number: int, deadline: float) -> None:
        # First the compute mode, without which processes cannot share the GPU at all.
        self._run(("-i", uuid, "-c", "DEFAULT"), deadline)
        self._run(("compute-policy", "-i", uuid, "--set-timeslice", str(number)), deadline)

    def _run(self, arguments: Sequence[str], deadline: float) -> None:
        remaining = deadline - time.monotonic()
        if remaining <= 0:
            raise CommandError(
                f"nvidia-smi took all of {self._budget:.0f} s for the GPUs before", None
            )
        self._tool.run(arguments, min(self._command, remaining))


def interval_of(device: PreparedDevice) -> str | None:
    """Return what a prepared device's time slices are set to; None: they are left as they are."""
    if device.kind != "full" or device.admin_access:
        return None  # those of a MIG device cannot be set; admin access only observes
    return dict(device.settings).get(SETTING)


def sets_time_slices(record: ClaimRecord) -> bool:
    """Return whether preparing a claim sets time slices."""
    return bool(_time_sliced_devices(record))


def _time_sliced_devices(record: ClaimRecord) -> list[PreparedDevice]:
    return [device for device in record.devices if interval_of(device) is not None]


def _find_holders(
    device: PreparedDevice, other_records: Iterable[ClaimRecord]
) -> Iterable[tuple[ClaimRecord, PreparedDevice]]:
    """Yield each claim and device that has shares of the same GPU and sets its time slices."""
    for other in other_records:
        for held in other.devices:
            if held.uuid == device.uuid and interval_of(held) is not None:
                yield other, held
