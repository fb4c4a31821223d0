"""Lets instances of the driver live on one node, one after the other or side by side.

Without a pod uid there is one instance; a second one is refused, because it would take over the
sockets of the first, and lose them when the first ends and removes them.

With a pod uid (a DaemonSet with ``maxSurge``) the instances have sockets of their own, and the
kubelet calls either (kubernetes 1.33 and later; names as in
``k8s.io/dynamic-resource-allocation/kubeletplugin``, ``RollingUpdate``). Claims are safe in the
shared checkpoint; what only one may do, publish slices and collect claims, the newest does. An
instance that was killed leaves its sockets; whoever starts next removes them.

Each instance keeps a file locked for its life, so that the kernel shows which are alive.
"""

from __future__ import annotations

import base64
import hashlib
import json
import logging
import os
import threading
import time
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from nvml_driver.errors import DriverError
from nvml_driver.storage.files import file_lock, hold_lock, write_atomic

_LOG = logging.getLogger(__name__)
MAX_SOCKET_PATH = 107  # sun_path of unix(7), without the terminating zero.
WAIT_SECONDS = 10.0


def _short_digest(text: str, size: int) -> str:
    digest = hashlib.sha256(text.encode()).digest()[:size]
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def _choose_path(folder: Path, names: list[str]) -> Path:
    """Return the first name whose path is short enough for a socket, else the last."""
    for name in names:
        if len(str(folder / name).encode()) <= MAX_SOCKET_PATH:
            return folder / name
    return folder / names[-1]


def registration_socket(registry: Path, driver_name: str, pod_uid: str) -> Path:
    """Return where the kubelet finds the instance; a shorter name if the path would be too long."""
    folder = registry.absolute()
    if not pod_uid:
        return folder / f"{driver_name}-reg.sock"
    both = f"{driver_name}\0{pod_uid}"
    return _choose_path(
        folder,
        [
            f"{driver_name}-{pod_uid}-reg.sock",
            f"{driver_name}-{_short_digest(pod_uid, 8)}-reg.sock",
            f"dra-{_short_digest(both, 16)}-reg.sock",
        ],
    )


def dra_socket(plugins: Path, driver_name: str, pod_uid: str) -> Path:
    """Return where the kubelet calls the instance; a shorter name if the path would be too long."""
    folder = plugins.absolute() / driver_name
    if not pod_uid:
        return folder / "dra.sock"
    return _choose_path(folder, [f"dra-{pod_uid}.sock", f"dra-{_short_digest(pod_uid, 8)}.sock"])


class Instance:
    """This process among the instances of one driver on one node, with its sockets."""

    def __init__(
        self, state_dir: Path, *, driver_name: str, plugins: Path, registry: Path, pod_uid: str = ""
    ) -> None:
        """Choose the sockets. Raises DriverError: a socket's path is longer than it can be."""
        self._folder = state_dir / "instances"
        self._thread_lock = threading.Lock()  # publisher and collector both ask who is newest
        self._node_lock = file_lock(state_dir / "lock-instances")
        self._pod_uid = pod_uid
        self._number = 0
        self._life_lock: FileLock | None = None
        self.dra_socket = dra_socket(plugins, driver_name, pod_uid)
        self.registration_socket = registration_socket(registry, driver_name, pod_uid)
        for path in (self.dra_socket, self.registration_socket):
            length = len(str(path).encode())
            if length > MAX_SOCKET_PATH:
                raise DriverError(
                    f"socket path {path} has {length} bytes, a unix socket's path at most "
                    f"{MAX_SOCKET_PATH}: use shorter directories"
                )

    def begin(self, timeout: float = WAIT_SECONDS) -> None:
        """Become an instance; remove what dead ones left. Raises DriverError: another one runs."""
        deadline = time.monotonic() + timeout
        while True:
            other = self._try_begin()
            if other is None:
                return
            if time.monotonic() > deadline:
                raise DriverError(
                    f"another instance of the driver (process {other.get('pid')}) runs on this "
                    "node and uses the same sockets; stop it, or give both their --pod-uid for a "
                    "rolling update"
                )
            time.sleep(0.1)  # until a process ends that is not our child

    def is_newest(self) -> bool:
        """Return whether no living instance began after this one."""
        with self._thread_lock, hold_lock(self._node_lock):
            return not any(n > self._number for n, _ in self._list_living())

    def end(self) -> None:
        """Give the sockets up, so that another instance may have them."""
        if self._life_lock is not None:
            with self._thread_lock, hold_lock(self._node_lock):
                self._remove(self._number)
                self._life_lock.release()
                self._life_lock = None

    def _try_begin(self) -> dict[str, Any] | None:
        """Begin and return None, or return the description of the instance that is in the way."""
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with self._thread_lock, hold_lock(self._node_lock):
            numbers = self._list_numbers()
            living = self._list_living()
            own_sockets = {str(self.dra_socket), str(self.registration_socket)}
            for _, description in living:
                if own_sockets & set(description.get("sockets", ())):
                    return description
            for number in set(numbers) - {number for number, _ in living}:
                self._clean_up(number, keep={s for _, k in living for s in k.get("sockets", ())})
            self._number = max(numbers, default=0) + 1
            self._life_lock = file_lock(self._path(self._number, "lock"))
            self._life_lock.acquire()
            content = {"sockets": sorted(own_sockets), "podUID": self._pod_uid, "pid": os.getpid()}
            write_atomic(
                self._path(self._number, "json"), json.dumps(content).encode(), durable=False
            )
        return None

    def _path(self, number: int, suffix: str) -> Path:
        return self._folder / f"{number:06d}.{suffix}"

    def _list_numbers(self) -> list[int]:
        return sorted(int(path.stem) for path in self._folder.glob("*.lock"))

    def _list_living(self) -> list[tuple[int, dict[str, Any]]]:
        """Return number and description of the other instances that live."""
        living = []
        for number in self._list_numbers():
            if self._life_lock is not None and number == self._number:
                continue
            try:
                with file_lock(self._path(number, "lock")).acquire(blocking=False):
                    pass
            except Timeout:
                living.append((number, self._read_description(number)))
        return living

    def _read_description(self, number: int) -> dict[str, Any]:
        try:
            description: dict[str, Any] = json.loads(self._path(number, "json").read_bytes())
        except (OSError, ValueError):
            return {}  # killed before it was written, so it has no sockets either
        return description

    def _clean_up(self, number: int, keep: set[str]) -> None:
        for socket in self._read_description(number).get("sockets", ()):
            if socket not in keep:
                path = Path(socket)
                if path.is_socket():
                    _LOG.warning("%s was left by an instance that was killed; removed", path)
                    path.unlink(missing_ok=True)
        self._remove(number)

    def _remove(self, number: int) -> None:
        for suffix in ("json", "lock"):
            self._path(number, suffix).unlink(missing_ok=True)
