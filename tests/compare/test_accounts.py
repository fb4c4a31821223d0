"""Which lines of what two targets said are a difference, and which a rule explains."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from conformance.compare.accounts import RULES, compare_accounts
from conformance.results.events.account import Account
from conformance.results.events.comparison import ScenarioCompared
from conformance.results.events.result import summarize_accounts

ROOT = Path(__file__).resolve().parents[2]

POD = "Pod p: "
SCHEDULED = f"{POD}Normal Scheduled of default-scheduler: Successfully assigned ns/p to <node>"
FAILED = f"{POD}Warning FailedScheduling of default-scheduler: 0/{{}} nodes are available: {{}}."
LACK = "1 cannot allocate all claims"
ELSEWHERE = "1 node(s) didn't match Pod's node affinity/selector"
UNPREPARED = (
    f"{POD}Warning FailedPrepareDynamicResources of kubelet: Failed to prepare dynamic resources: "
)
HEALTH = "container c: claim:gpu: k8s.d/claim=<uid>-<device>: "

STARTED = f"{POD}Normal Started of kubelet: Container started"
PASSING = "passing-state"

Lines = tuple[str, ...]

CASES: Final[dict[str, tuple[Lines, Lines, Lines, str | None]]] = {
    # name -> lines of the target, of the reference and of both, the rule (None: a difference)
    "a container was started": ((STARTED,), (), (), "runtime"),
    "nothing was started": ((), (STARTED,), (), None),
    "there is no DNS": ((f"{POD}Warning MissingClusterDNS of kubelet: pod: x",), (), (), "dns"),
    "not ready yet": (("condition: Ready=False: x",), (), ("condition: Ready=True",), PASSING),
    "ended before it was ready": (
        ("condition: Ready=False: x",),
        (),
        ("condition: Ready=False: PodCompleted",),
        PASSING,
    ),
    "never ready": (("condition: Ready=False: x",), (), (), None),
    "starts at once": ((), ("container c: waiting: A",), ("container c: running",), PASSING),
    "another one runs": ((), ("container c: waiting: A",), ("container d: running",), None),
    "unheard for a while": ((f"{HEALTH}Unknown",), (), (f"{HEALTH}Healthy",), PASSING),
    "heard again by then": ((f"{HEALTH}Healthy",), (f"{HEALTH}Unknown",), (), "told-again"),
    "heard only on the reference": ((f"{HEALTH}Unknown",), (f"{HEALTH}Healthy",), (), None),
    "health of a container that waits": (
        (),
        (f"{HEALTH}Healthy",),
        ("container c: waiting: A",),
        "waiting-health",
    ),
    "health of a container that runs": (
        (),
        (f"{HEALTH}Healthy",),
        ("container c: waiting: A", "container c: running"),
        None,
    ),
    "a volume comes late": ((f"{POD}Warning FailedMount of kubelet: x",), (), (), "volumes"),
    "unheard for ever": ((f"{HEALTH}Unknown",), (), (), None),
    "other nodes count": (
        (FAILED.format(2, f"{LACK}, {ELSEWHERE}"),),
        (FAILED.format(1, LACK),),
        (),
        "other-nodes",
    ),
    "other nodes are tainted": (
        (FAILED.format(2, f"{LACK}, 1 node(s) had untolerated taint(s)"),),
        (FAILED.format(1, LACK),),
        (),
        "other-nodes",
    ),
    "other nodes are cordoned": (
        (FAILED.format(3, f"1 node(s) were unschedulable, {LACK}"),),
        (FAILED.format(1, LACK),),
        (),
        "other-nodes",
    ),
    "another reason": ((FAILED.format(2, ELSEWHERE),), (FAILED.format(1, LACK),), (), None),
    "being allocated": (
        (FAILED.format(1, "resource claim ns/c is in the process of being allocated. x"),),
        (),
        (),
        "in-flight",
    ),
    "being allocated for a group": (
        (f"{POD}Warning FailedScheduling of s: c is in the process of being allocated.",),
        (),
        (),
        "in-flight",
    ),
    "bound before its claim is noted": (
        (f"{POD}Warning FailedPrepareDynamicResources of k: x: ResourceClaim not created yet",),
        (),
        (),
        "made-meanwhile",
    ),
    "deallocated while bound": (
        (f"{POD}Warning FailedScheduling of s: c got deallocated elsewhere in the meantime",),
        (),
        (),
        "changed-meanwhile",
    ),
    "no device for a while": ((FAILED.format(1, LACK),), (), (SCHEDULED,), "passing-shortage"),
    "no device": ((FAILED.format(1, LACK),), (), (), None),
    "no driver yet": (
        (f"{UNPREPARED}DRA driver d is not registered",),
        (),
        (),
        "driver-starts",
    ),
    "no driver any more": (
        (f"{UNPREPARED}NodePrepareResources: rpc error: code = Unavailable desc = connection x",),
        (),
        (),
        "driver-starts",
    ),
    "unprepared in time": (
        (),
        (f"{UNPREPARED}ResourceClaim one is being unprepared",),
        (),
        "being-unprepared",
    ),
    "unprepared later": (
        (f"{UNPREPARED}x: claim c: device gpu-2 is still prepared for claim d",),
        (),
        (),
        "still-prepared",
    ),
    "devices have other names": (
        (f"{HEALTH}Unknown",),
        (f"{HEALTH}Unknown".replace("k8s.d/claim", "d/gpu"),),
        (),
        "drivers-words",
    ),
    "one device has no name": ((f"{HEALTH}Unknown",), (), ("container c: running",), None),
    "another request has devices": (
        (f"{HEALTH}Unknown",),
        (f"{HEALTH}Unknown".replace(":gpu:", ":nic:"),),
        (),
        None,
    ),
    "refused in other words": (
        (f"{UNPREPARED}NodePrepareResources failed for ResourceClaim c: no: at all",),
        (f"{UNPREPARED}NodePrepareResources failed for ResourceClaim c: never",),
        (),
        "drivers-words",
    ),
    "another claim is refused": (
        (f"{UNPREPARED}NodePrepareResources failed for ResourceClaim c: no",),
        (f"{UNPREPARED}NodePrepareResources failed for ResourceClaim d: no",),
        (),
        None,
    ),
    "a refusal": ((f"{UNPREPARED}NodePrepareResources failed for c: no",), (), (), None),
    "a start was cut short": (
        ("container c: terminated: code 128: StartError: context canceled",),
        (),
        (),
        "cut-short",
    ),
    "ended otherwise": (("container c: terminated: code 1: Error",), (), (), None),
}


@pytest.mark.parametrize(("ours", "theirs", "common", "rule"), CASES.values(), ids=CASES)
def test_line_of_one_side_is_a_difference_unless_a_rule_explains_it(
    ours: Lines, theirs: Lines, common: Lines, rule: str | None
) -> None:
    in_events = (*ours, *theirs)[0].startswith(POD)
    target, reference = (
        Account(events=lines) if in_events else Account(pods={"p": lines})
        for lines in ((*ours, *common), (*theirs, *common))
    )
    differing, explained = compare_accounts(target, reference)
    pairs = [(one.target, one.reference) for one in differing]
    if rule is None:
        nothing = "<nothing>"
        assert pairs == [*((line, nothing) for line in ours), *((nothing, line) for line in theirs)]
    else:
        assert (pairs, explained) == ([], {rule: len(ours) + len(theirs)})


def test_answer_beside_a_refusal_may_be_read_or_not() -> None:
    refusal = f"{UNPREPARED}NodePrepareResources failed for ResourceClaim c: no"
    said = {"p": (f"{HEALTH}Healthy",)}
    assert compare_accounts(Account((refusal,), said), Account((refusal,), {})) == (
        (),
        {"map-order": 1},
    )
    assert compare_accounts(Account((refusal,), {}), Account((refusal,), said))[0] == ()
    [differing], _ = compare_accounts(Account((), said), Account((), {}))
    assert differing.path == "p"


def test_an_event_may_be_late_where_the_status_says_the_same() -> None:
    event, reason = FAILED.format(1, LACK), f"{LACK}, {ELSEWHERE}"
    status = f"condition: PodScheduled=False: Unschedulable: 0/2 nodes are available: {reason}."
    target = Account((), {"p": (status,)})
    late = compare_accounts(target, Account((event,), {"p": (status,)}))
    assert late == ((), {"late-event": 1})
    for other in (Account(), Account((), {"p": ()}), Account((), {"q": (status,)})):
        [differing] = compare_accounts(other, Account((event,), other.pods))[0]
        assert differing.reference == event


def test_every_rule_has_a_case() -> None:
    rules = {rule for *_, rule in CASES.values() if rule}
    assert rules | {"map-order", "late-event"} == {rule.name for rule in RULES}


def test_docs_say_what_each_rule_is_for() -> None:
    text = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
    assert "\n".join(f"| {rule.name} | {rule.reason} |" for rule in RULES) in text


def test_summary_counts_lines_of_all_scenarios() -> None:
    differing, explained = compare_accounts(
        Account(events=(STARTED, f"{POD}Warning Odd of kubelet: odd")), Account()
    )
    scenario = ScenarioCompared("core/a", differences=differing, explained=explained)
    assert summarize_accounts([scenario, scenario]) == (
        "lines of events, pods and driver calls that differ: 2; 2 more are explained (runtime 2)"
    )
    assert summarize_accounts([ScenarioCompared("core/a")]) == ""


def test_calls_that_are_not_known_of_one_are_not_compared() -> None:
    known, unknown = Account(calls={"c": ("prepare",)}), Account()
    assert compare_accounts(known, unknown) == compare_accounts(None, known) == ((), {})
    [one] = compare_accounts(known, Account(calls={}))[0]
    assert (one.title, one.path, one.target, one.reference) == (
        "calls",
        "c",
        "prepare",
        "<nothing>",
    )
