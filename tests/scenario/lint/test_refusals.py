"""A manifest is held against the API server's rules: its words, its fields, for each minor."""

from __future__ import annotations

import re
from pathlib import Path
from textwrap import dedent

import pytest

from conformance.scenario.documents.yamlfile import format_path, parse_documents
from conformance.scenario.lint.objects import standalone_problems
from tests.kubesim.record import CASES

OF_THE_CLUSTER = re.compile("with (an ordinary namespace|admin access)|admin access")
"""Cases that are refused for something that is not in the object."""

ABOUT_CLAIMS = re.compile("claim|extended|limit", re.IGNORECASE)


def lines(text: str, kubernetes: str = "1.37") -> list[str]:
    return [
        document.tell(problem).removeprefix("m.yaml:")
        for document in parse_documents(dedent(text).lstrip("\n"), Path("m.yaml"))
        for problem in standalone_problems(document.data, kubernetes)
    ]


def test_it_is_what_a_real_api_server_answered() -> None:
    compared = 0
    for name, case in CASES.items():
        request, answer = case["request"], case["answer"]
        is_dra = request["apiVersion"].startswith("resource.k8s.io/")
        if OF_THE_CLUSTER.search(name) or not (is_dra or ABOUT_CLAIMS.search(answer["message"])):
            continue
        problems = [item for item in standalone_problems(request) if item.severity == "error"]
        assert problems, name
        if answer["code"] != 422 or request["apiVersion"].endswith("v1beta1"):
            continue
        compared += 1
        paths = {re.sub(r"\[([^\]\d][^\]]*)\]", r".\1", item["field"]) for item in answer["causes"]}
        assert {format_path(item.path).removeprefix("$.") for item in problems} == paths, name
        if not any("expression" in path for path in paths):
            said = {item["message"] for item in answer["causes"]}
            assert {item.message for item in problems} == said, name
    assert compared > 80


SLICE = """
    apiVersion: resource.k8s.io/v1
    kind: ResourceSlice
    metadata: {name: s}
    spec:
      driver: gpu.example.org
      nodeName: n
      pool: {name: n, generation: 1, resourceSliceCount: 1}
"""

FLAT_CLAIM = """
    apiVersion: resource.k8s.io/v1beta1
    kind: ResourceClaim
    metadata: {name: c}
    spec: {devices: {requests: [{name: r, deviceClassName: c, allocationMode: All, count: 2}]}}
"""

CUSTOM = """
    apiVersion: kubeflow.org/v2
    kind: MPIJob
    spec:
      template:
        spec:
          containers:
          - name: c
            resources: {requests: {example.org/gpu: 1}, claims: [{name: gpu}]}
"""

RULE = """
    apiVersion: resource.k8s.io/v1
    kind: DeviceTaintRule
    metadata: {name: r}
    spec:
      deviceSelector: {}
      taint: {key: example.org/bad, effect: NoExecute}
"""


@pytest.mark.parametrize(
    ("text", "kubernetes", "expected"),
    [
        pytest.param(
            SLICE + f"      devices: [{', '.join(f'{{name: d{n}}}' for n in range(129))}]\n",
            "1.37",
            ["8: $.spec.devices: Too many: 129: must have at most 128 items"],
            id="129 devices",
        ),
        pytest.param(
            SLICE + "      sharedCounters: [{name: a, counters: {}}]\n",
            "1.37",
            ["8: $.spec.sharedCounters[0].counters: Required value"],
            id="an empty counter set",
        ),
        pytest.param(
            SLICE + "      sharedCounters: []\n      devices: [{name: a}]\n",
            "1.37",
            [
                '4: $.spec: Invalid value: "": only one of `sharedCounters` or',
            ],
            id="counters and devices in one slice",
        ),
        pytest.param(
            FLAT_CLAIM,
            "1.37",
            [
                "1: $.apiVersion: warning: resource.k8s.io/v1beta1 is off by default",
                "4: $.spec.devices.requests[0].count: Invalid value: 2: must not be specified",
            ],
            id="a path of v1beta1 is the author's",
        ),
        pytest.param(
            SLICE.replace("/v1", "/v1beta1")
            + "      devices:\n      - name: a\n        basic: {attributes: {A-b: {int: 1}}}\n",
            "1.37",
            [
                "1: $.apiVersion: warning: resource.k8s.io/v1beta1 is off by default",
                '10: $.spec.devices[0].basic.attributes: Invalid value: "A-b": a valid C',
            ],
            id="a device of v1beta1",
        ),
        pytest.param(
            CUSTOM,
            "1.37",
            [
                "8: $.spec.template.spec.containers[0].resources.limits: Required value: Limit",
                '8: $.spec.template.spec.containers[0].resources.claims[0]: Not found: "gpu": must',
            ],
            id="the pods of a custom resource",
        ),
        pytest.param(
            "apiversion: v1\nkind: Pod\n",
            "1.37",
            ["1: $.apiversion: is not a Kubernetes object: apiVersion is missing; did you mean"],
            id="apiVersion in small letters",
        ),
        pytest.param(
            "apiVersion: v1\nkind: Pod\nspec: {resourceclaims: [], restartpolicy: Never}\n",
            "1.37",
            [
                "3: $.spec.resourceclaims: unknown field 'resourceclaims'; did you mean resourceCl",
                "3: $.spec.restartpolicy: unknown field 'restartpolicy'; did you mean restartPolic",
            ],
            id="fields in small letters",
        ),
        pytest.param(
            "apiVersion: resource.k8s.io/v1\nkind: DeviceClas\nmetadata: {name: a}\n",
            "1.37",
            ["2: $.kind: unknown kind 'DeviceClas'; did you mean DeviceClass?"],
            id="a kind that is misspelt",
        ),
        pytest.param(
            RULE,
            "1.37",
            ["5: $.spec.deviceSelector: warning: is empty, so that every device of the cluster"],
            id="a rule for every device",
        ),
        pytest.param(
            RULE.replace("{}", "{driver: gpu.example.org}"),
            "1.36",
            ["2: $.kind: warning: DeviceTaintRule is not served, unless the feature gate"],
            id="a kind that is off by default",
        ),
        pytest.param(
            SLICE + "      devices: [{name: a, allowMultipleAllocations: true}]\n",
            "1.35",
            [
                "8: $.spec.devices[0].allowMultipleAllocations: warning: allowMultiple",
            ],
            id="a field that is off by default",
        ),
        pytest.param(
            SLICE + "      devices: [{name: a}]\n      skipNodeOperations: [x]\n",
            "1.36",
            ["9: $.spec.skipNodeOperations: is not in Kubernetes 1.36, which has no feature gate"],
            id="a field of a later minor",
        ),
    ],
)
def test_each_is_said_at_its_place(text: str, kubernetes: str, expected: list[str]) -> None:
    found = lines(text, kubernetes)
    assert len(found) == len(expected), found
    for line, start in zip(found, expected, strict=True):
        assert line.startswith(start), line
