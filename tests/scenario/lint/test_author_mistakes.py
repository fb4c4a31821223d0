"""A mistake of a scenario's author is found before anything runs, by run and by lint."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.scenario.documents.yamlfile import read_documents
from conformance.scenario.lint.files import lint_documents
from conformance.scenario.lint.objects import CHOICES
from conformance.scenario.loader import load_scenarios
from kube.base.errors import ExitCode, UsageError
from reference_allocator.api.schema import types

NODE = """\
apiVersion: dra-conformance/v1
kind: Scenario
metadata: {name: given}
spec:
  summary: Containers see the devices of the claims that they name.
  level: core
  feature: ResourceClaim
  tier: node
  requires:
    {devices: 3, devicesOnOneNode: 2, abilities: [cdi, device-health, "fault:kubelet"],
      attributes: [uuid], config: [timeSlicing], traits: [cdiPerClaim]}
  references: [https://kep.k8s.io/4381]
  steps:
  - apply:
    - apiVersion: resource.k8s.io/v1
      kind: ResourceClaim
      metadata: {name: shared}
      spec:
        devices:
          requests:
          - name: gpu
            exactly: {deviceClassName: "${class.gpu}", count: 1}
          constraints:
          - {requests: [gpu], matchAttribute: "${driver}/${attribute.uuid}"}
          config:
          - opaque: {driver: "${driver}", parameters: "${config.timeSlicing}"}
    - apiVersion: resource.k8s.io/v1
      kind: ResourceClaimTemplate
      metadata: {name: own}
      spec:
        spec:
          devices:
            requests:
            - name: any
              firstAvailable:
              - {name: large, deviceClassName: "${class.gpu}", count: 2}
              - {name: small, deviceClassName: "${class.gpu}"}
    - apiVersion: v1
      kind: Pod
      metadata: {name: pod0}
      spec:
        containers:
        - name: ctr0
          image: ${image}
          command: ${probe.hold}
          resources: {claims: [{name: from-claim, request: gpu}]}
        - name: ctr1
          image: ${image}
          command: ${probe.hold}
          resources: {claims: [{name: from-template, request: any}]}
        resourceClaims:
        - {name: from-claim, resourceClaimName: shared}
        - {name: from-template, resourceClaimTemplateName: own}
    - apiVersion: batch/v1
      kind: Job
      metadata: {name: job0}
      spec:
        template:
          spec:
            restartPolicy: Never
            containers:
            - name: work
              image: ${image}
              command: ${probe.exit}
              resources: {claims: [{name: lent}]}
            resourceClaims:
            - {name: lent, resourceClaimName: shared}
  - expect:
    - {pod: pod0, phase: Running}
    - devices: {seenBy: [pod0/ctr0], allocatedTo: {claim: shared, request: gpu}}
    - devices: {seenBy: [pod0/ctr1], allocatedTo: {podClaim: from-template, request: any}}
    - devices: {pods: {job: job0}, containers: [work], count: 1}
    - devices: {seenBy: [job0-of-any-suffix/work], count: 1}
    - environment: {seenBy: [pod0/ctr0], config: timeSlicing}
    - cdi: {pod: pod0, claim: from-claim, present: true}
    - object: {kind: ResourceClaim, ownedBy: pod0, podClaim: from-template}
      match: {status: {reservedFor: [{name: pod0}]}}
    - event: {name: pod0, reason: Scheduled}
  - patch: {kind: ResourceClaim, name: shared, patch: {metadata: {labels: {a: b}}}}
  - fault: {component: kubelet}
  - stimulate: {claim: shared, request: gpu, health: Unhealthy}
  - delete: [{kind: Pod, name: pod0}]
  - expect:
    - none: {kind: Pod, name: pod0}
"""

ALLOCATION = """\
apiVersion: dra-conformance/v1
kind: Scenario
metadata: {name: given}
spec:
  summary: Pods are scheduled to the node with the device, or wait.
  level: core
  feature: ResourceClaim
  tier: allocation
  references: [https://kep.k8s.io/4381]
  nodes: [left, right]
  steps:
  - apply:
    - apiVersion: resource.k8s.io/v1
      kind: DeviceClass
      metadata: {name: "${class.gpu}"}
      spec: {selectors: [{cel: {expression: 'device.driver == "${driver}"'}}]}
    - apiVersion: resource.k8s.io/v1
      kind: ResourceSlice
      metadata: {name: "${name.slice}"}
      spec:
        driver: ${driver}
        nodeName: ${node.left}
        pool: {name: "${node.left}", generation: 1, resourceSliceCount: 1}
        devices: [{name: gpu-0, capacity: {memory: {value: 16Gi}}}]
    - apiVersion: resource.k8s.io/v1
      kind: ResourceClaim
      metadata: {name: first}
      spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: "${class.gpu}"}}]}}
    - apiVersion: v1
      kind: Pod
      metadata: {name: lucky}
      spec:
        containers: [{name: ctr0, image: "${image}", resources: {claims: [{name: gpu}]}}]
        resourceClaims: [{name: gpu, resourceClaimName: first}]
    - apiVersion: v1
      kind: Pod
      metadata: {name: unlucky}
      spec:
        containers: [{name: ctr0, image: "${image}", resources: {claims: [{name: gpu}]}}]
        resourceClaims: [{name: gpu, resourceClaimName: this-one-is-absent}]
  - expect:
    - {pod: lucky, node: "${node.left}"}
    - {pod: unlucky, scheduled: false}
    - object: {kind: ResourceSlice, name: "${name.slice}"}
      cel: ["object.spec.driver == '${driver}'", size(object.spec.devices) == 1]
    - object: {kind: ResourceSlice, name: "${name.slice}"}
      cel: "!has(object.spec.basic) && 'object.nothing' != ''"
    - {objects: {kind: ResourceSlice}, cel: "objects.all(one, one.spec.driver == '${driver}')"}
    - rejected:
        object: {apiVersion: v1, kind: Pod, metadata: {name: refused}, spec: {contain: []}}
        reason: BadRequest
        message: unknown field "spec.contain"
    - none: {kind: Pod, name: refused}
"""

GIVEN = {"node": NODE, "allocation": ALLOCATION}


def write(tmp_path: Path, text: str, name: str = "given.yaml") -> Path:
    file = tmp_path / name
    file.write_text(text, encoding="utf-8")
    return file


@pytest.mark.parametrize("tier", GIVEN)
def test_a_right_scenario_is_not_complained_about(tier: str, tmp_path: Path) -> None:
    file = write(tmp_path, GIVEN[tier])
    assert [item.id for item in load_scenarios([file])] == ["given"]
    assert lint_documents(read_documents(file)) == []


FIRST = "resourceClaimName: first}]\n"


def on(node: str) -> str:
    """The field of a pod by which it is on a node, as `on` writes it."""
    terms = f'[{{matchFields: [{{key: metadata.name, operator: In, values: ["{node}"]}}]}}]'
    required = f"requiredDuringSchedulingIgnoredDuringExecution: {{nodeSelectorTerms: {terms}}}"
    return f"        affinity: {{nodeAffinity: {{{required}}}}}\n"


IN_NODE_TIER = [
    # Variables.
    ("image: ${image}", "image: ${imgae}", "did you mean ${image}?"),
    ('"${class.gpu}", count: 1', '"${clas.gpu}", count: 1', "did you mean ${class.gpu}?"),
    ('"${class.gpu}", count: 1', '"${class.g", count: 1', "a variable is not closed"),
    ("command: ${probe.exit}", "command: ${probe.exi}", "did you mean ${probe.exit}?"),
    ("labels: {a: b}", 'labels: {"${x}": b}', "unknown variable ${x}; known are"),
    ("phase: Running", 'node: "${node.left}"', "hollow nodes are for the allocation tier"),
    (", config: [timeSlicing]", "", "because not every driver profile has it"),
    ("attributes: [uuid], ", "", "needs requires: {attributes: [uuid]}, because not every"),
    ("image: ${image}", "image: ${capacity.memory}", "requires: {capacity: [memory]}"),
    (
        "environment: {seenBy: [pod0/ctr0], config: timeSlicing}",
        "hardware: {seenBy: [pod0/ctr0], count: 1}",
        "containers show their hardware in the device tier; use tier: device",
    ),
    # Names outside manifests.
    ("{pod: pod0, phase", "{pod: podX, phase", "makes Pod 'podX'; did you mean pod0?"),
    ("seenBy: [pod0/ctr0], al", "seenBy: [podX/ctr0], al", "makes Pod 'podX'"),
    ("seenBy: [pod0/ctr0], al", "seenBy: [pod0/ctrX], al", "no container 'ctrX'; did you"),
    ("[job0-of-any-suffix/work]", "[job0-of-any-suffix/wrk]", "no container 'wrk'"),
    ("[job0-of-any-suffix/work]", "[job1-of-any-suffix/work]", "no step makes Pod 'job1"),
    ("seenBy: [pod0/ctr0], con", "seenBy: [pod0/ctrX], con", "no container 'ctrX'"),
    ("{claim: shared, req", "{claim: shred, req", "did you mean shared?"),
    ("shared, request: gpu", "shared, request: gpus", "no request 'gpus'; did you mean gpu?"),
    ("te, request: any}}", "te, request: any/large}}", "no request 'any/large'"),
    ("{podClaim: from-template, r", "{podClaim: from-tmplate, r", "did you mean from-temp"),
    ("{job: job0}", "{job: jobb}", "no step makes Job 'jobb'; did you mean job0?"),
    (
        "delete: [{kind: Pod, name: pod0",
        "delete: [{kind: Deployment, name: pod0",
        "no step makes Deployment 'pod0'",
    ),
    ("containers: [work]", "containers: [wrok]", "no container 'wrok'; did you mean work?"),
    ("config: timeSlicing}", "config: timeSlice}", "not every driver profile has the conf"),
    ("cdi: {pod: pod0, cl", "cdi: {pod: pod1, cl", "no step makes Pod 'pod1'"),
    ("claim: from-claim, present", "claim: from-clam, present", "did you mean from-claim?"),
    ("ownedBy: pod0, pod", "ownedBy: pod1, pod", "no step makes 'pod1'; did you mean pod0"),
    ("ownedBy: pod0, pod", "ownedBy: group0, pod", "no step makes 'group0'; known: job0, pod0"),
    ("podClaim: from-template}", "podClaim: from-templ}", "did you mean from-template?"),
    ("event: {name: pod0", "event: {name: pod1", "no step makes Pod 'pod1'"),
    ("kind: ResourceClaim, name: sh", "kind: ResourceClaim, name: h", "did you mean shared"),
    ("delete: [{kind: Pod, name: pod0", "delete: [{kind: Pod, name: pod1", "makes Pod 'pod"),
    ("none: {kind: Pod, name: pod0}", "none: {kind: Pod, name: po0}", "did you mean pod0?"),
    ("none: {kind: Pod", "none: {kind: Podd", "unknown kind 'Podd'; did you mean Pod?"),
    # Names inside manifests.
    ("resourceClaimName: shared}\n        -", "resourceClaimName: shard}\n        -", "d?"),
    ("{name: lent, resourceClaimName: shared", "{name: lent, resourceClaimName: s", "no st"),
    ("resourceClaimTemplateName: own", "resourceClaimTemplateName: ow", "did you mean own?"),
    ("from-claim, request: gpu", "from-claim, request: gp", "has no request 'gp'; did you"),
    ("requests: [gpu]", "requests: [gp]", "has no request 'gp'; did you mean gpu?"),
    ("[{name: from-claim, req", "[{name: from-clam, req", "must be one of the names in pod.spec"),
    ("metadata: {name: job0}", "metadata: {name: Job_0}", "'Job_0' is not a valid name"),
    ("metadata: {name: job0}", "metadata: {labels: {}}", "is required but missing"),
    # Fields of manifests, patches and matches.
    ("metadata: {name: pod0}", "metadata: {name: pod0, nam: x}", "'nam'; did you mean name?"),
    ("resourceClaimTemplateName: own", "resourceClaimTemplateNam: own", "did you mean reso"),
    ("count: 1}", "cuont: 1}", "unknown field 'cuont'; did you mean count?"),
    ("count: 1}", "count: one}", "must be a whole number, is 'one'"),
    ("command: ${probe.exit}", "command: ${image}", "must be a list, is '${image}'"),
    ("restartPolicy: Never", "restartPolcy: Never", "did you mean restartPolicy?"),
    ("reservedFor: [", "reservdFor: [", "unknown field 'reservdFor'; did you mean"),
    ("labels: {a: b}", "lables: {a: b}", "unknown field 'lables'; did you mean labels?"),
    ("restartPolicy: Never", "restartPolicy: never", "did you mean Never?"),
    # Kinds and versions.
    ("kind: Job", "kind: Jobb", "unknown kind 'Jobb'; did you mean Job?"),
    ("apiVersion: batch/v1", "apiVersion: batch/v2", "write apiVersion: batch/v1"),
    ("    - apiVersion: batch/v1\n", "    - a: b\n", "is required but missing, or not text"),
    ("none: {kind: Pod", "none: {kind: Pxd", "unknown kind 'Pxd'; did you mean Pod?"),
    # Needs.
    ("devices: 3, devicesOnOneNode: 2, ", "", "say how many it needs"),
    ("traits: [cdiPerClaim]", "", "add requires: {traits: [cdiPerClaim]}"),
    ("devicesOnOneNode: 2, ", "", "say so: {devicesOnOneNode: 2}"),
    ("${image}", "${worker.nmae}", "did you mean ${worker.name}?"),
    ("${image}", "${worker.selector}", "requires: {abilities: [distinct-devices]}"),
    ("[cdi, ", "[", "add requires: {abilities: ['cdi']}"),
    ("device-health, ", "", "add requires: {abilities: ['device-health']}"),
    ("stimulate: {claim: shared", "stimulate: {claim: sharde", "did you mean shared?"),
    ("request: gpu, health", "request: gup, health", "did you mean gpu?"),
    ("{claim: shared, request: gpu, health", "{health", "say of which claim"),
    ("health: Unhealthy", "health: unhealthy", "did you mean Unhealthy?"),
    ("component: kubelet", "component: scheduler", "abilities: ['fault:scheduler']"),
    ("component: kubelet", "component: kubelet, action: replace", "only a driver has a next"),
    ("component: kubelet", "component: kubelet, featureGates: {G: false}", "['feature-gates']"),
    ("component: kubelet", "component: kubelet, featureGates: {G: false}", "{featureGates: [G]}"),
    ("component: kubelet", "component: driver, featureGates: {G: false}", "featureGates are of"),
    (
        "component: kubelet",
        "component: kubelet, action: stop, featureGates: {G: false}",
        "go with action: restart",
    ),
    (
        "component: kubelet",
        "component: driver, action: replace",
        "add requires: {traits: [rollingUpdate]}",
    ),
]

IN_ALLOCATION_TIER = [
    # Variables.
    ("nodeName: ${node.left}", "nodeName: ${node.lft}", "did you mean left?"),
    ("driver: ${driver}", "driver: ${attribute.uuid}", "write the value itself"),
    ("nodes: [left, right]", "nodes: [left, Right]", "'Right' is not a valid name"),
    ("nodes: [left, right]", "nodes: [left, left]", "'left' is given twice"),
    ('{name: "${name.slice}"}', '{name: "${name.Slice}"}', "'Slice' is not a valid"),
    # Names outside manifests.
    ('node: "${node.left}"', "node: left", "write ${node.left}"),
    ('Slice, name: "${name.slice}"', 'Slice, name: "${name.slic}"', "did you mean"),
    ("{pod: lucky,", "{pod: refused,", "expected to be rejected, so it is never the"),
    # Names inside manifests.
    (FIRST, FIRST + on("left"), "write ${node.left}"),
    (FIRST, FIRST + on("${node.lft}"), "did you mean left"),
    (FIRST, FIRST + on("other"), "makes Node 'other'; kno"),
    ('Name: "${class.gpu}"}}', 'Name: "${class.gppu}"}}', "mean ${class.gpu}?"),
    ("resourceClaimName: first}", "resourceClaimName: frst}", "did you mean first?"),
    ("resourceClaimName: this-one-is-absent", "resourceClaimName: firts", "first?"),
    # Fields of manifests, patches and matches.
    ("{value: 16Gi}", "{value: 16GiB}", "must be a quantity like 4 or 16Gi"),
    (
        "memory: {value: 16Gi}}",
        "m: {value: 1}}, taints: [{key: a/b, effect: NoSchedul}]",
        "did you mean NoSchedule?",
    ),
    # Kinds and versions.
    ("kind: DeviceClass", "kind: xeviceClass", "did you mean DeviceClass?"),
    # Refusals.
    ('field "spec.contain"', 'field "spec.containers"', "not what the refusal is"),
    ("metadata: {name: refused}", "metadata: {nam: refused}", "this is not what the"),
    ("Pod, metadata: {name: ref", "Podd, metadata: {name: ref", "mean Pod? (this is"),
    ("{apiVersion: v1, kind: Pod, m", "{kind: Pod, m", "needs apiVersion and kind"),
    ("reason: BadRequest", "reason: BedRequest", "did you mean BadRequest?"),
    ("scheduled: false}", "pending: {reason: Unscheduled}}", "Unschedulable?"),
    # Expressions.
    ("device.driver == ", "device.driver = ", "is not valid CEL: Syntax error"),
    ("device.driver == ", "devic.driver == ", "undeclared reference to 'devic'"),
    ('["object.spec', '["objct.spec', "undeclared reference to 'objct'"),
    ('["object.spec.driver', '["object.spec.diver', "'diver'; did you mean driver?"),
    ("== 1]", "== 1, \"object.spec.devices[0].nam == ''\"]", "did you mean name?"),
    ("== 1]", "== 1, '!has(object.spec.drivr)']", "did you mean driver?"),
    ("size(object.spec", "sizee(object.spec", "undeclared reference to 'sizee'"),
    ('"objects.all(one', '"object.all(one', "undeclared reference to 'object'"),
    # Needs.
    ("${driver}", "${worker.name}", "in the allocation tier no driver profile"),
    ("scheduled: false}", "phase: Running}", "no pod runs in the allocation tier"),
]

IN_EITHER_TIER = [
    *(("node", *row) for row in IN_NODE_TIER),
    *(("allocation", *row) for row in IN_ALLOCATION_TIER),
]


def test_the_fields_with_few_values_are_fields_of_the_api() -> None:
    fields = {(owner.rpartition(".")[2], field) for owner in types() for field in types()[owner]}
    assert {(owner, field) for owner in CHOICES for field in CHOICES[owner]} <= fields


@pytest.mark.parametrize(("tier", "old", "new", "says"), IN_EITHER_TIER)
def test_a_mistake_is_found_when_the_file_is_loaded_and_when_it_is_linted(
    tier: str, old: str, new: str, says: str, tmp_path: Path
) -> None:
    text = GIVEN[tier]
    assert old in text
    file = write(tmp_path, text.replace(old, new, 1))
    with pytest.raises(UsageError) as error:
        load_scenarios([file])
    lines = str(error.value).splitlines()
    assert any(says in line for line in lines), lines
    assert all(line.startswith(f"{file}:") and ": $" in line for line in lines)
    assert error.value.exit_code is ExitCode.USAGE
    assert [item.text for item in lint_documents(read_documents(file)) if item.error] == lines


def test_the_place_of_a_mistake_is_its_line_and_its_path(tmp_path: Path) -> None:
    file = write(tmp_path, NODE.replace("restartPolicy", "restartPolcy"))
    with pytest.raises(UsageError) as error:
        load_scenarios([file])
    where = f"{file}:60: $.spec.steps[0].apply[3].spec.template.spec.restartPolcy: "
    assert str(error.value).startswith(where)


def test_every_mistake_of_a_scenario_is_said_at_once_by_line(tmp_path: Path) -> None:
    text = NODE.replace("count: 1}", "cuont: 1}", 1).replace("{pod: pod0,", "{pod: podX,", 1)
    file = write(tmp_path, text.replace("ResourceClaim\n  tier", "Resourceclaims\n  tier"))
    with pytest.raises(UsageError) as error:
        load_scenarios([file])
    assert [line.split(": ")[1] for line in str(error.value).splitlines()] == [
        "$.spec.feature",
        "$.spec.steps[0].apply[0].spec.devices.requests[0].exactly.cuont",
        "$.spec.steps[1].expect[0].pod",
    ]


def test_an_expectation_before_the_step_that_makes_its_object_is_found(tmp_path: Path) -> None:
    head, _, rest = NODE.partition("  - apply:\n")
    early = f"{head}  - expect:\n    - {{pod: pod0, phase: Running}}\n  - apply:\n{rest}"
    with pytest.raises(UsageError, match="Pod 'pod0' is only made by step 1, after this one"):
        load_scenarios([write(tmp_path, early)])


AGAIN = """\
  - apply:
    - {apiVersion: v1, kind: Pod, metadata: {name: pod0}, spec: {containers: [{name: ctr0}]}}
"""


def test_an_object_that_is_made_twice_is_found(tmp_path: Path) -> None:
    twice = NODE.replace("  - delete: [{kind: Pod, name: pod0}]\n", AGAIN)
    with pytest.raises(UsageError, match="Pod 'pod0' is made by step 0 already"):
        load_scenarios([write(tmp_path, twice)])


def test_an_object_may_be_made_again_after_it_was_deleted(tmp_path: Path) -> None:
    assert load_scenarios([write(tmp_path, NODE + AGAIN)])


BETA = """\
  - apply:
    - apiVersion: resource.k8s.io/v1beta1
      kind: ResourceClaim
      metadata: {name: old}
      spec: {devices: {requests: [{name: gpu, deviceClassName: "${class.gpu}"}]}}
"""


def test_an_api_that_is_off_by_default_must_be_required(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"add requires: \{apis: \[resource\.k8s\.io/v1beta1\]\}"):
        load_scenarios([write(tmp_path, NODE + BETA)])
    named = (NODE + BETA).replace("{devices: 3,", "{devices: 3, apis: [resource.k8s.io/v1beta1],")
    assert load_scenarios([write(tmp_path, named)])
    flat = named.replace("gpu, deviceClassName", "gpu, deviceClassNam")
    with pytest.raises(UsageError, match="unknown field 'deviceClassNam'"):
        load_scenarios([write(tmp_path, flat)])


def test_a_manifest_of_a_retired_version_is_told_what_replaced_it(tmp_path: Path) -> None:
    old = (NODE + BETA).replace("v1beta1", "v1alpha2")
    with pytest.raises(UsageError, match=r"resource\.k8s\.io/v1alpha2 is not served since"):
        load_scenarios([write(tmp_path, old)])


@pytest.mark.parametrize(
    ("old", "new", "error", "says"),
    [
        ("${class.gpu}", "${class.gppu}", True, "unknown variable ${class.gppu}: did you mean gpu"),
        (
            "${class.gpu}",
            "${class.fpga}",
            False,
            "warning: variable ${class.fpga} is in no shipped",
        ),
        ("timeSlicing", "timeSlcing", True, "unknown config timeSlcing: did you mean timeSlicing?"),
    ],
)
def test_lint_compares_names_of_the_profile_with_the_shipped_ones(
    old: str, new: str, error: bool, says: str, tmp_path: Path
) -> None:
    found = lint_documents(read_documents(write(tmp_path, NODE.replace(old, new))))
    assert {item.error for item in found} == {error}
    assert any(says in item.text for item in found)


def test_lint_finds_two_scenarios_in_one_file_and_a_name_that_is_not_the_files(
    tmp_path: Path,
) -> None:
    both = write(tmp_path, f"{NODE}---\n{ALLOCATION}")
    line = NODE.count("\n") + 2
    assert [item.text for item in lint_documents(read_documents(both))] == [
        f"{both}:{line}: has 2 documents; one file holds one scenario"
    ]
    other = write(tmp_path, NODE, "other.yaml")
    [found] = lint_documents(read_documents(other))
    assert found.text.startswith(f"{other}:3: $.metadata.name: is 'given', but the file is called")


def test_a_pod_that_is_expected_to_wait_may_want_more_than_there_is(tmp_path: Path) -> None:
    text = NODE.replace("devicesOnOneNode: 2, ", "")
    waits = "  - expect:\n    - {pod: pod0, scheduled: false}\n"
    assert load_scenarios([write(tmp_path, text + waits)])
