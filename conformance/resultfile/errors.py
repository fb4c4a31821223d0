"""The ways in which a result file can be wrong, each an error of its own.

A truncated file of another suite was once published as a result; readers must be able to tell why
one cannot be used.
"""

from __future__ import annotations

from conformance.errors import UsageError


class ResultFileError(UsageError):
    """A result file cannot be used; the message begins with its path."""


class UnreadableResultFileError(ResultFileError):
    """It does not exist, may not be read, or is not a regular file."""


class EmptyResultFileError(ResultFileError):
    """Nothing is in it: the run ended before it began, or the disk was full."""


class TruncatedResultFileError(ResultFileError):
    """There is no footer: the run was killed, or the file was cut off."""


class DuplicateRecordError(ResultFileError):
    """A scenario or a header occurs twice: two runs in one file."""


class DigestMismatchError(ResultFileError):
    """The file is not as it was written: the footer does not fit the lines before it."""


class UnknownVersionError(ResultFileError):
    """Written by another version of the format."""


class MalformedResultFileError(ResultFileError):
    """A line is not what the format says."""
