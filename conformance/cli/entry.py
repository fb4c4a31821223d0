"""How the command line begins and ends: no traceback, and an exit code that means what it says.

The commands are imported here, inside of what catches errors, because that takes a second in which
a user may press Ctrl-C.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys

from conformance.errors import ConformanceError, ExitCode
from conformance.signals import interrupted_by_signals
from conformance.text import cut

DEBUG = "DRA_CONFORMANCE_DEBUG"
"""Environment variable: print the traceback of an unexpected error instead of keeping it."""

INTERRUPTED = 130
"""What typer makes of a KeyboardInterrupt."""

_NOT_WRITTEN = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})
"""Of an error without a file name: files are written by those who know their names."""

_STREAMS = ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w"))


def main() -> None:
    """Run the command line; never shows a traceback, and exits with 1 for one reason only.

    SIGTERM, which CI systems cancel with, and SIGHUP, which a terminal that is closed sends, end a
    run as Ctrl-C does: what was made is removed, and what had run is reported.

    Raises:
        SystemExit: always.
    """
    open_streams()
    try:
        with interrupted_by_signals():
            code = flushed(_run())
    except KeyboardInterrupt:
        code = _interrupted()
    sys.exit(code)


def _run() -> int:
    try:
        from conformance.cli.app import app

        app()
    except ConformanceError as error:
        return told(error, error.exit_code)
    except KeyboardInterrupt:
        return _interrupted()
    except SystemExit as ended:
        return _meant(ended)
    except BrokenPipeError:
        return _output_failed("the pipe was closed")
    except OSError as error:
        if error.filename is None and error.errno in _NOT_WRITTEN:
            return _output_failed(error.strerror or str(error))
        if error.errno == errno.ENAMETOOLONG:
            named = str(error.filename or "a path that was given")
            return told(f"{cut(named, 100)}: {error.strerror}; check the path", ExitCode.USAGE)
        return _unexpected(error)
    except Exception as error:  # noqa: BLE001 -- it must not look like a target that failed
        return _unexpected(error)
    return ExitCode.CONFORMANT


def _meant(ended: SystemExit) -> int:
    """The exit code of a command; typer has some of its own for what is no result."""
    import typer

    if isinstance(ended.__context__, BrokenPipeError):
        return _output_failed("the pipe was closed")
    if isinstance(ended.__context__, typer.Abort) or ended.code == INTERRUPTED:
        return _interrupted()
    return ended.code if isinstance(ended.code, int) else ExitCode.CONFORMANT


def _interrupted() -> int:
    # Python remembers a Ctrl-C inside of an exec() (namedtuple has one), also one that was handled,
    # and ends itself with the signal at exit; the next exec() makes it forget.
    exec("")  # noqa: S102
    return told("interrupted; `dra-conformance cleanup` removes what may be left")


def _output_failed(why: str) -> int:
    return told(f"standard output: {why}; what the command had to say is not complete")


def told(message: object, code: int = ExitCode.INCONCLUSIVE) -> int:
    """Print an error on standard error, if that is open; gives the exit code back."""
    from conformance.cli.shown import shown

    with contextlib.suppress(OSError):
        for line in shown(message).split("\n"):
            print(f"error: {line}", file=sys.stderr, flush=True)
    return code


def _unexpected(error: BaseException) -> int:
    """One message for what should not have happened; the traceback goes where it can be fetched."""
    import tempfile
    import traceback

    from conformance import __version__
    from conformance.cli.shown import shown

    trace = shown("".join(traceback.format_exception(error)))
    what = f"unexpected {type(error).__name__}: {error}".rstrip(": ")
    about = f"this is a fault of dra-conformance {__version__}; please report it"
    if os.environ.get(DEBUG):
        with contextlib.suppress(OSError):
            print(trace, file=sys.stderr)
        return told(f"{what}; {about} with the traceback above")
    try:
        descriptor, file = tempfile.mkstemp(prefix="dra-conformance-error-", suffix=".txt")
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            stream.write(f"dra-conformance {__version__}, Python {sys.version}\n{trace}")
    except OSError:
        return told(f"{what}; {about} with what {DEBUG}=1 prints")
    return told(f"{what}; {about} with {file}")


def open_streams() -> None:
    """Have a file behind each standard stream, so that no other file gets its number.

    A shell closes one with ``>&-``; the next file that is opened would then be standard output to
    every process that is started.
    """
    for number, name, mode in _STREAMS:
        try:
            os.fstat(number)
        except OSError:
            opened = os.open(os.devnull, os.O_RDWR)
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115


def flushed(code: int) -> int:
    """See standard output written; at exit Python could only print a traceback.

    Returns:
        The exit code, INCONCLUSIVE where what was printed did not get there.
    """
    if not _is_broken():
        return code
    if code not in {ExitCode.USAGE, ExitCode.INCONCLUSIVE}:
        code = _output_failed("it cannot be written")
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
    return code


def _is_broken() -> bool:
    """Whether standard output does not take what is still to be written."""
    try:
        sys.stdout.flush()
    except OSError:
        return True
    return False
