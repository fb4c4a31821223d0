"""Taints of devices, by drivers and by DeviceTaintRules: who stays, and who has to go."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.targets.reference.scope import ReferenceScope
from kube.errors import ApiError
from kube.values import Obj, Ref
from tests.kubesim import kit
from tests.kubesim.conftest import Open, new_scope
from tests.kubesim.situations import DRIVER, RULE, claim, publish, rule, run

KEY = "example.com/broken"
SLICE = Ref(kit.DRA, "ResourceSlice", "published")


def tolerating(**toleration: Any) -> Obj:
    return claim("c", tolerations=[{"key": KEY, "operator": "Exists", **toleration}])


def is_there(scope: ReferenceScope, name: str = "c") -> bool:
    found = scope.get(kit.pod_ref(name))
    return found is not None and "deletionTimestamp" not in found["metadata"]


def test_toleration_without_an_effect_does_not_keep_the_pod(scope: ReferenceScope) -> None:
    """As in Kubernetes 1.37.1, whose scheduler takes it for every effect."""
    scope.create(rule("NoExecute"))
    publish(scope, {"name": "d0"})
    run(scope, tolerating())
    assert kit.events(scope, "Scheduled") == [f"Successfully assigned ns/c to {kit.NODE}"]
    assert not is_there(scope)


def said(scope: ReferenceScope) -> tuple[str, str, str]:
    """The condition EvictionInProgress of the rule."""
    [condition] = kit.get(scope, RULE)["status"]["conditions"]
    assert condition["type"] == "EvictionInProgress"
    return condition["status"], condition["reason"], condition["message"]


def test_rule_without_effect_says_once_what_it_would_do(scope: ReferenceScope) -> None:
    publish(scope, {"name": "d0"}, {"name": "d1"})
    run(scope, claim("c"))
    scope.create(rule("None"))
    told = said(scope)
    assert told[:2] == ("False", "NoEffect")
    assert told[2].startswith(
        "2 published devices selected. 1 allocated device selected. 1 pod would be evicted in 1 "
        "namespace if the effect was NoExecute."
    )
    run(scope, claim("later"))
    scope.pause(60)
    assert said(scope) == told
    assert is_there(scope)


def test_evicting_rule_says_how_far_it_is(scope: ReferenceScope) -> None:
    publish(scope, {"name": "d0"})
    run(scope, claim("c"))
    scope.create(rule("NoExecute"))
    waiting = "1 pod needs to be evicted in 1 namespace."
    assert said(scope) == ("True", "PodsPendingEviction", waiting)
    scope.pause(9)
    assert said(scope)[1] == "PodsPendingEviction"
    scope.pause(2)
    done = "1 pod evicted since starting the controller."
    assert said(scope) == ("False", "Completed", done)


def test_rules_that_evict_nobody_say_so(scope: ReferenceScope) -> None:
    scope.create(rule("NoSchedule"))
    text = "Eviction only happens for the NoExecute effect."
    assert said(scope) == ("False", "OtherEffect", text)
    scope.patch(RULE, {"spec": {"taint": {"effect": "NoExecute"}}})
    assert said(scope) == ("False", "NotStarted", "")


def test_decision_is_recorded_with_the_taints_of_rules(scope: ReferenceScope) -> None:
    selected = rule()
    selected["spec"]["deviceSelector"] = {"device": "d0"}
    scope.create(selected)
    publish(scope, {"name": "d0"}, {"name": "d1"})
    run(scope, claim("c"))
    [decision] = scope.decisions()
    tainted = {
        device["name"]: [taint["key"] for taint in device.get("taints") or ()]
        for item in decision.snapshot["slices"]
        if item["spec"]["driver"] == DRIVER
        for device in item["spec"]["devices"]
    }
    assert tainted == {"d0": [KEY], "d1": []}
    assert all("taints" not in item for item in kit.get(scope, SLICE)["spec"]["devices"])


def test_rules_are_not_served_where_their_gate_is_off(open_target: Open) -> None:
    scope = new_scope(open_target(kubernetes_version="1.36.0"))
    with pytest.raises(ApiError) as caught:
        scope.create(rule())
    assert caught.value.code == 404


def test_without_the_gate_taints_are_dropped(open_target: Open) -> None:
    scope = new_scope(open_target(kubernetes_version="1.34.0"))
    publish(scope, {"name": "d0", "taints": [{"key": KEY, "effect": "NoSchedule"}]})
    assert kit.get(scope, SLICE)["spec"]["devices"] == [{"name": "d0"}]
