"""Commands that answer questions line by line, as `ci/upstream` does with Kubernetes' own code."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, BinaryIO

import typer

from kube.base.errors import UsageError
from reference_allocator.gates import MINORS, minor_of
from reference_allocator.wire import MAX_LINE, answer_allocate, answer_cel

Input = Annotated[
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


def allocate(
    questions: Input = None,
    kubernetes: Kubernetes = MINORS[-1],
    timeout: Annotated[
        float, typer.Option(min=0.001, metavar="SECONDS", help="Time limit per node.")
    ] = 10.0,
) -> None:
    """Allocate devices for problems read as JSON lines; prints JSON lines."""
    minor = _known(kubernetes)
    answer_lines(questions, lambda line: answer_allocate(line, timeout=timeout, kubernetes=minor))


def cel(
    questions: Input = None,
    kubernetes: Kubernetes = MINORS[-1],
    witness: Annotated[
        bool,
        typer.Option("--witness", help="Ask cel-python, too, where it knows what is used."),
    ] = False,
) -> None:
    """Evaluate CEL device selectors read as JSON lines; prints JSON lines."""
    minor = _known(kubernetes)
    answer_lines(questions, lambda line: answer_cel(line, kubernetes=minor, witness=witness))


def _known(kubernetes: str) -> str:
    try:
        return minor_of(kubernetes)
    except ValueError as error:
        raise UsageError(f"--kubernetes: {error}") from None


def answer_lines(questions: Path | None, respond: Callable[[bytes], str]) -> None:
    """Print an answer to each line of a file, or of standard input. Raises UsageError: no file."""
    try:
        with questions.open("rb") if questions else nullcontext(sys.stdin.buffer) as stream:
            _each(stream, respond)
    except OSError as error:
        raise UsageError(f"{questions}: cannot be read: {error.strerror}") from None


def _each(stream: BinaryIO, respond: Callable[[bytes], str]) -> None:
    # Flushed line by line, because whoever asks may wait for the answer before asking again.
    while line := stream.readline(MAX_LINE + 1):
        rest = line
        while len(line) > MAX_LINE and rest and not rest.endswith(b"\n"):
            rest = stream.readline(MAX_LINE)  # What is too long is refused, and not kept.
        if line.strip():
            sys.stdout.write(respond(line) + "\n")
            sys.stdout.flush()
