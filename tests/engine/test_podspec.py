"""Pods are kept to the nodes of a pool by a node affinity."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.engine.objects.podspec import HOSTNAME, confine
from conformance.targets.base import Obj


def made(kind: str, spec: Any) -> Obj:
    found = {"kind": kind, "spec": spec}
    confine(found, ["a", "b"])
    return found


ONLY = {"key": HOSTNAME, "operator": "In", "values": ["a", "b"]}


def affinity(*terms: Any) -> Obj:
    required = {"nodeSelectorTerms": list(terms)}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


def test_pods_and_those_that_objects_make_are_confined() -> None:
    wanted = {"affinity": affinity({"matchExpressions": [ONLY]})}
    assert made("Pod", {})["spec"] == wanted
    assert made("Job", {"template": {"spec": {}}})["spec"]["template"]["spec"] == wanted
    assert made("ResourceClaim", {"template": {"spec": {}}})["spec"] == {"template": {"spec": {}}}


def test_what_a_pod_wants_itself_is_kept() -> None:
    zone = {"key": "zone", "operator": "Exists"}
    named = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]}]}
    found = made("Pod", {"affinity": affinity({"matchExpressions": [zone]}, named)})
    assert found["spec"]["affinity"] == affinity(
        {"matchExpressions": [zone, ONLY]}, {**named, "matchExpressions": [ONLY]}
    )


@pytest.mark.parametrize(
    "spec",
    [
        {"nodeName": "elsewhere"},
        {"affinity": "wrong"},
        {"affinity": affinity()},
        {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": 1}}},
        "wrong",
    ],
)
def test_what_is_bound_or_malformed_stays_as_it_is(spec: Any) -> None:
    assert made("Pod", spec)["spec"] == spec
