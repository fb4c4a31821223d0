"""The folder for a run's reports: checked to be writable, and used by one run at a time.

A run on a cluster takes minutes to begin, and two runs that write into one folder destroy each
other's result file. Both are found here, before anything else is done.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from conformance.results.events.dispatch import Event
from conformance.results.events.run import RunStarted
from conformance.results.write import FILE_NAME, RESUMING
from kube.base.errors import UsageError
from kube.base.text import cut

RESULTS = FILE_NAME
JUNIT = "junit.xml"
HTML = "report.html"
SUMMARY = "summary.md"
SUMMARY_JSON = "summary.json"
ALLURE = "allure-results"
DIAGNOSTICS = "diagnostics"
OURS = ".dra-conformance"  # A file in the folder of diagnostics that marks it as made by a run.

ALLURE_PREFIX = "dra-conformance-"
"""What the names of a run's Allure files begin with; a folder may hold those of other tools too."""

_PROBE_BYTES = 64 * 1024  # What must fit: about the result file of a small run.


class OutputFolder:
    """Makes the folder, and locks it for as long as the context lasts; the first of the reporters.

    A folder that was made and is empty in the end is removed. The lock is on the folder itself
    (``flock``), so that it leaves no file and ends with the process; on a file system that cannot
    lock a folder the lock is left out. ``progress`` hears that earlier reports are removed.
    """

    def __init__(self, path: Path, progress: Callable[[str], None] = lambda _: None) -> None:
        self.path = path
        self._progress = progress
        self._descriptor: int | None = None
        self._made = False

    def __enter__(self) -> OutputFolder:
        """Claim it. Raises UsageError: it cannot be written, or another run uses it."""
        try:
            self._made = not self.path.exists()
            self.path.mkdir(parents=True, exist_ok=True)
            self._descriptor = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
            self._lock(self._descriptor)
            self._prove()
        except OSError as error:
            self._release()
            raise UsageError(
                f"{cut(str(error.filename or self.path), 200)}: reports cannot be written there: "
                f"{error.strerror}; choose another folder with -o"
            ) from None
        except UsageError:
            self._release()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._release()

    def handle(self, event: Event) -> None:
        """Remove what an earlier run left here, as soon as this one begins.

        So no report of it is taken for this run's, however this one ends; a run that is refused
        leaves the earlier reports as they are, and one that goes on with an earlier run leaves its
        result file. Only what is known to be a run's own goes; a UsageError where that cannot be
        removed.
        """
        if isinstance(event, RunStarted):
            self._clear(() if event.resumed else (RESULTS, RESUMING))

    def _clear(self, results: tuple[str, ...]) -> None:
        whole = (JUNIT, HTML, SUMMARY, SUMMARY_JSON)
        names = [*results, *whole, *(f"{name}.tmp" for name in (RESUMING, *whole))]
        earlier = [self.path / name for name in names if (self.path / name).exists()]
        earlier += (self.path / ALLURE).glob(f"{ALLURE_PREFIX}*")
        diagnostics = self.path / DIAGNOSTICS
        try:
            if diagnostics.is_dir() and any(diagnostics.iterdir()):
                if not (diagnostics / OURS).exists():
                    raise UsageError(
                        f"{diagnostics}: contains files that no run wrote; remove it, or choose"
                        " another folder with -o"
                    )
                earlier.append(diagnostics)
            if earlier:
                self._progress(f"removing the reports of an earlier run from {self.path}")
            for path in earlier:
                if path.is_dir() and not path.is_symlink():
                    shutil.rmtree(path)
                else:
                    path.unlink()
        except OSError as error:
            raise UsageError(
                f"{cut(str(error.filename), 200)}: what an earlier run left cannot be removed:"
                f" {error.strerror}; choose another folder with -o"
            ) from None

    def _lock(self, descriptor: int) -> None:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in {errno.EWOULDBLOCK, errno.EACCES}:
                raise UsageError(
                    f"{self.path}: another run writes its reports there; wait for its end, or give"
                    " this run a folder of its own with -o"
                ) from None

    def _prove(self) -> None:
        """Write something into each folder, and see that each file can be replaced."""
        for name in (RESULTS, JUNIT, HTML, SUMMARY, SUMMARY_JSON):
            file = self.path / name
            if file.is_dir():
                raise IsADirectoryError(errno.EISDIR, "it is a folder", str(file))
            if file.exists():
                file.open("ab").close()
        for folder in (self.path, self.path / ALLURE, self.path / DIAGNOSTICS):
            if folder != self.path and not folder.exists():
                continue
            if not folder.is_dir():
                raise NotADirectoryError(errno.ENOTDIR, "it is not a folder", str(folder))
            with tempfile.TemporaryFile(dir=folder, buffering=0) as probe:
                if probe.write(bytes(_PROBE_BYTES)) < _PROBE_BYTES:
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(folder))

    def _release(self) -> None:
        """Release the lock; remove a folder that was created and not used."""
        if self._made:
            with suppress(OSError):
                self.path.rmdir()
        if self._descriptor is not None:
            with suppress(OSError):
                os.close(self._descriptor)
            self._descriptor = None
