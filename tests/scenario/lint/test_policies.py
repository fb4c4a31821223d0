"""A policy that others on the cluster could feel is refused before anything runs."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from conformance.scenario.lint.scenarios import check_policies
from conformance.scenario.model import Scenario
from tests.scenario.shipped import shipped

NAME = "regressions/device-of-half-bound-pod-stays-taken"


def document() -> dict[str, Any]:
    [loaded] = [item for item in shipped() if item.id == NAME]
    found: dict[str, Any] = copy.deepcopy(loaded.document.data)
    return found


def problems(data: dict[str, Any]) -> list[str]:
    return [
        f"{problem.path[-1]}: {problem.message}"
        for problem in check_policies(Scenario.model_validate(data))
    ]


def test_the_shipped_policy_is_for_its_own_namespace() -> None:
    assert problems(document()) == []


@pytest.mark.parametrize(
    ("index", "part"), [(0, "matchConstraints"), (1, "matchResources")], ids=["policy", "binding"]
)
@pytest.mark.parametrize(
    "selector",
    [
        None,
        {},
        {"matchLabels": {"kubernetes.io/metadata.name": "default"}},
        {"matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "Exists"}]},
    ],
)
def test_one_for_other_namespaces_is_refused(index: int, part: str, selector: Any) -> None:
    data = document()
    data["spec"]["steps"][0]["apply"][index]["spec"][part]["namespaceSelector"] = selector
    assert [text for text in problems(data) if text.startswith("namespaceSelector: must be")]
    del data["spec"]["steps"][0]["apply"][index]["spec"][part]
    assert problems(data)


def test_rules_for_what_has_no_namespace_are_refused() -> None:
    for scope in ("*", "Cluster", None):
        data = document()
        policy = data["spec"]["steps"][0]["apply"][0]
        policy["spec"]["matchConstraints"]["resourceRules"][0]["scope"] = scope
        assert [text for text in problems(data) if text.startswith("scope: must be Namespaced")]


def test_other_kinds_of_admission_and_changes_of_policies_are_refused() -> None:
    data = document()
    data["spec"]["steps"][0]["apply"][0]["kind"] = "MutatingWebhookConfiguration"
    assert "no MutatingWebhookConfiguration" in problems(data)[0]
    data = document()
    change = {"kind": "ValidatingAdmissionPolicyBinding", "name": "x", "patch": {"spec": {}}}
    data["spec"]["steps"].append({"patch": change})
    assert "is not to be changed" in problems(data)[0]
