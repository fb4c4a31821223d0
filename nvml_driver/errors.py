"""The driver's errors: each carries one message that says what is wrong and what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic import ValidationError


class DriverError(Exception):
    """Something that the driver cannot work with; the message is meant for its user."""


class NvmlUnavailableError(DriverError):
    """No NVML to ask: the library does not load, does not build, or does not initialise."""


class ProfileError(DriverError):
    """A profile of simulated GPUs that cannot be used; the message names the file and the path."""


class CheckpointError(DriverError):
    """A checkpoint that must not be trusted or overwritten: corrupt, from elsewhere, or newer."""


class CdiError(DriverError):
    """A CDI spec that is not valid, or a CDI device that no spec on disk defines."""


class PrepareError(DriverError):
    """One claim cannot be prepared or unprepared; the message becomes its error to the kubelet."""


class ConfigError(PrepareError):
    """An opaque configuration that the driver refuses; the message names source and field path."""


class KubeError(DriverError):
    """The API server refused (HTTP ``status``), failed or cannot be reached (status 0)."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


_MOST_PROBLEMS = 1000  # pydantic describes all or none, each in a kilobyte.


def format_problems(error: ValidationError, root: str) -> str:
    """Return what a model refuses, each with its path below ``root``; of very many the number."""
    if error.error_count() > _MOST_PROBLEMS:
        return f"{root}: {error.error_count()} values are not as expected"
    return "; ".join(
        f"{'.'.join(map(str, (root, *problem['loc'])))}: {problem['msg']}"
        for problem in error.errors(include_url=False, include_input=False)
    )
