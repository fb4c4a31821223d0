"""A simulated Kubernetes that is served until it is ended, by this process or on behalf of one.

Its virtual time follows the clock of the machine. The process is written down in a folder of its
own (its identity in ``process.json``), so that it can be found and ended from any other process.
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
import shutil
import signal
import stat
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Final

from kube.base.errors import InfrastructureError, UsageError
from kube.base.locks import file_lock
from kube.base.processes import Identity, identify_process, send, wait_gone
from kube.errors import ApiError
from kubesim.clock import EPOCH
from kubesim.front.backend import Backend
from kubesim.front.server import Front, listen
from kubesim.world import World

_NAMESPACES: Final = ("default", "kube-system")
_NAME: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?")
_END_SECONDS: Final = 30.0
_CHEAP_SECONDS: Final = 0.01
"""What a request may wait for controllers and scheduler; in a cluster of thousands of objects they
take longer, and then, as in a real cluster, they follow on their own."""
_LONGEST_WAIT: Final = 1.0
"""A signal that comes just before a wait goes to sleep has its handler run after it."""


def seconds_since_epoch() -> float:
    """Return the present in virtual time."""
    return time.time() - EPOCH.timestamp()


class RealTime(Backend):
    """The objects of a world whose virtual time is that of the machine.

    Args:
        world: begun at `seconds_since_epoch`.
        lock: held by whoever reads or changes the world.
    """

    def __init__(self, world: World, lock: threading.RLock | None = None) -> None:
        lock = lock or threading.RLock()
        super().__init__(world.cluster, world.api, world.handler, world.kubernetes_version, lock)
        self._world = world
        self._changed = threading.Condition(lock)
        # time.time() may be set back.
        self._ahead = world.clock.now - time.monotonic()
        self._settle_seconds = 0.0
        self._settled_at = 0.0
        self._is_unsettled = False
        for name in _NAMESPACES:
            with self.changing(), suppress(ApiError):  # somebody may have made it
                named = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
                world.api.create(named, "")

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Hold the lock for a request that changes something.

        What follows of it happens at the end. Where that takes long, `run` does it, and no more
        than half of the time, so that it falls behind and requests do not.
        """
        with self._changed:
            self._catch_up()
            awaited = self._world.clock.next_moment()
            yield
            self._is_unsettled = True
            if self._seconds_until_settling() <= 0:
                self._settle()
            # To change threads costs as much as a request.
            if self._is_unsettled or self._world.clock.next_moment() != awaited:
                self._changed.notify_all()

    def run(self) -> None:
        """Let time pass, until the front is closed. Raises TargetError."""
        with self._changed:
            while not self.history.closed:
                self._catch_up()
                wait_seconds = _LONGEST_WAIT
                if (due := self._world.clock.next_moment()) is not None:
                    wait_seconds = min(wait_seconds, max(0.0, due - self._now()))
                if self._is_unsettled:
                    settle_seconds = self._seconds_until_settling()
                    if settle_seconds <= 0:
                        self._settle()
                        continue
                    wait_seconds = min(wait_seconds, settle_seconds)
                self._changed.wait(wait_seconds)

    def _seconds_until_settling(self) -> float:
        if self._settle_seconds < _CHEAP_SECONDS:
            return 0.0
        return self._settled_at + self._settle_seconds - time.monotonic()

    def _settle(self) -> None:
        start = time.thread_time()  # what it costs, however busy the machine is
        self._world.settle()
        self._settle_seconds = time.thread_time() - start
        self._settled_at = time.monotonic()
        self._is_unsettled = False

    def _catch_up(self) -> None:
        while self._world.advance(self._now()):
            pass

    def _now(self) -> float:
        return time.monotonic() + self._ahead


class Served:
    """The served cluster of a name, which this process or another one runs.

    Args:
        name: part of its context's name.
        folder: where its files are while it runs; nothing else is in it.
        description: what it is, in messages.
        how_to_end: what ends it, in messages; ``{pid}`` stands for its process.

    Raises UsageError: the name is none that can be a file name and a context name.
    """

    def __init__(self, name: str, folder: Path, description: str, how_to_end: str) -> None:
        if not _NAME.fullmatch(name):
            raise UsageError(
                f"cluster name {name!r}: use 1 to 32 lower-case letters, digits and hyphens"
            )
        self.name = name
        self.folder = Path(os.path.abspath(folder))  # noqa: PTH100 (keeps links as given)
        self._description, self._how_to_end = description, how_to_end

    @property
    def kubeconfig(self) -> Path:
        return self.folder / "kubeconfig"

    @property
    def _record(self) -> Path:
        return self.folder / "process.json"

    @property
    def _lock(self) -> Path:
        """Lock file. Beside the folder, because the folder is removed."""
        return self.folder.parent / f".{self.folder.name}.lock"

    @contextmanager
    def serving(
        self, world: World, lock: threading.RLock | None = None, port: int = 0
    ) -> Iterator[RealTime]:
        """Serve a world in this process for as long as the context lasts.

        ``port``: of loopback; 0 is any free one.
        Raises UsageError: one of this name is running, the port is taken, or the folder cannot be
        written or may be another user's.
        """
        self._check_owned()
        with closing(listen(port)) as listening:
            self._take_folder()
            try:
                backend = RealTime(world, lock)
                front = Front(backend, self.folder, self.name, listening=listening)
                try:
                    yield backend
                finally:
                    front.close()
            finally:
                shutil.rmtree(self.folder, ignore_errors=True)

    def _take_folder(self) -> None:
        """Take the folder, and write down who serves. Raises UsageError."""
        try:
            with file_lock(self._lock):
                if (running := self.process()) is not None:
                    raise UsageError(
                        f"a {self._description} named {self.name!r} is running; end it with "
                        f"{self._how_to_end.format(pid=running.pid)}, or choose another name"
                    )
                shutil.rmtree(self.folder, ignore_errors=True)
                self.folder.mkdir(mode=0o700, parents=True)
                identity = identify_process(os.getpid())
                assert identity is not None  # it is this process
                self._record.write_text(json.dumps(dataclasses.asdict(identity)))
        except OSError as error:
            raise UsageError(
                f"{self.folder}, where the {self._description}'s files belong, cannot be written: "
                f"{error.strerror or error}; set XDG_STATE_HOME to a folder that can"
            ) from None

    def process(self) -> Identity | None:
        """Return the process that serves it; None where none does."""
        try:
            identity = Identity(**json.loads(self._record.read_text()))
        except (OSError, ValueError, TypeError):
            return None
        return identity if identity.alive() else None

    def _check_owned(self) -> None:
        """Check that nobody else can put files where certificates, tokens and the record are.

        Raises UsageError: another user owns a folder, all may write to it, or it is a link.
        """
        for folder in (self.folder.parent.parent, self.folder.parent, self.folder):
            try:
                folder_stat = folder.lstat()
            except (FileNotFoundError, NotADirectoryError):
                continue
            is_own = folder_stat.st_uid == os.geteuid() and not folder_stat.st_mode & stat.S_IWOTH
            if not (is_own and stat.S_ISDIR(folder_stat.st_mode)):
                raise UsageError(
                    f"{folder}: must be a folder of this user's that not everybody may write to, "
                    "for tokens lie there; remove it, or name another with XDG_STATE_HOME"
                )

    def down(self) -> bool:
        """End it and remove its files; False where there was none.

        Raises InfrastructureError: it does not end. Raises UsageError as `serving`.
        """
        self._check_owned()
        with file_lock(self._lock):
            process = self.process()
            if process is not None:
                send([process.pid], signal.SIGTERM)
                if not wait_gone(process, _END_SECONDS):
                    raise InfrastructureError(
                        f"process {process.pid}, which serves the {self._description} "
                        f"{self.name!r}, did not end within {_END_SECONDS:.0f} s"
                    )
            had_files = process is not None or self.folder.exists()
            shutil.rmtree(self.folder, ignore_errors=True)
            return had_files
