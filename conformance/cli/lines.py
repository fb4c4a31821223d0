"""What ``allocate`` and ``cel`` share: questions and answers line by line, as `ci/upstream` does.

That asks Kubernetes' own code the same questions.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, BinaryIO

import typer

from kube.base.errors import UsageError
from reference_allocator.gates import MINORS, minor_of
from reference_allocator.wire import MAX_LINE

Questions = Annotated[
    Path | None,
    typer.Argument(metavar="FILE", help="One JSON object per line. [default: standard input]"),
]

Kubernetes = Annotated[
    str,
    typer.Option(
        "--kubernetes",
        help=f"Kubernetes minor of the CEL environment: {', '.join(MINORS)}.",
        metavar="MINOR",
    ),
]


def parse_minor(kubernetes: str) -> str:
    """Return the Kubernetes minor that --kubernetes names. Raises UsageError: it is unknown."""
    try:
        return minor_of(kubernetes)
    except ValueError as error:
        raise UsageError(f"--kubernetes: {error}") from None


def answer_lines(questions: Path | None, respond: Callable[[bytes], str]) -> None:
    """Print an answer to each line of a file, or of standard input. Raises UsageError: no file."""
    try:
        with questions.open("rb") if questions else nullcontext(sys.stdin.buffer) as stream:
            _answer_stream(stream, respond)
    except OSError as error:
        raise UsageError(f"{questions}: cannot be read: {error.strerror}") from None


def _answer_stream(stream: BinaryIO, respond: Callable[[bytes], str]) -> None:
    # Flushed line by line, because whoever asks may wait for the answer before asking again.
    while line := stream.readline(MAX_LINE + 1):
        chunk = line
        while len(line) > MAX_LINE and chunk and not chunk.endswith(b"\n"):
            chunk = stream.readline(MAX_LINE)  # What is too long is refused, and not kept.
        if line.strip():
            sys.stdout.write(respond(line) + "\n")
            sys.stdout.flush()
