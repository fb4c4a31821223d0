"""The numbers that README.md states: measured, kept in docs/numbers.yaml, and written there.

    python -m ci.readme_numbers [--check] SUMMARY

SUMMARY is ``summary.json`` of a run of all scenarios on the reference, as `make conformance` leaves
it in ``build/conformance``. With ``--check`` nothing is written. Exit code: 0 it is done, or the
kept numbers are true; 1 a kept number is not true any more; 2 there is no such summary.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from ci.testing.part import ROOT
from conformance.certify.evidence import read_evidence

KEPT: Final = ROOT / "docs/numbers.yaml"
README: Final = ROOT / "README.md"
SUBMISSION: Final = ROOT / "reports/1.37/dra-conformance-nvml-dra-driver/evidence.json.xz"
AGAIN: Final = (
    "make conformance && .venv/bin/python -m ci.readme_numbers build/conformance/summary.json"
)

Numbers = Mapping[str, Any]
"""``reference``: outcome -> scenarios; ``features``: feature -> outcome -> scenarios, on the
reference; ``submission``: outcome -> scenarios, of the run whose report page README shows."""


def measure(summary: Path) -> Numbers:
    """What a run on the reference and the kept submission came to.

    Raises:
        OSError: the summary is not there.
    """
    run = json.loads(summary.read_text(encoding="utf-8"))
    return {"reference": run["scenarios"], "features": run["features"], **measure_submission()}


def measure_submission() -> Numbers:
    """What the run of the kept submission came to."""
    recorded = read_evidence(SUBMISSION).run(SUBMISSION)
    outcomes = {str(outcome): len(names) for outcome, names in recorded.outcomes.items()}
    return {"submission": {name: outcomes[name] for name in ("passed", "known", "skipped")}}


def read_numbers() -> Numbers:
    """The numbers that are kept."""
    numbers: Numbers = yaml.safe_load(KEPT.read_text(encoding="utf-8"))
    return numbers


def write_numbers(numbers: Numbers) -> None:
    """Keep these numbers, and state them in README.md."""
    text = yaml.safe_dump(dict(numbers), sort_keys=False, default_flow_style=None, width=100)
    KEPT.write_text(f"# What README.md states. To measure it again: {AGAIN}\n{text}", "utf-8")
    README.write_text(state(README.read_text(encoding="utf-8"), numbers), encoding="utf-8")


def state(page: str, numbers: Numbers) -> str:
    """A page with these numbers at the places where README.md states any."""
    features: Mapping[str, Mapping[str, int]] = numbers["features"]
    total = sum(numbers["reference"].values())
    in_full = sum(set(outcomes) == {"passed"} for outcomes in features.values())
    submission = _counts(numbers["submission"])
    for pattern, text in (
        (
            r"\[\d+/\d+\]( passed .*\n)\[\d+/\d+\]( passed .*\n\.\.\.)",
            rf"[{total - 1}/{total}]\1[{total}/{total}]\2",
        ),
        (r"^\d+ of \d+ features passed", f"{in_full} of {len(features)} features passed"),
        (r"^\d+ passed, .* in (?=[\d.]+ s$)", f"{_counts(numbers['reference'])} in "),
        (r"(report page: conformant; ).*?(?=; what was judged)", rf"\g<1>{submission}"),
        *(
            (rf"^feature {name}: .*$", f"feature {name}: {_counts(outcomes)}")
            for name, outcomes in features.items()
        ),
    ):
        page = re.sub(pattern, text, page, flags=re.MULTILINE)
    return page


def _counts(outcomes: Mapping[str, int]) -> str:
    return ", ".join(f"{number} {outcome}" for outcome, number in outcomes.items())


def main(arguments: Sequence[str] | None = None) -> int:
    """Write or check; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m ci.readme_numbers", description=__doc__)
    parser.add_argument("summary", type=Path, metavar="SUMMARY", help="summary.json of a run")
    parser.add_argument("--check", action="store_true", help="write nothing")
    asked = parser.parse_args(arguments)
    try:
        numbers = measure(asked.summary)
    except OSError as error:
        print(f"error: {asked.summary}: {error.strerror}; run: {AGAIN}", file=sys.stderr)
        return 2
    if not asked.check:
        write_numbers(numbers)
    elif numbers != read_numbers():
        print(f"error: docs/numbers.yaml is of another state; run: {AGAIN}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
