"""What is kept of a scenario that failed, so that it can be understood without its cluster."""

from __future__ import annotations

import json
from collections.abc import Mapping

from conformance.targets.scope import Scope

EXPLANATION = "explanation.txt"
EXPLAIN_SECONDS = 5.0
"""The longest that the explanation may search for a smallest set of claims in conflict."""


def diagnose(scope: Scope) -> Mapping[str, str]:
    """What is kept of a failed scenario: name -> text; the reason for what cannot be had.

    Beside what the target tells: ``snapshot.json``, from which the allocation can be judged again
    (``dra-conformance replay``), and ``explanation.txt``, the reference allocator's answer for the
    claims of the scenario that have no allocation.
    """
    items: dict[str, str] = {}
    try:
        items.update(scope.diagnostics())
    except Exception as error:  # noqa: BLE001 -- the finding matters more than its context
        items["diagnostics-error.txt"] = f"{type(error).__name__}: {error}"
    try:
        snapshot = scope.snapshot()
        items["snapshot.json"] = json.dumps(snapshot, indent=1, sort_keys=True)
        if snapshot.get("claims"):
            from reference_allocator.explain import explain
            from reference_allocator.snapshot import Snapshot

            parsed = Snapshot.from_dict(snapshot)
            items[EXPLANATION] = explain(parsed, seconds=EXPLAIN_SECONDS).text + "\n"
    except Exception as error:  # noqa: BLE001 -- as above
        items["snapshot-error.txt"] = f"{type(error).__name__}: {error}"
    return items
