"""A reference that is served until it is ended: ``dra-conformance cluster up --reference``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from conformance.targets.reference.target import ReferenceTarget
from kube.base.folders import state_folder
from kubesim.front.serving import RealTime, Served


def real_time(target: ReferenceTarget) -> RealTime:
    """Return the reference's objects in real time; it was begun at `seconds_since_epoch`."""
    return RealTime(target.world, target.lock)


class ServedReference:
    """The served reference of a name, which this process or another one runs.

    Raises UsageError: the name is none that can be a file name and a context name.
    """

    def __init__(self, name: str) -> None:
        end = f"`dra-conformance cluster down --cluster reference --name {name}`"
        folder = state_folder() / "reference" / name
        self._served = Served(name, folder, "reference", end)
        self.kubeconfig = self._served.kubeconfig
        self.process = self._served.process
        self.down = self._served.down

    @contextmanager
    def serving(self, target: ReferenceTarget) -> Iterator[RealTime]:
        """Serve a reference in this process for as long as the context lasts.

        Raises UsageError: one of this name is running.
        """
        with self._served.serving(target.world, target.lock) as backend:
            yield backend
