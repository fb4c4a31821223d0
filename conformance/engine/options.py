"""The options about a run: the same on the command line and in pytest."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from conformance.results.limits import MAX_SHARDS
from kube.base.errors import UsageError
from kube.base.options import option_field

_RUN_ID = re.compile(r"[a-z0-9]([-a-z0-9]{0,30}[a-z0-9])?")

MAX_RETRIES = 10
MAX_FACTOR = 100


def _run_id(text: str) -> str:
    """A run id, which becomes a label value and part of names; raises UsageError."""
    if not _RUN_ID.fullmatch(text):
        raise UsageError(
            f"--run-id {text!r}: must be a label value of up to 32 characters: a-z, 0-9 and '-'"
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
    """The shard of ``2/3``; raises UsageError."""
    matched = re.fullmatch(r"([0-9]{1,9})/([0-9]{1,9})", text)
    if matched:
        shard = Shard(int(matched[1]), int(matched[2]))
        if 1 <= shard.index <= shard.count <= MAX_SHARDS:
            return shard
    raise UsageError(f"--shard {text!r}: must be I/N, for example 1/3, 2/3 or 3/3")


def _retries(number: int) -> int:
    """A number of retries, not so many that anything passes in the end; raises UsageError."""
    if not 0 <= number <= MAX_RETRIES:
        raise UsageError(f"--retries {number}: must be between 0 and {MAX_RETRIES}")
    return number


def _factor(number: float) -> float:
    """A factor that neither shortens time limits nor makes them endless; raises UsageError."""
    if not 1 <= number <= MAX_FACTOR:
        raise UsageError(f"--time-factor {number:g}: must be between 1 and {MAX_FACTOR}")
    return number


EXECUTION, OUTPUT = "Execution", "Output"


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The options about a run.

    Attributes:
        run_id: "" means a generated one.
        output: None means the caller's default.
        shard: None means everything selected.
    """

    compare: bool = option_field(
        False, "Compare the cluster's decisions with those of the reference.", EXECUTION
    )
    output: Path | None = option_field(
        None,
        "Folder for the result file and the reports. [default of `run`: dra-conformance-results]",
        OUTPUT,
        short="-o",
        metavar="FOLDER",
    )
    run_id: str = option_field(
        "",
        "Label value for all objects that the run creates. [default: generated]",
        EXECUTION,
        metavar="ID",
        convert=_run_id,
    )
    shard: Shard | None = option_field(
        None,
        "Run only this part of the selection (2/3); `dra-conformance merge` joins the result "
        "files of all shards.",
        "Selection",
        metavar="I/N",
        given_as=str,
        convert=_shard,
    )
    retries: int = option_field(
        0,
        "Retry failed scenarios up to N times; one that passes on a retry is reported as "
        "flaky, not as passed. [default: 0]",
        EXECUTION,
        metavar="N",
        convert=_retries,
    )
    time_factor: float = option_field(
        1.0,
        "Multiply the scenarios' time limits, for slow clusters; the run cannot be certified. "
        "[default: 1]",
        EXECUTION,
        metavar="FACTOR",
        convert=_factor,
    )
    debug: bool = option_field(
        False, "Log what the suite does to debug.log in the output folder.", OUTPUT
    )
