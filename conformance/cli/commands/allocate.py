"""``dra-conformance allocate``: the reference's allocations for problems in JSON lines."""

from __future__ import annotations

from typing import Annotated

import typer

from conformance.cli.lines import Kubernetes, Questions, answer_lines, parse_minor
from reference_allocator.gates import LATEST
from reference_allocator.wire import answer_allocate


def allocate_command(
    questions: Questions = None,
    kubernetes: Kubernetes = LATEST,
    timeout: Annotated[
        float, typer.Option(min=0.001, metavar="SECONDS", help="Time limit per node.")
    ] = 10.0,
) -> None:
    """Allocate devices for problems read as JSON lines; prints JSON lines."""
    minor = parse_minor(kubernetes)
    answer_lines(questions, lambda line: answer_allocate(line, timeout=timeout, kubernetes=minor))
