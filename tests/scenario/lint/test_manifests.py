"""Manifests of retired shapes are answered with what replaced each part, at the right line."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent
from typing import NamedTuple

import pytest

from conformance.scenario.documents.yamlfile import (
    Severity,
    format_path,
    parse_documents,
    read_documents,
)
from conformance.scenario.lint.files import lint_documents
from conformance.scenario.lint.objects import standalone_problems

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
            format_path(problem.path),
            problem.message,
            problem.severity,
            document.tell(problem),
        )
        for document in parse_documents(dedent(text).lstrip("\n"), FILE)
        for problem in standalone_problems(document.data)
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


def pod(claims: str, container: str = "{name: c}") -> str:
    lines = ("apiVersion: v1", "kind: Pod", "spec:", f"  resourceClaims: [{claims}]")
    return "\n".join((*lines, f"  containers: [{container}]\n"))


REQUEST = "$.spec.devices.requests[0]"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            RESOURCE_CLASS,
            {
                "$.kind": (":2:", "DeviceClass"),
                "$.driverName": (":5:", 'device.driver == "dra.nvidia.com"'),
                "$.structuredParameters": ("remove it",),
            },
            id="a resource class becomes a device class that selects the driver",
        ),
        pytest.param(
            "apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: gpu.nvidia.com}\n"
            "spec: {driverName: gpu.nvidia.com, suitableNodes: {}}\n",
            {"$.spec.driverName": (), "$.spec.suitableNodes": ()},
            id="a class may hold retired fields in its spec too",
        ),
        pytest.param(
            TEMPLATE_WITH_PARAMETERS_REF,
            {
                "$.apiVersion": ("use resource.k8s.io/v1",),
                "$.spec.spec.resourceClassName": (":8:", "exactly.deviceClassName"),
                "$.spec.spec.parametersRef": ("opaque.parameters",),
            },
            id="where class and parameters of a template go",
        ),
        pytest.param(
            CLAIM_WITH_PARAMETERS,
            {
                "$.apiVersion": (),
                "$.spec.resourceClassName": (),
                "$.spec.parameters": (),
                "$.spec.parameters.count": ("exactly.count",),
                "$.spec.parameters.sharing": (),
                "$.spec.parameters.selector": (":10:",),
                "$.spec.parameters.constraints": ("nodeSelector in the pod",),
            },
            id="where a vendor's parameters go",
        ),
        *(
            pytest.param(
                "apiVersion: resource.k8s.io/v1alpha2\nkind: ResourceClaim\n"
                f"metadata: {{name: training-gpus}}\nspec: {{{field}: x}}\n",
                {"$.apiVersion": (), f"$.spec.{field}": ()},
                id=f"{field} directly in a claim",
            )
            for field in ("count", "sharing", "selector", "shareable", "allocationMode")
        ),
        *(
            pytest.param(
                claim(
                    "v1", f"{{name: g, exactly: {{deviceClassName: g, allocationMode: {mode}}}}}"
                ),
                {f"{REQUEST}.exactly.allocationMode": (f"{mode} is gone",)},
                id=f"{mode} of classic DRA",
            )
            for mode in ("WaitForFirstConsumer", "Immediate")
        ),
        pytest.param(
            claim("v1alpha3", "{name: g, exactly: {deviceClassName: g}}").rstrip()
            + "\n          controller: driver.example.com\n",
            {
                "$.apiVersion": (),
                "$.spec.controller": (":8:", "controller is gone since Kubernetes 1.32"),
            },
            id="who allocates instead of a controller",
        ),
        pytest.param(
            pod(
                "{name: gpu, resourceClaimName: one}",
                "{name: c, resources: {claims: [{name: gpu}, {name: nic}]}}",
            )
            + "  initContainers: [{name: i, resources: {claims: [{name: gpu}]}}]\n",
            {"$.spec.containers[0].resources.claims[1]": (":5:", "resourceClaims: gpu")},
            id="a container names a claim that the pod does not declare",
        ),
        pytest.param(
            pod("{name: gpu, resourceClaimName: one}, {name: gpu, resourceClaimName: two}"),
            {"$.spec.resourceClaims[1].name": ('Duplicate value: "gpu"',)},
            id="a claim of a pod is named twice",
        ),
        pytest.param(
            claim("v1beta1", "{name: gpu, exactly: {deviceClassName: gpu}}"),
            {"$.apiVersion": (), f"{REQUEST}.exactly": ("apiVersion: resource.k8s.io/v1",)},
            id="exactly in v1beta1",
        ),
        pytest.param(
            claim("v1beta1", "{name: gpu}"),
            {"$.apiVersion": (), REQUEST: ("one of `exactly` or `firstAvailable` is required",)},
            id="a flat request without a class",
        ),
        *(
            pytest.param(
                claim(version, request),
                {"$.apiVersion": ("warning: ", "use resource.k8s.io/v1")},
                id=f"a right {version} manifest is only a warning",
            )
            for version, request in (
                ("v1beta1", "{name: gpu, deviceClassName: gpu.nvidia.com}"),
                ("v1beta2", "{name: gpu, exactly: {deviceClassName: gpu.nvidia.com}}"),
            )
        ),
        pytest.param(
            "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {name: c}\n"
            "spec: {devices: {}}\n",
            {"$.spec.devices": ("warning: ",)},
            id="a claim without requests",
        ),
        pytest.param(
            "apiVersion: resource.k8s.io/v1\nkind: ResourceClaimTemplate\n"
            "spec: {devices: {requests: []}}\n",
            {"$.spec.spec": (":3:",), "$.spec.devices": ("unknown field",)},
            id="a template without the spec of a claim",
        ),
        *(
            pytest.param(
                f"apiVersion: resource.k8s.io/v1alpha2\nkind: {kind}\n",
                {"$.kind": (f"$.kind: {kind} is gone",)},
                id=f"{kind} without successor",
            )
            for kind in (
                "PodSchedulingContext",
                "ResourceClaimParameters",
                "ResourceClassParameters",
            )
        ),
        *(
            pytest.param(
                claim(version, "{name: gpu, exactly: {deviceClassName: x}}"),
                {"$.apiVersion": (f"resource.k8s.io/{version}", "use resource.k8s.io/v1")},
                id=f"{version} is not served",
            )
            for version in ("v1alpha1", "v1alpha2", "v1alpha3", "v2")
        ),
        pytest.param(
            "apiVersion: resource.k8s.io/v1alpha2\nkind: ResourceSlice\nnodeName: n\n"
            "driverName: d\nnamedResources: {}\n",
            {"$.apiVersion": (), "$.nodeName": (), "$.driverName": (), "$.namedResources": ()},
            id="where the parts of an old slice go",
        ),
        pytest.param(
            "apiVersion: resource.k8s.io/v1\nkind: ResourceSlice\n"
            "spec: {devices: [{name: gpu-0, basic: {attributes: {}}}]}\n",
            {"$.spec.devices[0].basic": ()},
            id="basic in v1",
        ),
        pytest.param(
            "apiVersion: resource.k8s.io/v1beta1\nkind: ResourceSlice\n"
            "spec: {devices: [{name: gpu-0, attributes: {}}, {name: gpu-1, basic: {}}]}\n",
            {
                "$.apiVersion": ("attributes and capacity directly in each device, without basic",),
                "$.spec.devices[0].attributes": ("below basic",),
            },
            id="no basic in v1beta1",
        ),
        pytest.param(
            "apiVersion: v1\nkind: List\nitems:\n"
            "- {apiVersion: v1, kind: ConfigMap, metadata: {name: x}}\n"
            "- apiVersion: resource.k8s.io/v1alpha2\n  kind: PodSchedulingContext\n",
            {"$.items[1].kind": (":6:",)},
            id="an object in a list has its place",
        ),
    ],
)
def test_each_part_is_told_what_takes_its_place(
    text: str, expected: dict[str, tuple[str, ...]]
) -> None:
    found = by_path(text)
    assert found.keys() == expected.keys()
    for path, said in expected.items():
        assert all(part in str(found[path]) for part in said), found[path]


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
    ("source", "message"),
    [
        ("{name: gpu}", "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"),
        (
            "{name: gpu, resourceClaimName: a, resourceClaimTemplateName: b}",
            "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified",
        ),
    ],
    ids=["neither", "both"],
)
def test_a_pod_claim_needs_exactly_one_source(source: str, message: str) -> None:
    (finding,) = findings(pod(source, "{name: c, resources: {claims: [{name: gpu}]}}"))
    assert (finding.line, finding.path) == (4, "$.spec.resourceClaims[0]")
    assert finding.message.endswith(f": {message}")


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
    ("request_text", "path", "message"),
    [
        ("{name: gpu}", "", "exactly one of `exactly` or `firstAvailable` is required"),
        ("{name: gpu, exactly: {count: 2}}", ".exactly.deviceClassName", "Required value"),
        (
            "{name: gpu, firstAvailable: [{name: a}]}",
            ".firstAvailable[0].deviceClassName",
            "Required value",
        ),
        (
            (
                "{name: g, exactly: {deviceClassName: x}, "
                "firstAvailable: [{name: a, deviceClassName: x}]}"
            ),
            "",
            "but multiple fields are set",
        ),
        ("{exactly: {deviceClassName: x}}", ".name", "must consist of lower case"),
        (
            "{name: gpu, exactly: {deviceClassName: x, allocationMode: Some}}",
            ".exactly.allocationMode",
            'Unsupported value: "Some": supported values: "All", "ExactCount"',
        ),
        (
            "{name: gpu, exactly: {deviceClassName: x, allocationMode: All, count: 2}}",
            ".exactly.count",
            "must not be specified when allocationMode is 'All'",
        ),
    ],
)
def test_requests_that_the_api_refuses_are_found(
    request_text: str, path: str, message: str
) -> None:
    (finding,) = findings(claim("v1", request_text))
    assert finding.path == f"$.spec.devices.requests[0]{path}"
    assert message in finding.message


def test_kinds_that_v1alpha3_still_serves_need_their_gate() -> None:
    request = """
apiVersion: resource.k8s.io/v1alpha3
kind: ResourcePoolStatusRequest
metadata: {name: a}
spec: {driver: d.example.com}
"""
    (finding,) = findings(request)
    assert "DRAResourcePoolStatus is on" in finding.message


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
