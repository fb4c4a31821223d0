"""The ways in which a result file can be wrong, each an error of its own.

A truncated file of another suite was once published as a result; whoever reads one must be able to
tell why it cannot be used.
"""

from __future__ import annotations

from conformance.errors import UsageError


class ResultFileError(UsageError):
    """A result file cannot be used; the message begins with its path."""


class UnreadableResultFileError(ResultFileError):
    """It is not there, may not be read, or is no file: nothing is known of the run."""


class EmptyResultFileError(ResultFileError):
    """Nothing is in it: the run ended before it began, or the disk was full."""


class TruncatedResultFileError(ResultFileError):
    """There is no footer: the run was killed, or the file was cut off."""


class DuplicateRecordError(ResultFileError):
    """A scenario or a header is there twice: two runs in one file."""


class DigestMismatchError(ResultFileError):
    """The file is not as it was written: the footer does not fit the lines before it."""


class UnknownVersionError(ResultFileError):
    """Written by another version of the format."""


class MalformedResultFileError(ResultFileError):
    """A line is not what the format says."""
