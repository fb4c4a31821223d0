"""Manifests of retired shapes are answered with what replaced each part, at the right line."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent
from typing import NamedTuple

import pytest

from conformance.scenario.documents.yamlfile import (
    Severity,
    dotted,
    parse_documents,
    read_documents,
)
from conformance.scenario.lint.files import lint_documents
from conformance.scenario.lint.manifests.retired import manifest_problems

FILE = Path("manifest.yaml")


class Finding(NamedTuple):
    line: int
    path: str
    message: str
    severity: Severity
    text: str

    def __str__(self) -> str:
        return self.text


def findings(text: str) -> list[Finding]:
    return [
        Finding(
            document.line(problem.path),
            dotted(problem.path),
            problem.message,
            problem.severity,
            document.tell(problem),
        )
        for document in parse_documents(dedent(text).lstrip("\n"), FILE)
        for problem in manifest_problems(document.data)
    ]


def by_path(text: str) -> dict[str, Finding]:
    found = findings(text)
    assert len({finding.path for finding in found}) == len(found)
    return {finding.path: finding for finding in found}


RESOURCE_CLASS = """
    apiVersion: resource.k8s.io/v1alpha2
    kind: ResourceClass
    metadata:
      name: nvidia-gpu
    driverName: dra.nvidia.com
    structuredParameters: true
"""

TEMPLATE_WITH_PARAMETERS_REF = """
    apiVersion: resource.k8s.io/v1alpha2
    kind: ResourceClaimTemplate
    metadata: {name: gpu-claim-template}
    spec:
      metadata:
        labels: {app: deep-learning}
      spec:
        resourceClassName: nvidia-gpu
        parametersRef: {kind: GpuConfig, name: v100-high-mem, apiGroup: dra.nvidia.com}
"""

POD_WITH_SOURCE = """
    apiVersion: v1
    kind: Pod
    metadata: {name: model-training-pod}
    spec:
      containers:
      - name: trainer
        image: cuda
        resources: {claims: [{name: gpu-access}]}
      resourceClaims:
      - name: gpu-access
        source:
          resourceClaimTemplateName: gpu-claim-template
"""

CLAIM_WITH_PARAMETERS = """
    apiVersion: resource.k8s.io/v1alpha2
    kind: ResourceClaim
    metadata: {name: training-gpus}
    spec:
      resourceClassName: gpu.nvidia.com
      parameters:
        kind: GpuClaimParameters
        count: 4
        sharing: {}
        selector: {}
        constraints:
        - nodeSelector: {node.kubernetes.io/instance-type: p4d.24xlarge}
"""


def test_a_resource_class_becomes_a_device_class_that_selects_the_driver() -> None:
    found = by_path(RESOURCE_CLASS)
    assert set(found) == {"$.kind", "$.driverName", "$.structuredParameters"}
    assert "DeviceClass" in found["$.kind"].message
    assert found["$.kind"].line == 2
    assert 'device.driver == "dra.nvidia.com"' in found["$.driverName"].message
    assert found["$.driverName"].line == 5
    assert "remove it" in found["$.structuredParameters"].message


def test_a_class_may_hold_retired_fields_in_its_spec_too() -> None:
    found = by_path("""
        apiVersion: resource.k8s.io/v1
        kind: DeviceClass
        metadata: {name: gpu.nvidia.com}
        spec:
          driverName: gpu.nvidia.com
          suitableNodes: {}
    """)
    assert set(found) == {"$.spec.driverName", "$.spec.suitableNodes"}


def test_a_template_of_v1alpha2_is_told_where_class_and_parameters_go() -> None:
    found = by_path(TEMPLATE_WITH_PARAMETERS_REF)
    assert set(found) == {
        "$.apiVersion",
        "$.spec.spec.resourceClassName",
        "$.spec.spec.parametersRef",
    }
    assert "use resource.k8s.io/v1" in found["$.apiVersion"].message
    name = found["$.spec.spec.resourceClassName"]
    assert "exactly.deviceClassName" in name.message
    assert name.line == 8
    assert "opaque.parameters" in found["$.spec.spec.parametersRef"].message


def test_vendor_parameters_in_a_claim_are_each_told_where_they_go() -> None:
    found = by_path(CLAIM_WITH_PARAMETERS)
    assert set(found) == {
        "$.apiVersion",
        "$.spec.resourceClassName",
        "$.spec.parameters",
        "$.spec.parameters.count",
        "$.spec.parameters.sharing",
        "$.spec.parameters.selector",
        "$.spec.parameters.constraints",
    }
    assert "exactly.count" in found["$.spec.parameters.count"].message
    assert "nodeSelector in the pod" in found["$.spec.parameters.constraints"].message
    assert found["$.spec.parameters.selector"].line == 10


@pytest.mark.parametrize("field", ["count", "sharing", "selector", "shareable", "allocationMode"])
def test_retired_fields_directly_in_a_claim_are_found(field: str) -> None:
    found = by_path(f"""
        apiVersion: resource.k8s.io/v1alpha2
        kind: ResourceClaim
        metadata: {{name: training-gpus}}
        spec:
          {field}: x
    """)
    assert set(found) == {"$.apiVersion", f"$.spec.{field}"}


@pytest.mark.parametrize("mode", ["WaitForFirstConsumer", "Immediate"])
def test_allocation_modes_of_classic_dra_are_explained(mode: str) -> None:
    (finding,) = findings(f"""
        apiVersion: resource.k8s.io/v1
        kind: ResourceClaim
        metadata: {{name: c}}
        spec:
          devices:
            requests:
            - name: gpu
              exactly: {{deviceClassName: gpu, allocationMode: {mode}}}
    """)
    assert finding.path == "$.spec.devices.requests[0].exactly.allocationMode"
    assert f"{mode} is gone" in finding.message


def test_source_in_a_pod_is_told_which_field_takes_its_place() -> None:
    (finding,) = findings(POD_WITH_SOURCE)
    assert str(finding) == (
        "manifest.yaml:11: $.spec.resourceClaims[0].source: source is gone since Kubernetes 1.31;"
        " write resourceClaimTemplateName directly beside name"
    )


@pytest.mark.parametrize(
    ("head", "prefix"),
    [
        ("apiVersion: batch/v1\nkind: Job\nspec:\n  template:", "$.spec.template"),
        ("apiVersion: apps/v1\nkind: Deployment\nspec:\n  template:", "$.spec.template"),
        (
            "apiVersion: batch/v1\nkind: CronJob\nspec:\n  jobTemplate: {spec: {template: &t",
            "$.spec.jobTemplate.spec.template",
        ),
        ("apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nspec:\n  template:", "$.spec.template"),
    ],
    ids=["job", "deployment", "cron job", "custom resource"],
)
def test_pod_templates_of_every_workload_are_checked(head: str, prefix: str) -> None:
    pod = (
        "{spec: {containers: [{name: c, resources: {claims: [{name: gpu}]}}],"
        " resourceClaims: [{name: gpu, source: {resourceClaimName: x}}]}}"
    )
    tail = "}}" if "&t" in head else ""
    (finding,) = findings(f"{head} {pod}{tail}\n")
    assert finding.path == f"{prefix}.spec.resourceClaims[0].source"
    assert "resourceClaimName directly" in finding.message


@pytest.mark.parametrize(
    ("claim", "message"),
    [
        ("{name: gpu}", "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"),
        (
            "{name: gpu, resourceClaimName: a, resourceClaimTemplateName: b}",
            "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified",
        ),
    ],
    ids=["neither", "both"],
)
def test_a_pod_claim_needs_exactly_one_source(claim: str, message: str) -> None:
    (finding,) = findings(f"""
        apiVersion: v1
        kind: Pod
        spec:
          resourceClaims: [{claim}]
          containers:
          - {{name: c, resources: {{claims: [{{name: gpu}}]}}}}
    """)
    assert (finding.line, finding.path, finding.message) == (4, "$.spec.resourceClaims[0]", message)


def test_containers_may_only_name_claims_that_the_pod_declares() -> None:
    found = by_path("""
        apiVersion: v1
        kind: Pod
        spec:
          initContainers:
          - {name: i, resources: {claims: [{name: gpu}]}}
          containers:
          - name: c
            resources:
              claims:
              - name: gpu
              - name: nic
          resourceClaims:
          - {name: gpu, resourceClaimName: one}
    """)
    (finding,) = found.values()
    assert finding.path == "$.spec.containers[0].resources.claims[1].name"
    assert finding.line == 11
    assert finding.message.endswith("resourceClaims: gpu")


def test_a_pod_claim_name_given_twice_is_found() -> None:
    (finding,) = findings("""
        apiVersion: v1
        kind: Pod
        spec:
          containers: [{name: c}]
          resourceClaims:
          - {name: gpu, resourceClaimName: one}
          - {name: gpu, resourceClaimName: two}
    """)
    assert finding.path == "$.spec.resourceClaims[1].name"


def claim(version: str, request: str) -> str:
    return f"""
        apiVersion: resource.k8s.io/{version}
        kind: ResourceClaim
        metadata: {{name: c}}
        spec:
          devices:
            requests:
            - {request}
    """


@pytest.mark.parametrize("version", ["v1", "v1beta2"])
def test_a_flat_request_outside_v1beta1_must_move_below_exactly(version: str) -> None:
    found = by_path(claim(version, "{name: gpu, deviceClassName: gpu.nvidia.com, count: 2}"))
    errors = {path for path, finding in found.items() if finding.severity == "error"}
    assert errors == {
        "$.spec.devices.requests[0].deviceClassName",
        "$.spec.devices.requests[0].count",
    }
    assert "below exactly" in found["$.spec.devices.requests[0].count"].message


@pytest.mark.parametrize(
    ("version", "request_text"),
    [
        ("v1beta1", "{name: gpu, deviceClassName: gpu.nvidia.com}"),
        ("v1beta2", "{name: gpu, exactly: {deviceClassName: gpu.nvidia.com}}"),
    ],
)
def test_a_right_beta_manifest_is_only_a_warning(version: str, request_text: str) -> None:
    (finding,) = findings(claim(version, request_text))
    assert finding.path == "$.apiVersion"
    assert finding.severity == "warning"
    assert "warning: " in str(finding)
    assert "use resource.k8s.io/v1" in finding.message


def test_exactly_in_v1beta1_is_refused() -> None:
    found = by_path(claim("v1beta1", "{name: gpu, exactly: {deviceClassName: gpu}}"))
    assert "apiVersion: resource.k8s.io/v1" in found["$.spec.devices.requests[0].exactly"].message


@pytest.mark.parametrize(
    ("request_text", "path", "message"),
    [
        ("{name: gpu}", "", "needs exactly or firstAvailable"),
        ("{name: gpu, exactly: {count: 2}}", ".exactly", "deviceClassName is missing"),
        (
            "{name: gpu, firstAvailable: [{name: a}]}",
            ".firstAvailable[0]",
            "deviceClassName is missing",
        ),
        (
            "{name: gpu, exactly: {deviceClassName: x}, firstAvailable: []}",
            "",
            "exclude each other",
        ),
        ("{exactly: {deviceClassName: x}}", "", "needs a name"),
        (
            "{name: gpu, exactly: {deviceClassName: x, allocationMode: Some}}",
            ".exactly.allocationMode",
            "not one of ExactCount, All",
        ),
        (
            "{name: gpu, exactly: {deviceClassName: x, allocationMode: All, count: 2}}",
            ".exactly.count",
            "no count",
        ),
    ],
)
def test_requests_that_the_api_refuses_are_found(
    request_text: str, path: str, message: str
) -> None:
    (finding,) = findings(claim("v1", request_text))
    assert finding.path == f"$.spec.devices.requests[0]{path}"
    assert message in finding.message


def test_a_missing_class_in_a_flat_v1beta1_request_is_found() -> None:
    found = by_path(claim("v1beta1", "{name: gpu}"))
    assert "deviceClassName is missing" in found["$.spec.devices.requests[0]"].message


def test_a_claim_without_requests_is_a_warning() -> None:
    (finding,) = findings("""
        apiVersion: resource.k8s.io/v1
        kind: ResourceClaim
        spec: {devices: {}}
    """)
    assert (finding.path, finding.severity) == ("$.spec.devices", "warning")


def test_a_claim_without_spec_is_found() -> None:
    (finding,) = findings("""
        apiVersion: resource.k8s.io/v1
        kind: ResourceClaimTemplate
        spec: {devices: {requests: []}}
    """)
    assert finding.path == "$.spec.spec"
    assert finding.line == 3


@pytest.mark.parametrize(
    "kind", ["PodSchedulingContext", "ResourceClaimParameters", "ResourceClassParameters"]
)
def test_kinds_without_successor_are_named(kind: str) -> None:
    (finding,) = findings(f"apiVersion: resource.k8s.io/v1alpha2\nkind: {kind}\n")
    assert finding.path == "$.kind"
    assert finding.message.startswith(f"{kind} is gone")


@pytest.mark.parametrize("version", ["v1alpha1", "v1alpha2", "v1alpha3", "v2"])
def test_versions_that_are_not_served_are_named(version: str) -> None:
    (finding,) = findings(claim(version, "{name: gpu, exactly: {deviceClassName: x}}"))
    assert finding.path == "$.apiVersion"
    assert f"resource.k8s.io/{version}" in finding.message
    assert finding.message.endswith("use resource.k8s.io/v1")


def test_kinds_that_v1alpha3_still_serves_are_left_alone() -> None:
    assert findings("apiVersion: resource.k8s.io/v1alpha3\nkind: ResourcePoolStatusRequest\n") == []


def test_slices_of_older_versions_are_told_where_their_parts_go() -> None:
    old = by_path("""
        apiVersion: resource.k8s.io/v1alpha2
        kind: ResourceSlice
        nodeName: n
        driverName: d
        namedResources: {}
    """)
    assert set(old) == {"$.apiVersion", "$.nodeName", "$.driverName", "$.namedResources"}
    (basic,) = findings("""
        apiVersion: resource.k8s.io/v1
        kind: ResourceSlice
        spec: {devices: [{name: gpu-0, basic: {attributes: {}}}]}
    """)
    assert basic.path == "$.spec.devices[0].basic"
    flat = by_path("""
        apiVersion: resource.k8s.io/v1beta1
        kind: ResourceSlice
        spec: {devices: [{name: gpu-0, attributes: {}}, {name: gpu-1, basic: {}}]}
    """)
    assert set(flat) == {"$.apiVersion", "$.spec.devices[0]"}


def test_objects_in_a_list_are_checked_with_their_place() -> None:
    (finding,) = findings("""
        apiVersion: v1
        kind: List
        items:
        - {apiVersion: v1, kind: ConfigMap, metadata: {name: x}}
        - apiVersion: resource.k8s.io/v1alpha2
          kind: PodSchedulingContext
    """)
    assert (finding.path, finding.line) == ("$.items[1].kind", 6)


def test_several_documents_of_a_file_keep_their_lines() -> None:
    text = dedent(RESOURCE_CLASS).lstrip("\n") + "---\n" + dedent(POD_WITH_SOURCE).lstrip("\n")
    assert [(finding.line, finding.path) for finding in findings(text)] == [
        (2, "$.kind"),
        (5, "$.driverName"),
        (6, "$.structuredParameters"),
        (18, "$.spec.resourceClaims[0].source"),
    ]


def test_what_uses_dra_rightly_or_not_at_all_is_not_complained_about() -> None:
    assert (
        findings("""
        apiVersion: resource.k8s.io/v1
        kind: DeviceClass
        metadata: {name: gpu.example.com}
        spec:
          selectors:
          - cel: {expression: device.driver == "gpu.example.com"}
        ---
        apiVersion: resource.k8s.io/v1
        kind: ResourceClaimTemplate
        metadata: {name: single-gpu}
        spec:
          spec:
            devices:
              requests:
              - name: gpu
                exactly: {deviceClassName: gpu.example.com}
              - name: any
                firstAvailable: [{name: a, deviceClassName: gpu.example.com}]
        ---
        apiVersion: v1
        kind: Pod
        metadata: {name: pod0}
        spec:
          containers:
          - {name: ctr0, resources: {claims: [{name: gpu, request: gpu}]}}
          - {name: ctr1, resources: {limits: {nvidia.com/gpu: 1}}}
          resourceClaims:
          - {name: gpu, resourceClaimTemplateName: single-gpu}
        ---
        apiVersion: scheduling.x-k8s.io/v1alpha1
        kind: PodGroup
        spec: {minMember: 8}
    """)
        == []
    )


@pytest.mark.parametrize("text", ["- a\n- b\n", "just text\n", "kind: Pod\n", "apiVersion: v1\n"])
def test_what_is_no_kubernetes_object_is_said_once(text: str) -> None:
    (finding,) = findings(text)
    assert "is not a Kubernetes object" in finding.message


@pytest.mark.parametrize(
    "text",
    [
        "apiVersion: v1\nkind: Pod\nspec: {containers: [{resources: 1}], resourceClaims: [1]}\n",
        "apiVersion: v1\nkind: Pod\nspec: {containers: 3, resourceClaims: {a: b}}\n",
        "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nspec: {devices: [1]}\n",
        "apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nspec: []\n",
        "apiVersion: v1\nkind: List\nitems: [1]\n",
        "apiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nspec: {devices: [null]}\n",
    ],
)
def test_shapes_that_no_manifest_has_do_not_break_the_check(text: str) -> None:
    assert all(isinstance(finding, Finding) for finding in findings(text))


def test_a_claim_with_a_controller_is_told_who_allocates_now() -> None:
    found = by_path("""
        apiVersion: resource.k8s.io/v1alpha3
        kind: ResourceClaim
        metadata: {name: old}
        spec:
          controller: driver.example.com
          devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu}}]}
        """)
    assert found["$.spec.controller"].line == 5
    assert "controller is gone since Kubernetes 1.32" in found["$.spec.controller"].message


def test_moving_a_beta_slice_is_told_in_the_words_of_slices() -> None:
    [finding] = findings("""
        apiVersion: resource.k8s.io/v1beta1
        kind: ResourceSlice
        metadata: {name: slice}
        spec: {driver: d.example.com, devices: [{name: gpu-0, basic: {}}]}
        """)
    assert finding.message.endswith(
        "attributes and capacity directly in each device, without basic"
    )
    assert "exactly" not in finding.message


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        (
            "{selectors: [{cel: {expression: device.drivr == 1}}]}",
            ":4: $.spec.selectors[0].cel.expression: is not valid CEL: undefined field 'drivr'",
        ),
        ("{selctors: []}", ":4: $.spec.selctors: unknown field 'selctors'; did you mean selectors"),
        ("{driverName: x}", ":4: $.spec.driverName: driverName is gone since Kubernetes 1.31"),
    ],
)
def test_a_manifest_that_is_no_part_of_a_scenario_is_read_as_the_api_server_does(
    spec: str, says: str, tmp_path: Path
) -> None:
    file = tmp_path / "class.yaml"
    head = "apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: gpu}\n"
    file.write_text(f"{head}spec: {spec}\n", encoding="utf-8")
    [line] = (item.text for item in lint_documents(read_documents(file)))
    assert line.startswith(f"{file}{says}")
