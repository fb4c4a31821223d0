"""Compare what components of two targets said of a scenario's pods and claims, line by line.

A line that only one of them has is a difference, or explained by a rule: a kind of line that
differs for a known reason which is no fault of either. Explained lines are counted by rule.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from conformance.results.events.account import Account
from conformance.results.events.comparison import Difference

_NOTHING: Final = "<nothing>"


@dataclass(frozen=True, slots=True)
class Line:
    """A line that only one of two accounts has.

    Attributes:
        part: ``events``, ``pods`` or ``calls``.
        about: the pod or claim, empty for events.
        on_target: the target has it, not the reference.
        beside: all lines about the same in the account that has it.
        opposite: those in the account that has it not.
        target: the target's account.
    """

    part: str
    about: str
    text: str
    on_target: bool
    beside: Sequence[str]
    opposite: Sequence[str]
    target: Account


@dataclass(frozen=True, slots=True)
class Rule:
    """Lines that may differ.

    Attributes:
        name: as the result file counts them.
        reason: why that is no fault.
    """

    name: str
    reason: str
    explains: Callable[[Line], bool]


_RUNTIME: Final = re.compile(
    r"Pod \S+: Normal (Pulling|Pulled|Created|Started|Killing|SandboxChanged) of kubelet: "
)
_DNS: Final = re.compile(r"Pod \S+: Warning MissingClusterDNS of kubelet: ")
_MOUNT: Final = re.compile(r"Pod \S+: Warning FailedMount of kubelet: ")
_STATE: Final = re.compile(r"(?P<subject>container \S+): (?P<state>waiting|running)\b")
_CONDITION: Final = re.compile(
    r"(?P<subject>condition: \w+)=(?P<state>True|False(: Pod(Completed|Failed)\b)?)"
)
_HEALTH: Final = re.compile(r"(?P<subject>container \S+: claim:.*): (?P<state>Unknown|Healthy)\b")
_PASSING: Final = (_STATE, _CONDITION, _HEALTH)

_SCHEDULING: Final = ("FailedScheduling of ", "PodScheduled=False: Unschedulable: ")
_IN_FLIGHT: Final = " is in the process of being allocated."
_CHANGED: Final = re.compile(r" got (de)?allocated elsewhere in the meantime$")
_COUNTS: Final = re.compile(r"\d+(?:/\d+)? (?=nodes? )|\d+ (?=\w)")
_OF_OTHER_NODES: Final = re.compile(
    r"(, )?(\d+ )?node\(s\) (didn't match Pod's node affinity/selector"
    r"|didn't satisfy plugin\(s\) \[NodeAffinity\]|had untolerated taint\(s\)"
    r"|were unschedulable)(?=[.,])"
)
_UNSCHEDULED: Final = re.compile(r"Pod (\S+): Warning FailedScheduling of \S+: (.*)")
_SHORTAGE: Final = re.compile(
    r"(Pod \S+): Warning FailedScheduling of \S+: .*\bcannot allocate all claims"
)
_REFUSED: Final = "NodePrepareResources failed for ResourceClaim "
_ABSENT: Final = re.compile(
    r"FailedPrepareDynamicResources .*( is not registered$|: code = Unavailable desc = connection )"
)
_STILL_PREPARED: Final = re.compile(r"\bdevice \S+ is still prepared for claim ")
_BEING_UNPREPARED: Final = re.compile(r"FailedPrepareDynamicResources .* is being unprepared$")
_OWN_WORDS: Final = re.compile(
    rf"(?<={_REFUSED})(?P<claim>\S+): .*|(?P<container>container \S+: claim:\S+): \S+/\S+=\S+:"
)
_NOT_MADE: Final = re.compile(r"FailedPrepareDynamicResources .*: ResourceClaim not created yet$")
_CUT_SHORT: Final = re.compile(
    r"Warning BackOff of kubelet: |: terminated: code \d+: (StartError|Unknown)\b"
)


def _is_passing(line: Line) -> bool:
    """Return whether the same has another state, too, on the side that has the line."""
    for pattern in _PASSING:
        if match := pattern.match(line.text):
            return len(_list_states(match, line.beside)) > 1
    return False


def _list_states(match: re.Match[str], texts: Sequence[str]) -> set[str]:
    """Return the states that the subject of a line has in lines of the same kind."""
    matches = filter(None, map(match.re.match, texts))
    return {other["state"] for other in matches if other["subject"] == match["subject"]}


def _is_told_again(line: Line) -> bool:
    """Return whether the target knows the health of a device, and the reference not yet."""
    match = _HEALTH.match(line.text)
    if match is None or match["state"] != ("Healthy" if line.on_target else "Unknown"):
        return False
    return bool(_list_states(match, line.opposite) - {match["state"]})


def _is_health_while_waiting(line: Line) -> bool:
    """Return whether a line is of the health of devices of a container that never ran."""
    match = _HEALTH.match(line.text)
    if match is None:
        return False
    container = line.text.partition(": ")[0]
    states = [text for text in line.opposite if text.startswith(f"{container}: ")]
    return bool(states) and all(text.startswith(f"{container}: waiting") for text in states)


def _is_answered_in_part(line: Line) -> bool:
    """Return whether a line is of the health of devices of a pod for which a driver refused one."""
    if _HEALTH.match(line.text) is None:
        return False
    refused = re.compile(rf"Pod {re.escape(line.about)}: .*{_REFUSED}")
    return any(refused.match(text) for text in line.target.events)


def _is_passing_shortage(line: Line) -> bool:
    """Return whether a pod lacked devices, and was scheduled all the same."""
    match = _SHORTAGE.match(line.text)
    scheduled = f"{match[1]}: Normal Scheduled of " if match else ""
    return match is not None and any(text.startswith(scheduled) for text in line.target.events)


def _is_late(line: Line) -> bool:
    """Return whether a pod of the target says in its status what the event would have said."""
    match = _UNSCHEDULED.match(line.text)
    if match is None or line.target.pods is None:
        return False
    said = _without_other_nodes(f"condition: PodScheduled=False: Unschedulable: {match[2]}")
    return said in map(_without_other_nodes, line.target.pods.get(match[1], ()))


def _names_other_nodes(line: Line) -> bool:
    """Return whether the other side has the line but for nodes that the pod may not use."""
    if not any(word in line.text for word in _SCHEDULING):
        return False
    return _without_other_nodes(line.text) in map(_without_other_nodes, line.opposite)


def _has_own_words(line: Line) -> bool:
    """Return whether the other side has the line but for what a driver calls and says itself."""
    said = _without_own_words(line.text)
    return said != line.text and said in map(_without_own_words, line.opposite)


def _without_own_words(text: str) -> str:
    return _OWN_WORDS.sub(lambda match: (match["claim"] or match["container"]) + ":", text)


def _without_other_nodes(text: str) -> str:
    return _COUNTS.sub("", _OF_OTHER_NODES.sub("", text)).replace(": , ", ": ")


RULES: Final[Sequence[Rule]] = (
    Rule(
        "runtime",
        "the reference has neither images nor processes, so nothing is pulled, created, started or"
        " killed there",
        lambda line: line.on_target and _RUNTIME.match(line.text) is not None,
    ),
    Rule(
        "dns",
        "a local cluster has no DNS, the reference has no network at all",
        lambda line: line.on_target and _DNS.match(line.text) is not None,
    ),
    Rule(
        "volumes",
        "a kubelet under load is late with a pod's volumes, of which the reference has none",
        lambda line: line.on_target and _MOUNT.match(line.text) is not None,
    ),
    Rule(
        "passing-state",
        "a state that was over before it was told, as kubelets tell the newest; or that takes no"
        " time on the reference",
        _is_passing,
    ),
    Rule(
        "told-again",
        "after one of its instances ended a driver tells its devices' health again at a moment of"
        " its own; the reference takes the latest one",
        _is_told_again,
    ),
    Rule(
        "waiting-health",
        "of a pod that waits for one of its claims a kubelet tells the health of the others, which"
        " pods beside it have, only when it looks at it again",
        lambda line: not line.on_target and _is_health_while_waiting(line),
    ),
    Rule(
        "other-nodes",
        "on a cluster pods are confined to the nodes of their scenario, and the scheduler counts"
        " the others",
        _names_other_nodes,
    ),
    Rule(
        "late-event",
        "a scheduler writes an event beside the condition that says the same, and a step that waits"
        " for the condition can be over before",
        lambda line: not line.on_target and _is_late(line),
    ),
    Rule(
        "in-flight",
        "a scheduler goes on while it binds another pod; the reference binds a pod at once",
        lambda line: line.on_target and _IN_FLIGHT in line.text,
    ),
    Rule(
        "changed-meanwhile",
        "somebody else, such as the controller that deallocates, may write a claim between a"
        " scheduler's decision and its binding; the reference does both at once",
        lambda line: line.on_target and _CHANGED.search(line.text) is not None,
    ),
    Rule(
        "passing-shortage",
        "pods that end, and other scenarios, have devices for a while that are free on the"
        " reference; whether the scheduler was right is judged of each decision",
        lambda line: line.on_target and _is_passing_shortage(line),
    ),
    Rule(
        "map-order",
        "a kubelet asks drivers, and reads a driver's answers, up to the first refusal, in the"
        " order of a Go map; the reference asks all, and keeps no answer beside a refusal",
        _is_answered_in_part,
    ),
    Rule(
        "driver-starts",
        "a driver needs time until it is registered, and a kubelet until it sees that one is gone;"
        " on the reference neither does",
        lambda line: line.on_target and _ABSENT.search(line.text) is not None,
    ),
    Rule(
        "being-unprepared",
        "whether a pod comes while a kubelet unprepares its claim is a matter of time, of which the"
        " reference needs none until a driver is back",
        lambda line: _BEING_UNPREPARED.search(line.text) is not None,
    ),
    Rule(
        "still-prepared",
        "a claim whose pod was deleted by force is gone before its kubelet has had it unprepared,"
        " and its device may be another's by then; on the reference unpreparing takes no time",
        lambda line: line.on_target and _STILL_PREPARED.search(line.text) is not None,
    ),
    Rule(
        "drivers-words",
        "the CDI names of devices, and why a claim is refused, are the driver's own words; beside"
        " another driver than the suite's the reference has others",
        _has_own_words,
    ),
    Rule(
        "made-meanwhile",
        "a kubelet may see a pod that was bound past the scheduler before the controller has noted"
        " its claim in its status, and tries again; the reference notes it at once",
        lambda line: line.on_target and _NOT_MADE.search(line.text) is not None,
    ),
    Rule(
        "cut-short",
        "a container that is just being started when its kubelet or node ends; on the reference a"
        " start takes no time",
        lambda line: line.on_target and _CUT_SHORT.search(line.text) is not None,
    ),
)


def compare_accounts(
    target: Account | None, reference: Account | None
) -> tuple[tuple[Difference, ...], Mapping[str, int]]:
    """Return the lines that no rule explains, and rule -> how many it explains.

    What is not known of one of the two is not compared.
    """
    if target is None or reference is None:
        return (), {}
    differing: list[Difference] = []
    explained: Counter[str] = Counter()
    for line in _find_lines(target, reference):
        rule = next((rule for rule in RULES if rule.explains(line)), None)
        if rule is not None:
            explained[rule.name] += 1
            continue
        sides = (line.text, _NOTHING) if line.on_target else (_NOTHING, line.text)
        differing.append(Difference(None, line.part, line.about or "$", *sides))
    return tuple(differing), dict(sorted(explained.items()))


def _find_lines(target: Account, reference: Account) -> Iterator[Line]:
    """Yield the lines that only one of two accounts has."""
    for part, about, target_lines, reference_lines in _pair_lines(target, reference):
        for texts, other_texts, on_target in (
            (target_lines, reference_lines, True),
            (reference_lines, target_lines, False),
        ):
            for text in texts:
                if text not in other_texts:
                    yield Line(part, about, text, on_target, texts, other_texts, target)


def _pair_lines(
    target: Account, reference: Account
) -> Iterator[tuple[str, str, Sequence[str], Sequence[str]]]:
    """Yield part, pod or claim, and its lines of both."""
    yield "events", "", target.events, reference.events
    for part, ours, theirs in (
        ("pods", target.pods, reference.pods),
        ("calls", target.calls, reference.calls),
    ):
        if ours is not None and theirs is not None:
            for about in sorted({*ours, *theirs}):
                yield part, about, ours.get(about, ()), theirs.get(about, ())
