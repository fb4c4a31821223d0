"""The real allocator and the real CEL environment, asked line by line.

They are small Go programs in `ci/upstream`. What they answer is compared with our answer to the
same line; what may differ is only time and the number of steps, and what `known_differences` names.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from conformance.allocators.program import Program
from tests.oracle.known_differences import same_text

Json = dict[str, Any]

SECONDS = 60.0
"""How long an oracle may take for a node; it has a shorter limit of its own."""


class Upstream(Protocol):
    """A running program of `ci/upstream` (`conformance.allocators.program.Program`)."""

    def ask(self, question: Mapping[str, Any]) -> bytes:
        """The line that answers a question."""


def open_upstream(oracle: Path, timeout: str = "10s") -> Program:
    """The program of `ci/upstream/allocate`, with its time limit for a node."""
    return Program([oracle, "-timeout", timeout], SECONDS, option="--oracle")


def ask(upstream: Upstream, question: Mapping[str, Any]) -> Json:
    """The decoded answer to a question."""
    answer: Json = json.loads(upstream.ask(question))
    return answer


def comparable(answer: Json) -> Json:
    """What two answers to a problem have to agree in.

    The text of what makes a line invalid is each program's own.
    """
    if "invalid" in answer:
        return {"id": answer["id"], "invalid": True}
    nodes = [
        {key: value for key, value in node.items() if key not in ("ns", "steps")}
        for node in answer.get("nodes", ())
    ]
    for node in nodes:
        if "error" in node:
            node["error"] = same_text(node["error"])
    return {"id": answer["id"], "nodes": nodes}
