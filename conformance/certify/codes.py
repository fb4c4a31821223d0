"""The codes of what can be wrong with a report, its result file or its submission.

A code names the rule that is broken and never changes, so that a program can match on it; the text
beside it is for people. docs/certifying.md lists them.
"""

from __future__ import annotations

from typing import Literal

Code = Literal[
    # of the result file's header
    "scenario-set-digest",
    "driver-profile-digest",
    "scenario-differs",
    "namespace-of-another-run",
    "joined-runs",
    "times",
    # of one scenario
    "skipped-and-ran",
    "known-issue",
    "earlier-attempts",
    "passed-without-step",
    "passed-with-failed-step",
    "passed-with-overlap",
    "passed-with-remains",
    "kubernetes-version",
    "simulated",
    "driver",
    "not-asked-to-compare",
    "not-compared",
    "verdicts",
    "not-judged",
    # of the driver's profile, and of the result of driver-check
    "cannot",
    "driver-check",
    # of the report and its submission
    "result-file",
    "report",
    "profile-unknown",
    "profile-repeated",
    "folder",
    "report-file",
    "readme",
    "stray-file",
]
Finding = tuple[Code, str]  # A code, and what is wrong.
