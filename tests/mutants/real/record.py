"""What was seen of each mutant: kept in seen.yaml, from which the page is made."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from tests.mutants.real.change import Wrong
from tests.mutants.real.running import Seen
from tests.mutants.real.wrong import ALL

COMMAND = "python -m tests.mutants.real"
FILE = Path(__file__).with_name("seen.yaml")

NOT_SEEN = {
    "forgets-reservation": "kube-controller-manager reserves a claim for a pod that has a node"
    " where the scheduler has not, so that nothing is wrong that anybody could see"
}
"""Mutants that are not noticed, and why nothing can notice them."""

Entry = Mapping[str, Any]
"""date, kubernetes, and scenarios: what failed, with the verdicts on its allocations."""

_HEAD = """\
# Mutants for real

Measured by `{command}`: each line is Kubernetes' own kube-scheduler, built from its
sources with one small deliberate defect, on a real local cluster, met by the scenarios that are
about what is broken. The same program without a defect passed all of them before each batch.
*Verdict* is what the comparison with the reference says of the scheduler's allocations; where a
defect gives no wrong allocation there is none.
How it works: [decision 0020](decisions/0020-mutants-live-in-tests.md).

{count} of {all} mutants are noticed.

| mutant | what is wrong | noticed by | verdict | Kubernetes | date |
|---|---|---|---|---|---|
"""


def read() -> dict[str, Entry]:
    """Name of a mutant -> what was seen of it."""
    if not FILE.exists():
        return {}
    known = {wrong.name for wrong in ALL}
    entries: dict[str, Entry] = yaml.safe_load(FILE.read_text())
    return {name: entry for name, entry in entries.items() if name in known}


def entry(seen: Seen, kubernetes: str, date: str) -> Entry:
    """What is written down."""
    scenarios = {name: list(seen.verdicts.get(name, ())) for name in seen.failed}
    judged = {name: list(texts) for name, texts in seen.verdicts.items()}
    return {"kubernetes": kubernetes, "date": date, "noticed": judged | scenarios}


def write(entries: Mapping[str, Entry]) -> None:
    """Write the file."""
    head = f"# Written by {COMMAND}\n"
    FILE.write_text(head + yaml.safe_dump(dict(entries), sort_keys=True))


def page(entries: Mapping[str, Entry]) -> str:
    """The page, made from what was written down."""
    met = [(wrong, entries[wrong.name]) for wrong in ALL if wrong.name in entries]
    count = sum(bool(each["noticed"]) for _, each in met)
    lines = [_line(wrong, each) for wrong, each in met]
    return _HEAD.format(command=COMMAND, count=count, all=len(met)) + "\n".join(lines) + "\n"


def _line(wrong: Wrong, each: Entry) -> str:
    noticed: Mapping[str, list[str]] = each["noticed"]
    links = (f"[{name}](../scenarios/{name}.yaml)" for name in noticed)
    scenarios = ", ".join(links) or f"nothing: {NOT_SEEN.get(wrong.name, 'not known why')}"
    verdicts = ", ".join(sorted({text for texts in noticed.values() for text in texts}))
    cells = (wrong.name, wrong.what, scenarios, verdicts, each["kubernetes"], each["date"])
    return f"| {' | '.join(cells)} |"
