"""ci/rbac/own-namespaces.yaml: what it refuses whoever runs the suite, by its own expressions.

They were also compiled and evaluated by Kubernetes' own library (k8s.io/apiserver v0.35.10,
pkg/admission/plugin/cel) with the same answers; the suite's own evaluator has no types for them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from conformance.engine.objects.podspec import LABEL, restrict
from kube.nodes import RUN_LABEL
from kube.values import Obj
from reference_allocator.cel import DYN, compile_expression

FILE = Path(__file__).resolve().parents[2] / "ci" / "rbac" / "own-namespaces.yaml"
USER = "YOU"
OF_A_RUN = {RUN_LABEL: "r1"}
RESTRICTED = {**OF_A_RUN, **dict([LABEL])}
NAMESPACE = "the namespace has no label"
OBJECT = "an object without the label"
STANDARD = "must enforce the Pod Security Standard"


def labelled(labels: dict[str, str] | None) -> Obj:
    return {"metadata": {"name": "x"} if labels is None else {"name": "x", "labels": labels}}


class Write(NamedTuple):
    """A request to write an object. ``lies_in``: its namespace, None for a cluster's object."""

    resource: str
    object: Obj | None
    old: Obj | None = None
    lies_in: Obj | None = None
    user: str = USER
    dry_run: bool = False
    group: str = ""


def refusals(write: Write) -> list[str]:
    """The messages of what is refused; none where the policy does not look at the request."""
    policy, binding = yaml.safe_load_all(FILE.read_text())
    assert binding["spec"]["policyName"] == policy["metadata"]["name"]
    assert binding["spec"]["validationActions"] == ["Deny"]
    spec = policy["spec"]
    request = {
        "userInfo": {"username": write.user},
        "resource": {"group": write.group, "resource": write.resource},
        "dryRun": write.dry_run,
    }
    if write.lies_in is not None:
        request["namespace"] = "x"
    if write.resource == "namespaces":
        request["namespace"] = "x"  # its own, as the API server has it
    given: dict[str, Any] = {
        "request": request,
        "object": write.object,
        "oldObject": write.old,
        "namespaceObject": write.lies_in,
        "variables": {},
    }

    def value(expression: str) -> Any:
        return compile_expression(expression, dict.fromkeys(given, DYN)).evaluate(given)

    if not all(value(one["expression"]) for one in spec["matchConditions"]):
        return []
    for one in spec["variables"]:
        given["variables"] = {**given["variables"], one["name"]: value(one["expression"])}
    return [one["message"] for one in spec["validations"] if not value(one["expression"])]


THEIRS, OURS = labelled({"team": "a"}), labelled(OF_A_RUN)
UNLABELLED, SYSTEM = labelled(None), labelled({"kubernetes.io/metadata.name": "kube-system"})
BASELINE = labelled({**OF_A_RUN, LABEL[0]: "baseline"})
PRIVILEGED = labelled({**OF_A_RUN, LABEL[0]: "privileged"})


@pytest.mark.parametrize(
    ("write", "messages"),
    [
        pytest.param(Write("pods", OURS, lies_in=SYSTEM), [NAMESPACE], id="pod of others"),
        pytest.param(Write("pods", OURS, lies_in=UNLABELLED), [NAMESPACE], id="no labels at all"),
        pytest.param(Write("jobs", None, OURS, SYSTEM), [NAMESPACE], id="job of others deleted"),
        pytest.param(Write("pods", UNLABELLED, lies_in=OURS), [], id="pod of the suite"),
        pytest.param(Write("pods", None, UNLABELLED, OURS), [], id="pod of the suite deleted"),
        pytest.param(Write("namespaces", labelled(RESTRICTED)), [], id="namespace"),
        pytest.param(Write("namespaces", BASELINE, labelled(RESTRICTED)), [], id="baseline"),
        pytest.param(Write("namespaces", PRIVILEGED), [STANDARD], id="privileged namespace"),
        pytest.param(Write("namespaces", PRIVILEGED, BASELINE), [STANDARD], id="made privileged"),
        pytest.param(Write("namespaces", OURS), [STANDARD], id="namespace without a standard"),
        pytest.param(
            Write("namespaces", UNLABELLED), [OBJECT, STANDARD], id="unlabelled namespace"
        ),
        pytest.param(
            Write("namespaces", labelled(RESTRICTED), SYSTEM), [OBJECT], id="namespace taken over"
        ),
        pytest.param(Write("namespaces", None, SYSTEM), [OBJECT], id="namespace of others deleted"),
        pytest.param(Write("namespaces", None, PRIVILEGED), [], id="namespace of a run deleted"),
        pytest.param(Write("deviceclasses", OURS, group="resource.k8s.io"), [], id="class"),
        pytest.param(Write("deviceclasses", UNLABELLED), [OBJECT], id="unlabelled class"),
        pytest.param(Write("deviceclasses", OURS, THEIRS), [OBJECT], id="class taken over"),
        pytest.param(Write("deviceclasses", THEIRS, OURS), [OBJECT], id="class given away"),
        pytest.param(Write("nodes", None, THEIRS), [OBJECT], id="node of others deleted"),
        pytest.param(Write("pods", OURS, lies_in=SYSTEM, dry_run=True), [], id="not kept"),
        pytest.param(Write("pods", OURS, lies_in=SYSTEM, user="other"), [], id="another user"),
        pytest.param(
            Write("selfsubjectaccessreviews", UNLABELLED, group="authorization.k8s.io"),
            [],
            id="question",
        ),
    ],
)
def test_only_what_is_of_a_run_may_be_written(write: Write, messages: list[str]) -> None:
    refused = refusals(write)
    assert len(refused) == len(messages)
    assert all(part in said for part, said in zip(messages, refused, strict=True))


def test_a_namespace_as_the_suite_makes_it_is_let_through() -> None:
    namespace: Obj = {"kind": "Namespace", **labelled(dict(OF_A_RUN))}
    assert refusals(Write("namespaces", namespace)) != []
    restrict(namespace)
    assert refusals(Write("namespaces", namespace)) == []
