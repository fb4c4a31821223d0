"""The submissions that this repository keeps, and their READMEs made again from the evidence.

After a change of ``README.md.j2``: ``python -m tests.certify.kept``.
"""

from __future__ import annotations

from pathlib import Path

from conformance.certify.evidence import read_evidence
from conformance.certify.readme import Readme
from conformance.certify.submission import EVIDENCE, README, find_submissions

KEPT = Path(__file__).parents[2] / "reports"


def rewrite(folder: Path) -> None:
    """Write a submission's README as the template has it now; the commands stay."""
    evidence = read_evidence(folder / EVIDENCE)
    options = evidence.run(folder / EVIDENCE).run.options
    readme = Readme(evidence.report, options, evidence.reproduce, EVIDENCE)
    path = folder / README
    path.write_text(readme.with_commands_of(path.read_text()).text())


if __name__ == "__main__":
    for each in find_submissions(KEPT):
        rewrite(each)
