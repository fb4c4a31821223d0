"""A driver that is checked: its folders, its API server, its process, its sockets."""

from __future__ import annotations

import shutil
import signal
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from conformance.drivercheck import kubelet
from conformance.drivercheck.api import HttpApi
from conformance.drivercheck.kubelet import Plugin, RefusedError, Registrar
from conformance.drivercheck.objects import NODE
from conformance.drivercheck.process import (
    Process,
    Starter,
    can_use_mount_namespaces,
    last_words,
    path_outside,
)
from conformance.drivercheck.rbac.policy import Policy
from conformance.drivercheck.violations import SilenceError, UnanswerableError, ViolationError
from kube.base.text import one_line
from kube.kubelet.plugins import KUBELET_ROOT
from kube.slices import pools_complete
from kube.values import Obj

REGISTER_SECONDS: Final = 30.0  # until a driver that was started has registered; generous
START_SECONDS: Final = 30.0  # until it has published its slices; likewise
STOP_SECONDS: Final = 30.0  # SIGTERM to the end: the default terminationGracePeriodSeconds of pods
CHECK_SECONDS: Final = 60.0  # for one check, beside what its calls may take
_LOOK_SECONDS: Final = 0.01
_FOLDERS: Final = ("plugins_registry", "plugins", "cdi", "etc-cdi")
"""The first two as in the kubelet's root, for drivers that take only that; see `HOST_PATHS`."""


class DriverUnderCheck:
    """One driver on one node.

    Attributes:
        registry: where registration sockets appear (KUBELET_REGISTRAR_DIRECTORY_PATH).
        plugins: where plugins have their folders (KUBELET_PLUGINS_DIRECTORY_PATH).
        cdi_root: where the driver writes CDI specs (CDI_ROOT).
        cdi_folders: where CDI specs are, in a runtime's order: of two the later one decides.
        info: the driver's PluginInfo; None before it has registered.
        can_have_twins: whether another process of it can run beside it: it is started here, and has
            no folder that is the same for both.
        spent: ``starts`` and ``ends`` of its processes -> how many there were, and their seconds.
    """

    def __init__(
        self,
        folder: Path,
        starter: Starter | None,
        *,
        cdi_folders: tuple[Path, ...] = (),
        policy: Policy | None = None,
        next_starter: Starter | None = None,
        token: str = "",
    ) -> None:
        """Lay out the folders and serve the API; without a starter somebody else starts the driver.

        Args:
            folder: empty, with a short path, because sockets lie in it.
            cdi_folders: where specs of the driver are beside its CDI_ROOT.
            policy: what it may ask of the API server; None: everything.
            next_starter: starts another version of it, in the same folders.
            token: what it shows the API server; empty: a new one.
        """
        self.folder = folder
        self.registry, self.plugins, self.cdi_root, etc_cdi = (folder / name for name in _FOLDERS)
        self.cdi_folders = (etc_cdi, self.cdi_root, *cdi_folders)
        self.can_have_twins = starter is not None and not cdi_folders
        self.log = folder / "driver.log"
        self.api = HttpApi(folder, policy, token)
        self.policy = policy
        self.starter, self.next_starter = starter, next_starter
        self.process: Process | None = None
        self.info: Any = None
        self.registrar: Registrar | None = None
        self._plugin: Plugin | None = None
        self.spent = {"starts": (0, 0.0), "ends": (0, 0.0)}
        self._started_at = 0.0
        self._deadline = time.monotonic() + CHECK_SECONDS
        self._make_folders()

    def twin(self, folder: Path) -> DriverUnderCheck:
        """Return the same driver in another folder, with an API server of its own."""
        return DriverUnderCheck(
            folder,
            self.starter,
            policy=self.policy,
            next_starter=self.next_starter,
            token=self.api.token,
        )

    def take_over(self, twin: DriverUnderCheck) -> None:
        """Take over what a twin has logged, asked of its API server, and taken of time."""
        with suppress(FileNotFoundError), twin.log.open("rb") as log, self.log.open("ab") as own:
            shutil.copyfileobj(log, own)
        self.api.objects.rights.take_over(twin.api.objects.rights)
        for kind, (count, seconds) in twin.spent.items():
            self._spend(kind, count, seconds)

    def _spend(self, kind: str, count: int, seconds: float) -> None:
        counted, so_far = self.spent[kind]
        self.spent[kind] = counted + count, so_far + seconds

    @property
    def environment(self) -> dict[str, str]:
        """The environment of the driver (the variables of the local cluster's drivers)."""
        return {
            "NODE_NAME": NODE,
            "KUBECONFIG": str(self.api.kubeconfig),
            "CDI_ROOT": str(self.cdi_root),
            "KUBELET_REGISTRAR_DIRECTORY_PATH": str(self.registry),
            "KUBELET_PLUGINS_DIRECTORY_PATH": str(self.plugins),
        }

    def begin_check(self, seconds: float = 0.0) -> None:
        """Give a check its time from now on, or more seconds where it needs them."""
        self._deadline = time.monotonic() + max(CHECK_SECONDS, seconds)

    def start(self, **variables: str) -> None:
        """Start the driver, with more variables; do not wait. Raises UnanswerableError."""
        if self.starter is None:
            raise UnanswerableError("the driver is not started here; give --driver-command")
        self._started_at = time.monotonic()
        self.process = self.starter({**self.environment, **variables}, self.log)

    def stop(self, number: int = signal.SIGTERM) -> None:
        """End the driver with a signal. Raises ViolationError: it had to be killed."""
        self.disconnect()
        process, self.process = self.process, None
        self._started_at = 0.0
        if process is None:
            return
        began = time.monotonic()
        process.signal(number)
        ended = process.wait(STOP_SECONDS)
        self._spend("ends", 1, time.monotonic() - began)
        process.signal(signal.SIGKILL)  # what else is in its group
        if not ended:
            process.wait(STOP_SECONDS)
            raise ViolationError(
                f"expected the end at SIGTERM; found it running {STOP_SECONDS:.0f} s later"
            )

    def restart(self, number: int = signal.SIGTERM) -> None:
        """Stop and start, and wait until it serves and has published."""
        self.need_command()
        self.stop(number)
        self.start()
        self.await_registration()
        self.await_slices()

    def await_registration(self, seconds: float = 0.0) -> Any:
        """Wait for and accept the registration, as a kubelet does. Raises ViolationError: none."""
        seconds = seconds or REGISTER_SECONDS
        deadline = time.monotonic() + seconds
        why = f"no socket appeared in {self.registry}"
        if not can_use_mount_namespaces():
            why += f"; without root, a driver that has {KUBELET_ROOT} in its code misses it"
        while True:
            for socket in sorted(kubelet.list_sockets(self.registry)):
                registrar = Registrar(socket)
                try:
                    info = registrar.get_info(
                        kubelet.NOTIFY_SECONDS
                    )  # too slow is a check of its own
                except (RefusedError, SilenceError) as error:
                    why = f"{socket.name}: {error}"
                    registrar.close()
                    continue
                self.disconnect()
                info.endpoint = path_outside(info.endpoint, self.folder)
                self.registrar, self.info = registrar, info
                if self._started_at:
                    self._spend("starts", 1, time.monotonic() - self._started_at)
                    self._started_at = 0.0
                with suppress(RefusedError, SilenceError):  # has a check of its own
                    registrar.notify(True)
                return info
            if self.process is not None and not self.process.is_alive():
                raise ViolationError(f"the driver has ended: {self.describe_log()}")
            if time.monotonic() > deadline:
                raise ViolationError(
                    f"not registered within {seconds:.0f} s: {why}; {self.describe_log()}"
                )
            time.sleep(_LOOK_SECONDS)

    def describe_log(self) -> str:
        """Return the end of the driver's log, for a message."""
        words = last_words(self.log)
        text = f"its log ends: {words}" if words else "it logged nothing here"
        if refused := self.api.objects.rights.refused:
            text += f"; the roles of --rbac refuse {one_line(refused[0], 200)}"
        return text

    def is_serving(self) -> bool:
        """Return whether the driver that registered still answers."""
        if self.process is not None and not self.process.is_alive():
            return False
        try:
            self.plugin.prepare((), seconds=kubelet.NOTIFY_SECONDS)
        except (RefusedError, SilenceError, ViolationError):
            return False
        return True

    def reboot(self) -> bool:
        """Start the driver again as after a reboot, without its CDI specs.

        Returns whether it sees another boot id, too, which takes root: by that a driver may know
        that what it prepared is gone. It sees that one until it is started again.
        """
        self.need_command()
        with suppress(ViolationError):
            self.stop(signal.SIGKILL)
        for file in self.cdi_root.iterdir():
            if file.is_file():
                file.unlink()
        boot_id = self.folder / "boot_id"
        boot_id.write_text(f"{uuid.uuid4()}\n", encoding="ascii")
        usual = self.starter
        other = usual.with_boot_id(boot_id) if usual is not None else None
        try:
            self.starter = other or usual
            self.start()
        finally:
            self.starter = usual
        self.await_registration()
        return other is not None

    def renew(self) -> None:
        """Forget all that the driver has made, and start a new one."""
        with suppress(ViolationError):
            self.stop(signal.SIGKILL)
        for name in _FOLDERS:
            shutil.rmtree(self.folder / name, ignore_errors=True)
        self._make_folders()
        for resource_slice in self.api.objects.store.all("ResourceSlice"):
            self.api.objects.delete(resource_slice)
        self.start()
        self.await_registration()
        self.await_slices()

    def disconnect(self) -> None:
        for connection in (self.registrar, self._plugin):
            if connection is not None:
                connection.close()
        self.registrar, self._plugin = None, None

    def close(self) -> None:
        with suppress(ViolationError):
            self.stop(signal.SIGKILL)
        self.api.close()

    @property
    def name(self) -> str:
        return str(self.info.name)

    @property
    def plugin(self) -> Plugin:
        """Its DRA service, in its first version that a kubelet knows. Raises ViolationError."""
        if self._plugin is None:
            version = next((v for v in self.info.supported_versions if v in kubelet.SERVICES), None)
            if version is None:
                offered = ", ".join(self.info.supported_versions) or "none"
                expected = " or ".join(kubelet.SERVICES)
                raise ViolationError(f"expected {expected} in supported_versions; found {offered}")
            self._plugin = self.connect(version)
        return self._plugin

    def connect(self, version: str) -> Plugin:
        """Open another connection to its DRA service. Raises ViolationError."""
        if self.registrar is None:
            raise ViolationError(f"the driver is not registered; {self.describe_log()}")
        endpoint = Path(self.info.endpoint or self.registrar.socket)
        return Plugin(endpoint, version)

    def list_slices(self) -> list[Obj]:
        all_slices = self.api.objects.list_slices(self.name)
        return [
            resource_slice
            for resource_slice in all_slices
            if resource_slice["spec"].get("nodeName") in (None, NODE)
        ]

    def await_slices(self, seconds: float = 0.0) -> list[Obj]:
        """Wait for its complete pools; return its ResourceSlices. Raises ViolationError."""
        seconds = seconds or START_SECONDS

        if not self.wait(
            lambda: pools_complete(resource_slice["spec"] for resource_slice in self.list_slices()),
            seconds,
        ):
            refused = "; ".join(self.api.refusals[:3])
            raise ViolationError(
                f"expected complete ResourceSlices of {self.name} for node {NODE} within "
                f"{seconds:.0f} s; found {len(self.list_slices())} slices"
                + (f"; the API server refused {refused}" if refused else f"; {self.describe_log()}")
            )
        return self.list_slices()

    def list_published_devices(self) -> list[tuple[str, str]]:
        """Return pool and name of each published device; raises as `await_slices`."""
        return [
            (resource_slice["spec"]["pool"]["name"], device["name"])
            for resource_slice in self.await_slices()
            for device in resource_slice["spec"].get("devices") or ()
        ]

    def wait(self, condition: Callable[[], bool], seconds: float) -> bool:
        return self.api.objects.history.wait(condition, min(seconds, self.seconds_left()))

    def seconds_left(self) -> float:
        return max(0.0, self._deadline - time.monotonic())

    def need_command(self) -> None:
        """Raise UnanswerableError, which skips the check, where somebody else starts the driver."""
        if self.starter is None:
            raise UnanswerableError("it stops and starts the driver; give --driver-command")

    def _make_folders(self) -> None:
        for name in _FOLDERS:
            (self.folder / name).mkdir(mode=0o755, parents=True, exist_ok=True)
