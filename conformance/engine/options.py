"""What a user may say about a run: the same on the command line and in pytest."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from conformance.errors import UsageError
from conformance.options import Given

_RUN_ID = re.compile(r"[a-z0-9]([-a-z0-9]{0,30}[a-z0-9])?")


def _run_id(text: str) -> str:
    """A run id that can be the value of a label and part of a name.

    Raises:
        UsageError: it cannot.
    """
    if not _RUN_ID.fullmatch(text):
        raise UsageError(
            f"--run-id {text!r}: use up to 32 of a-z, 0-9 and '-', as a label value may have"
        )
    return text


@dataclass(frozen=True, slots=True)
class RunOptions:
    """What a user may say about a run.

    Attributes:
        run_id: "" is one that is made up.
        output: None is the door's own default.
    """

    compare: Annotated[bool, Given("Judge the target against the reference.")] = False
    output: Annotated[
        Path | None, Given("Folder for the result file and the reports.", short="-o")
    ] = None
    run_id: Annotated[str, Given("Label of what the run makes.", convert=_run_id)] = ""
