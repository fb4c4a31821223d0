from __future__ import annotations

from typing import Any

import pytest

from reference_allocator.errors import AllocationError
from reference_allocator.rules.node_eligibility import node_problem

UNSCHEDULABLE = "node.kubernetes.io/unschedulable"


def node(*taints: dict[str, str], **spec: Any) -> dict[str, Any]:
    meta = {"name": "n", "labels": {"zone": "a"}}
    return {"metadata": meta, "spec": {"taints": list(taints), **spec}}


def taint(effect: str, value: str = "") -> dict[str, str]:
    return {"key": "k", "value": value, "effect": effect}


def affinity(*terms: dict[str, Any]) -> dict[str, Any]:
    required = {"nodeSelectorTerms": list(terms)}
    name = "requiredDuringSchedulingIgnoredDuringExecution"
    return {"affinity": {"nodeAffinity": {name: required}}}


def in_zone(*zones: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": "zone", "operator": "In", "values": list(zones)}]}


CORDONED = "node(s) were unschedulable"
TAINTED = "node(s) had untolerated taint(s)"
OTHER = "node(s) didn't match Pod's node affinity/selector"


@pytest.mark.parametrize(
    ("subject", "pod_spec", "problem"),
    [
        (node(), {}, None),
        (node(unschedulable=True), {}, CORDONED),
        (node(unschedulable=True), {"tolerations": [{"operator": "Exists"}]}, None),
        (
            node(unschedulable=True),
            {"tolerations": [{"key": UNSCHEDULABLE, "operator": "Exists"}]},
            None,
        ),
        (
            node(unschedulable=True),
            {"tolerations": [{"key": UNSCHEDULABLE, "operator": "Exists", "effect": "NoExecute"}]},
            CORDONED,
        ),
        (node(taint("NoSchedule")), {}, TAINTED),
        (node(taint("NoExecute")), {}, TAINTED),
        (node(taint("PreferNoSchedule")), {}, None),
        (node(taint("NoSchedule", "v")), {"tolerations": [{"key": "k", "value": "v"}]}, None),
        (node(taint("NoSchedule", "v")), {"tolerations": [{"key": "k", "value": "w"}]}, TAINTED),
        (node(), {"nodeSelector": {"zone": "a"}}, None),
        (node(), {"nodeSelector": {"zone": "b"}}, OTHER),
        (node(), {"nodeName": "n"}, None),
        (node(), {"nodeName": "m"}, OTHER),
        (node(), affinity(in_zone("b"), in_zone("a")), None),
        (node(), affinity(in_zone("b")), OTHER),
        (node(), {"nodeSelector": {"zone": "a"}, **affinity(in_zone("b"))}, OTHER),
    ],
)
def test_whether_a_node_suits_a_pod(
    subject: dict[str, Any], pod_spec: dict[str, Any], problem: str | None
) -> None:
    assert node_problem(subject, pod_spec) == problem


def test_a_selector_that_does_not_parse_is_an_error() -> None:
    wrong = {"matchExpressions": [{"key": "zone", "operator": "Near"}]}
    with pytest.raises(AllocationError):
        node_problem(node(), affinity(wrong))
