"""How the command line begins and ends: no traceback, and an exit code that means what it says.

The commands are imported here, inside of what catches errors, because that takes a second in which
a user may press Ctrl-C.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from pathlib import Path

from kube.base.errors import ConformanceError, ExitCode
from kube.base.signals import interrupted_by_signals
from kube.base.text import cut

DEBUG = "DRA_CONFORMANCE_DEBUG"
"""Environment variable: print the traceback of an unexpected error instead of keeping it."""

INTERRUPTED = 130
"""What typer makes of a KeyboardInterrupt."""

_WRITE_ERRORS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})
"""Of an error without a file name: files are written by those who know their names."""

PIPE_CLOSED = 141
"""What a shell says of a program that SIGPIPE ended: whoever read its output has left."""


def main() -> None:
    """Run the command line; never shows a traceback, and exits with 1 for one reason only.

    SIGTERM, which CI systems cancel with, and SIGHUP, which a terminal that is closed sends, end a
    run as Ctrl-C does: what was made is removed, and what had run is reported.
    Raises SystemExit: always.
    """
    open_streams()
    try:
        with interrupted_by_signals():
            code = _flush_output(_run_app())
    except KeyboardInterrupt:
        code = _report_interrupt()
    sys.exit(code)


def _run_app() -> int:
    """Run the command that the arguments name; return the exit code."""
    try:
        from conformance.cli.app import app

        app()
    except ConformanceError as error:
        return print_error(error, error.exit_code)
    except KeyboardInterrupt:
        return _report_interrupt()
    except SystemExit as ended:
        return _convert_exit(ended)
    except OSError as error:
        if error.filename is None and error.errno in _WRITE_ERRORS:
            return _report_lost_output(error)
        if error.errno == errno.ENAMETOOLONG:
            path = cut(str(error.filename or "a path that was given"), 100)
            return print_error(f"{path}: {error.strerror}; check the path", ExitCode.USAGE)
        return _report_unexpected(error)
    except Exception as error:  # noqa: BLE001 -- it must not look like a target that failed
        return _report_unexpected(error)
    return ExitCode.CONFORMANT


def _convert_exit(ended: SystemExit) -> int:
    """Return the exit code of a command; typer has some of its own for what is no result."""
    import typer

    if isinstance(ended.__context__, BrokenPipeError):
        return _report_lost_output(ended.__context__)
    if isinstance(ended.__context__, typer.Abort) or ended.code == INTERRUPTED:
        return _report_interrupt()
    return ended.code if isinstance(ended.code, int) else ExitCode.CONFORMANT


def _report_interrupt() -> int:
    """Print that a signal ended the command; return the exit code."""
    # Python remembers a Ctrl-C inside of an exec() (namedtuple has one), also one that was handled,
    # and ends itself with the signal at exit; the next exec() makes it forget.
    exec("")  # noqa: S102
    on_cluster = any(argument.startswith("--cluster") for argument in sys.argv)
    advice = "; `dra-conformance cleanup` removes what may be left" if on_cluster else ""
    return print_error(f"interrupted{advice}")


def _flush_output(code: int) -> int:
    """Write out standard output, which at exit could end in a traceback; return the exit code."""
    try:
        sys.stdout.flush()
    except OSError as error:
        if code in {ExitCode.USAGE, ExitCode.INCONCLUSIVE, PIPE_CLOSED}:
            _discard_output()
        else:
            code = _report_lost_output(error)
    return code


def _report_lost_output(error: OSError) -> int:
    """Say that standard output takes no more; quietly if its reader has left, as tools do."""
    _discard_output()
    if error.errno == errno.EPIPE:
        return PIPE_CLOSED
    return print_error(f"standard output: {error.strerror}; not everything could be printed")


def _discard_output() -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def print_error(message: object, code: int = ExitCode.INCONCLUSIVE) -> int:
    """Print an error on standard error, if that takes it; return the exit code."""
    from conformance.cli.output import printable

    with contextlib.suppress(OSError):
        for line in printable(message).split("\n"):
            print(f"error: {line}", file=sys.stderr, flush=True)
    return code


def _report_unexpected(error: BaseException) -> int:
    """Print one message for what should not have happened, and keep the traceback in a file."""
    import tempfile
    import traceback

    from conformance import __version__
    from conformance.cli.output import printable

    trace = printable("".join(traceback.format_exception(error)))
    problem = f"unexpected {type(error).__name__}: {error}".rstrip(": ")
    request = f"this is a fault of dra-conformance {__version__}; please report it"
    if os.environ.get(DEBUG):
        print(trace, file=sys.stderr)
        return print_error(f"{problem}; {request} with the traceback above")
    with tempfile.NamedTemporaryFile(
        "w", prefix="dra-conformance-error-", suffix=".txt", encoding="utf-8", delete=False
    ) as stream:
        stream.write(f"dra-conformance {__version__}, Python {sys.version}\n{trace}")
    return print_error(f"{problem}; {request} with {stream.name}")


def open_streams() -> None:
    """Put a file behind each standard stream that is closed: no other file gets its number.

    A shell closes one with ``>&-``; the next file that is opened would then be standard output to
    every process that is started.
    """
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(number, True)
    os.close(number)
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            mode = "r" if name == "stdin" else "w"
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115
