"""What the upgrade audit says of the objects of every shipped scenario, and whether it is so.

Each scenario runs on the reference of the older minor. What it stored is audited, and then it runs
on the reference of the newer one: where nothing was found, it has to pass there, too.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from itertools import pairwise

import pytest

from conformance.engine.setup import Setup
from conformance.engine.suite import run_suite
from conformance.results.events.scenario import Outcome
from conformance.scenario.loader import LoadedScenario
from conformance.scenario.upgrades.finding import find_problems
from kube.values import Obj
from reference_allocator.gates import MINORS
from tests.scenario.sampling import SAMPLE, sample
from tests.scenario.test_gates import ALL, by_itself, finished, open_reference

KINDS = ("DeviceClass", "ResourceClaim", "ResourceClaimTemplate", "ResourceSlice")
NO_EFFECT, BUILD = {"empty-effect-tolerates"}, {"build-metadata-ignored"}
FOUND: Mapping[str, set[str]] = {
    "extended/beta-api-versions/every-field-is-converted": NO_EFFECT,
    "extended/device-taint-rules/every-share-is-evicted": NO_EFFECT,
    "extended/device-taint-rules/rule-selects-by-all-parts": NO_EFFECT,
    "extended/device-taints/all-mode-waits-for-tainted-device": NO_EFFECT,
    "extended/device-taints/every-toleration-counts": NO_EFFECT,
    "extended/device-taints/toleration-of-every-taint": NO_EFFECT,
    "extended/device-taints/toleration-of-one-key": NO_EFFECT,
    "extended/device-taints/tolerations-are-checked": NO_EFFECT,
    "extended/prioritized-list/alternative-tolerates-taint": NO_EFFECT,
    "regressions/build-metadata-is-compared": BUILD,
}
"""Scenario -> the rows by which 1.38 treats its objects otherwise; older minors have none."""
UPGRADES = [*pairwise(MINORS)]


def audit_each(before: str, after: str, scenarios: list[LoadedScenario]) -> dict[str, set[str]]:
    """Scenario that passes -> the rows that are found in what was stored while it ran."""
    found: dict[str, set[str]] = {}
    with open_reference(before, on=True) as (target, opened):
        stored: list[Obj] = []
        for kind in KINDS:
            target.world.cluster.store.listen(
                kind, lambda _, item: stored.append(copy.deepcopy(item))
            )
        for one in scenarios:
            stored.clear()
            (item,) = run_suite([one], Setup("upgrade", opened), ()).finished
            if item.outcome is Outcome.PASSED:
                found[one.id] = {each.change for each in find_problems(stored, before, after)}
    return found


@pytest.mark.parametrize(
    ("before", "after", "among"),
    [
        ("1.37", "1.38", 60),
        *(pytest.param(*pair, ALL, marks=pytest.mark.everything) for pair in UPGRADES),
    ],
)
def test_what_is_found_is_so_and_all_else_passes_after_the_upgrade(
    before: str, after: str, among: int
) -> None:
    expected = FOUND if after == "1.38" else {}
    scenarios = sample(by_itself(), among, f"upgrade to {after}")
    scenarios += [one for one in by_itself() if one.id in expected and one not in scenarios]
    found = audit_each(before, after, scenarios)
    assert {name: rows for name, rows in found.items() if rows} == expected, SAMPLE
    quiet = [one for one in scenarios if not found.get(one.id, {"skipped before"})]
    came = finished(after, quiet, on=True)
    fine = {Outcome.PASSED, Outcome.SKIPPED}
    worse = {name: item.message for name, item in came.items() if item.outcome not in fine}
    assert worse == {}, SAMPLE
