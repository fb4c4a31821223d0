"""Whatever is in a saved file, judging it gives a judgement or one clear message."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from conformance.compare.evidence import Obj
from conformance.compare.judging import judge, judge_undecided
from conformance.results.events.comparison import Judgement, Verdict
from kube.base.errors import UsageError
from tests.compare.cluster import (
    allocated,
    allocation,
    claim,
    decision,
    device_class,
    node,
    pod,
    prefer,
    snapshot,
)

Path = tuple[str | int, ...]
JUNK: st.SearchStrategy[Any] = st.sampled_from(
    [None, 0, -1, True, "", "x", 1.5, [], {}, [None], {"x": None}, [{}]]
)

STATE = snapshot(
    allocated=(allocated("other", "gpu-1"),),
    device_classes=(device_class(config=[{"opaque": {"driver": "d", "parameters": {}}}]),),
    nodes=(node(taints=[{"key": "a", "effect": "PreferNoSchedule"}]),),
    claims=(claim(memory="1Gi"), prefer("claim-2", "1Gi", "2Gi")),
)
OPAQUE = {"source": "FromClass", "requests": ["gpu"], "opaque": {"driver": "d", "parameters": {}}}
DECISION = decision(
    [claim(memory="1Gi"), prefer("claim-2", "1Gi")],
    [allocation("gpu-0"), allocation("gpu-1", request="gpu/size-0")],
    STATE,
)
DECISION["allocations"][0]["devices"]["config"] = [OPAQUE]
DECISION["allocations"][0]["devices"]["results"][0].update(
    tolerations=[{"key": "a", "operator": "Exists"}],
    bindingConditions=["x"],
    shareID="a671734a-e8e5-11e4-8fde-42010af09327",
    consumedCapacity={"memory": "1Gi"},
)


def paths(value: Any, path: Path = ()) -> Iterator[Path]:
    yield path
    if isinstance(value, dict):
        for key, item in value.items():
            yield from paths(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from paths(item, (*path, index))


def damaged(document: Obj, path: Path, junk: Any) -> Obj:
    document = copy.deepcopy(document)
    inner: Any = document
    for part in path[:-1]:
        inner = inner[part]
    inner[path[-1]] = junk
    return document


def outcome(ask: Callable[[], Judgement | None]) -> str:
    """The verdict, ``none``, or ``refused`` for one message that begins with a path."""
    try:
        judgement = ask()
    except UsageError as error:
        return "refused" if str(error).startswith("$") else str(error)
    return "none" if judgement is None else judgement.verdict


@given(path=st.sampled_from(list(paths(DECISION))[1:]), junk=JUNK)
def test_a_damaged_decision_never_ends_in_a_traceback(path: Path, junk: Any) -> None:
    document = damaged(DECISION, path, junk)
    assert outcome(lambda: judge(document)) in (*Verdict, "refused")


EXISTS = {"key": "a", "operator": "Exists"}
WAITING = {
    "snapshot": STATE,
    "pod": pod(
        nodeSelector={"zone": "a"},
        tolerations=[{"key": "a", "operator": "Exists"}],
        resourceClaims=[{"name": "x", "resourceClaimName": "other"}],
        affinity={
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [{"matchExpressions": [EXISTS]}]
                }
            }
        },
    ),
}


@given(path=st.sampled_from(list(paths(WAITING))[1:]), junk=JUNK)
def test_a_damaged_pod_never_ends_in_a_traceback(path: Path, junk: Any) -> None:
    document = damaged(WAITING, path, junk)
    assert outcome(lambda: judge_undecided(document)) in (Verdict.MISSED, "none", "refused")


@given(path=st.sampled_from(list(paths(STATE))[1:]), junk=JUNK)
def test_a_damaged_snapshot_never_ends_in_a_traceback(path: Path, junk: Any) -> None:
    document = damaged(STATE, path, junk)
    assert outcome(lambda: judge_undecided(document)) in (Verdict.MISSED, "none", "refused")
