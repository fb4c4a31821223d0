"""The real allocator and the real CEL environment, asked line by line.

They are small Go programs in `ci/upstream`. What they answer is compared with our answer to the
same line; what may differ is only time and the number of steps, and what `known_differences` names.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.oracle.known_differences import same_text

Json = dict[str, Any]


class Upstream:
    """A running program that answers one line with one line.

    Args:
        command: the program and its arguments.
    """

    def __init__(self, command: Sequence[str | Path]) -> None:
        self._process = subprocess.Popen(
            [str(part) for part in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def __enter__(self) -> Upstream:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()

    def ask(self, line: str) -> Json:
        """The answer to one line.

        Raises:
            RuntimeError: the program ended.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(line.encode() + b"\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError(f"the oracle ended with exit code {self._process.wait()}")
        decoded: Json = json.loads(answer)
        return decoded


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
