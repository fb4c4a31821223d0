"""``dra-conformance cel``: the reference's values of CEL selectors in JSON lines."""

from __future__ import annotations

from typing import Annotated

import typer

from conformance.cli.lines import Kubernetes, Questions, answer_lines, parse_minor
from reference_allocator.gates import LATEST
from reference_allocator.wire import answer_cel


def cel_command(
    questions: Questions = None,
    kubernetes: Kubernetes = LATEST,
    witness: Annotated[
        bool,
        typer.Option("--witness", help="Ask cel-python, too, where it knows what is used."),
    ] = False,
) -> None:
    """Evaluate CEL device selectors read as JSON lines; prints JSON lines."""
    minor = parse_minor(kubernetes)
    answer_lines(questions, lambda line: answer_cel(line, kubernetes=minor, witness=witness))
