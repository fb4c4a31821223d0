"""Errors that end a run or a command, each with the exit code it stands for.

Every one of them carries a message that says what is wrong, where, and what to do, so that the
command line and the pytest plugin can print it without a traceback.
"""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """What the process says to the shell (the same in every command)."""

    CONFORMANT = 0
    NOT_CONFORMANT = 1
    USAGE = 2
    INCONCLUSIVE = 3
    PARTIAL = 4


class ConformanceError(Exception):
    """Base of every error that is shown to a user as one message."""

    exit_code: ExitCode = ExitCode.INCONCLUSIVE


class UsageError(ConformanceError):
    """Something the user gave is wrong: an option, a scenario, a profile, a manifest."""

    exit_code = ExitCode.USAGE


class InfrastructureError(ConformanceError):
    """The machinery under the suite broke: no answer from a cluster, a component that died."""

    exit_code = ExitCode.INCONCLUSIVE


class TargetError(InfrastructureError):
    """What scenarios run on broke (connection lost, component dead), as opposed to refusing."""


class TargetGoneError(TargetError):
    """The target will not come back during this run, so the run ends here."""
