"""What a user may say about a run: the same on the command line and in pytest."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from conformance.errors import UsageError
from conformance.options import Given

_RUN_ID = re.compile(r"[a-z0-9]([-a-z0-9]{0,30}[a-z0-9])?")

MAX_SHARDS = 9999
MAX_RETRIES = 10
MAX_FACTOR = 100


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
class Shard:
    """One of ``count`` parts of a plan; ``index`` counts from 1."""

    index: int
    count: int

    def __str__(self) -> str:
        return f"{self.index}/{self.count}"


def _shard(text: str) -> Shard:
    """What ``2/3`` says.

    Raises:
        UsageError: it is not of that form.
    """
    found = re.fullmatch(r"([0-9]{1,9})/([0-9]{1,9})", text)
    if found:
        shard = Shard(int(found[1]), int(found[2]))
        if 1 <= shard.index <= shard.count <= MAX_SHARDS:
            return shard
    raise UsageError(f"--shard {text!r}: say which of how many, 1/3, 2/3 or 3/3 for example")


def _retries(number: int) -> int:
    """How often to try again.

    Raises:
        UsageError: less than never, or so often that whatever works at times would pass.
    """
    if not 0 <= number <= MAX_RETRIES:
        raise UsageError(f"--retries {number}: say 0 to {MAX_RETRIES}")
    return number


def _factor(number: float) -> float:
    """By what limits of time are multiplied.

    Raises:
        UsageError: it would shorten them, or lets nothing ever be late.
    """
    if not 1 <= number <= MAX_FACTOR:
        raise UsageError(f"--time-factor {number:g}: say 1 to {MAX_FACTOR}")
    return number


@dataclass(frozen=True, slots=True)
class RunOptions:
    """What a user may say about a run.

    Attributes:
        run_id: "" is one that is made up.
        output: None is the door's own default.
        shard: None is all that is selected.
    """

    compare: Annotated[bool, Given("Judge the target against the reference.")] = False
    output: Annotated[
        Path | None,
        Given(
            "Folder for the result file and the reports. [default of `run`: "
            "dra-conformance-results]",
            short="-o",
        ),
    ] = None
    run_id: Annotated[
        str, Given("Label of what the run makes; made up where none is given.", convert=_run_id)
    ] = ""
    shard: Annotated[
        Shard | None,
        Given(
            "Only this part of what is selected, for example 2/3; `dra-conformance merge` joins the"
            " result files of all parts.",
            metavar="I/N",
            type=str,
            convert=_shard,
        ),
    ] = None
    retries: Annotated[
        int,
        Given(
            "Try a scenario that failed again, up to so often; one that then passes is flaky, and "
            "not a pass. [default: 0]",
            metavar="N",
            convert=_retries,
        ),
    ] = 0
    time_factor: Annotated[
        float,
        Given(
            "Multiply the scenarios' time limits, for a slow cluster; the run then certifies "
            "nothing. [default: 1]",
            metavar="FACTOR",
            convert=_factor,
        ),
    ] = 1.0
