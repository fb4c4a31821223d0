"""Telling drivers what happens to their devices, by the files that they follow."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from conformance.scenario.stimulus import Health, Stimulus
from conformance.targets.base import Obj, TargetError


class ControlFiles:
    """The files of the drivers that the suite has started.

    Args:
        stimulus: what is written into them.
        files: node -> the file that its driver follows.
    """

    def __init__(self, stimulus: Stimulus, files: Mapping[str, Path]) -> None:
        self._stimulus = stimulus
        self._files = files

    def set_health(self, node: str, device: Obj, health: Health) -> None:
        """Append what the driver of a node needs to be told (`Faults.set_health`).

        Raises:
            TargetError: the driver has no such file (any more), or a line cannot be made.
        """
        try:
            text = self._stimulus.lines(health, device)
            # In one write, for others tell the driver, too; the file is the driver's to make.
            file = os.open(self._files[node], os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
            try:
                os.write(file, text.encode())
            finally:
                os.close(file)
        except KeyError:
            known = ", ".join(self._files)
            raise TargetError(f"no driver on node {node} can be told; those on: {known}") from None
        except OSError as error:
            raise TargetError(f"the driver of {node} cannot be told: {error}") from None
        except ValueError as error:
            raise TargetError(str(error)) from None
