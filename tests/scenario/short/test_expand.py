"""What is written in short is what it would be in full, and mistakes are told where they stand."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from conformance.cli.commands.schema import make_model_schema
from conformance.scenario.documents.validate import InvalidDocumentError
from conformance.scenario.documents.yamlfile import Document, Problem, parse_documents
from conformance.scenario.short.expand import MANIFEST_PATHS, expand_document

FILE = Path("given.yaml")
FRAME = """\
spec:
  tier: {tier}
  steps:
  - apply:
{apply}
"""


def document(apply: str, tier: str = "allocation") -> Document:
    lines = "\n".join(f"    {line}" for line in apply.strip().splitlines())
    [found] = parse_documents(FRAME.format(tier=tier, apply=lines), FILE)
    return found


def applied(apply: str, tier: str = "allocation") -> list[Any]:
    found: list[Any] = expand_document(document(apply, tier)).data["spec"]["steps"][0]["apply"]
    return found


def refused(apply: str) -> str:
    with pytest.raises(InvalidDocumentError) as caught:
        expand_document(document(apply))
    return str(caught.value)


CLASS = {"deviceClassName": "${class.gpu}"}
SAME = {
    "a class is of the driver": (
        '- class: "${class.gpu}"',
        """
        apiVersion: resource.k8s.io/v1
        kind: DeviceClass
        metadata: {name: "${class.gpu}"}
        spec: {selectors: [{cel: {expression: 'device.driver == "${driver}"'}}]}
        """,
    ),
    "a slice is of one node": (
        """
        - slice: s
          nodeName: ${node.a}
          pool: {generation: 2}
          devices: [a, {name: b, attributes: {size: big, n: 3, ok: true, v: {version: 1.0.0}},
            capacity: {memory: 4Gi}, consumesCounters: [{counterSet: c, counters: {x: "1"}}]}]
        """,
        """
        apiVersion: resource.k8s.io/v1
        kind: ResourceSlice
        metadata: {name: s}
        spec:
          driver: ${driver}
          nodeName: ${node.a}
          pool: {name: "${node.a}", generation: 2, resourceSliceCount: 1}
          devices:
          - name: a
          - name: b
            attributes: {size: {string: big}, n: {int: 3}, ok: {bool: true}, v: {version: 1.0.0}}
            capacity: {memory: {value: 4Gi}}
            consumesCounters: [{counterSet: c, counters: {x: {value: "1"}}}]
        """,
    ),
    "a pool of many nodes has its own name": (
        "- {slice: s, allNodes: true, pool: {name: fabric}, devices: [a]}",
        """
        apiVersion: resource.k8s.io/v1
        kind: ResourceSlice
        metadata: {name: s}
        spec:
          driver: ${driver}
          allNodes: true
          pool: {name: fabric, generation: 1, resourceSliceCount: 1}
          devices: [{name: a}]
        """,
    ),
    "a claim is for one device": (
        "- {claim: one, metadata: {labels: {a: b}}}",
        """
        apiVersion: resource.k8s.io/v1
        kind: ResourceClaim
        metadata: {name: one, labels: {a: b}}
        spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: "${class.gpu}"}}]}}
        """,
    ),
    "requests name a class only if it is another": (
        """
        - template: t
          requests:
          - a
          - {name: b, exactly: {count: 2, selectors: [device.driver == "x"]}}
          - {name: c, firstAvailable: [{name: d, deviceClassName: other}, {name: e}]}
        """,
        """
        apiVersion: resource.k8s.io/v1
        kind: ResourceClaimTemplate
        metadata: {name: t}
        spec:
          spec:
            devices:
              requests:
              - {name: a, exactly: {deviceClassName: "${class.gpu}"}}
              - name: b
                exactly:
                  deviceClassName: "${class.gpu}"
                  count: 2
                  selectors: [{cel: {expression: device.driver == "x"}}]
              - name: c
                firstAvailable:
                - {name: d, deviceClassName: other}
                - {name: e, deviceClassName: "${class.gpu}"}
        """,
    ),
    "requests of a version before v1 are flat": (
        "- {claim: c, apiVersion: resource.k8s.io/v1beta1, requests: [gpu]}",
        """
        apiVersion: resource.k8s.io/v1beta1
        kind: ResourceClaim
        metadata: {name: c}
        spec: {devices: {requests: [{name: gpu, deviceClassName: "${class.gpu}"}]}}
        """,
    ),
    "containers use the claims of their pod, if they do not say which": (
        """
        - pod: p
          tolerations: null
          initContainers: [first]
          containers:
          - {name: all, command: "${probe.exit}"}
          - {name: some, resources: {claims: [{name: x, request: y}]}}
          - {name: none, resources: null}
          resourceClaims: [{name: x, resourceClaimName: one}]
        """,
        """
        apiVersion: v1
        kind: Pod
        metadata: {name: p}
        spec:
          terminationGracePeriodSeconds: 0
          initContainers:
          - name: first
            image: ${image}
            command: ${probe.hold}
            resources: {claims: [{name: x}]}
          containers:
          - name: all
            image: ${image}
            command: ${probe.exit}
            resources: {claims: [{name: x}]}
          - name: some
            image: ${image}
            command: ${probe.hold}
            resources: {claims: [{name: x, request: y}]}
          - {name: none, image: "${image}", command: "${probe.hold}"}
          resourceClaims: [{name: x, resourceClaimName: one}]
        """,
    ),
    "a pod on a node, and with an affinity of its own": (
        "- {pod: p, on: n, affinity: {podAffinity: {}}}",
        """
        apiVersion: v1
        kind: Pod
        metadata: {name: p}
        spec:
          affinity:
            nodeAffinity:
              requiredDuringSchedulingIgnoredDuringExecution:
                nodeSelectorTerms:
                - {matchFields: [{key: metadata.name, operator: In, values: [n]}]}
            podAffinity: {}
          terminationGracePeriodSeconds: 0
          tolerations: [{operator: Exists}]
          containers: [{name: ctr0, image: "${image}", command: "${probe.hold}"}]
        """,
    ),
    "a namespace has no spec": (
        "- {namespace: n}",
        "{apiVersion: v1, kind: Namespace, metadata: {name: n}}",
    ),
    "a manifest in full stays as it is": (
        "- {apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [ctr0]}}",
        "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [ctr0]}}",
    ),
}


@pytest.mark.parametrize("case", SAME)
def test_in_short_and_in_full_are_the_same(case: str) -> None:
    short, full = SAME[case]
    lines = short.strip("\n").splitlines()
    indent = len(lines[0]) - len(lines[0].lstrip())
    [found] = applied("\n".join(line[indent:] for line in lines))
    assert found == yaml.safe_load(full)


def test_pods_of_the_node_tier_tolerate_what_the_profile_says() -> None:
    [pod, *workloads] = applied(
        "- {pod: p}\n- {job: j, completions: 2}\n- {deployment: d, replicas: 3}\n"
        "- {statefulSet: s, replicas: 4}",
        "node",
    )
    job, deployment, stateful_set = workloads
    for spec in (pod["spec"], *(one["spec"]["template"]["spec"] for one in workloads)):
        assert spec["tolerations"] == "${tolerations}"
        assert spec["terminationGracePeriodSeconds"] == 1
        assert spec["containers"][0]["image"] == "${image}"
    assert (job["spec"]["completions"], deployment["spec"]["replicas"]) == (2, 3)
    assert (stateful_set["kind"], stateful_set["spec"]["replicas"]) == ("StatefulSet", 4)
    assert job["spec"]["template"]["spec"]["restartPolicy"] == "Never"


def test_like_says_what_an_earlier_one_said_and_changes_some_of_it() -> None:
    one, two, three = applied("""
- {claim: one, requests: [{name: gpu, exactly: {count: 2}}], config: [{opaque: {driver: d}}]}
- {claim: two, like: one}
- {claim: three, like: two, config: null, constraints: [{matchAttribute: a}]}
""")
    assert two["spec"] == one["spec"]
    assert two["metadata"] == {"name": "two"}
    assert three["spec"]["devices"] == {
        "requests": [{"name": "gpu", "exactly": CLASS | {"count": 2}}],
        "constraints": [{"matchAttribute": "a"}],
    }


def test_for_each_repeats_an_element_of_any_list() -> None:
    [_, _, three] = found = applied("""
- forEach: {n: 1..3}
  slice: s-${each.n}
  devices:
  - forEach: {it: [{name: a, size: 1}, {name: b, size: "${each.n}"}]}
    name: ${each.it.name}-${each.n}
    attributes: {size: "${each.it.size}"}
  - ${name.x}
""")
    assert [item["metadata"]["name"] for item in found] == ["s-1", "s-2", "s-3"]
    assert three["spec"]["devices"] == [
        {"name": "a-3", "attributes": {"size": {"int": 1}}},
        {"name": "b-3", "attributes": {"size": {"int": 3}}},
        {"name": "${name.x}"},
    ]


MISTAKES = {
    "a word that is none": ("- {pud: p}", "5: $.spec.steps[0].apply[0]: begins with 'pud'", "pod?"),
    "no name": ("- {pod: [p]}", "5: $.spec.steps[0].apply[0].pod: must be the name of the pod", ""),
    "like what is not there": (
        "- {claim: one}\n- {claim: two, like: onn}",
        "6: $.spec.steps[0].apply[1].like: no claim 'onn'",
        "did you mean one?",
    ),
    "an endless range": (
        "- {forEach: {n: 1..1000000}, pod: p}",
        "5: $.spec.steps[0].apply[0].forEach.n: has more than 300 values",
        "",
    ),
    "too much of too much": (
        "- {forEach: {n: 0..299}, pod: p, x: [{forEach: {m: 0..299}, y: [1, 2]}]}",
        "5: $.spec.steps[0].apply[0].x[0]",
        "is repeated to more than 100000 values",
    ),
    "two names": ("- {forEach: {n: [1], m: [2]}, pod: p}", "forEach: must be one name", ""),
    "no values": ("- {forEach: {n: []}, pod: p}", "forEach.n: must be one name with", ""),
    "a value of nothing": (
        "- {forEach: {name: [a]}, pod: '${each.nam}'}",
        "5: $.spec.steps[0].apply[0].pod: unknown variable ${each.nam}; did you mean name?",
        "",
    ),
    "a field of nothing": (
        "- {forEach: {n: [{a: 1}]}, pod: '${each.n.b}'}",
        "${each.n.b}: a value has no b; known: a",
        "",
    ),
    "not in a list": ("- {pod: p, affinity: {forEach: {n: [1]}}}", "an element of a list", ""),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_a_mistake_is_told_where_it_stands(case: str) -> None:
    apply, begins, says = MISTAKES[case]
    told = refused(apply)
    assert begins in told
    assert says in told
    assert "\n" not in told


def test_what_lint_says_of_the_full_form_is_told_where_the_author_wrote_it() -> None:
    source = document("- {claim: one}\n- {forEach: {n: 0..1}, pod: 'p${each.n}', contaners: [c]}")
    found = expand_document(source)
    path = ("spec", "steps", 0, "apply", 2, "spec", "contaners", 0)
    assert found.data["spec"]["steps"][0]["apply"][2]["spec"]["contaners"] == ["c"]
    assert (
        found.tell(Problem(path, "x")) == "given.yaml:6: $.spec.steps[0].apply[1].contaners[0]: x"
    )


def test_the_enhancement_of_the_feature_need_not_be_named() -> None:
    def references(text: str) -> list[str]:
        [source] = parse_documents(f"spec: {{feature: DeviceTaints, references: {text}}}", FILE)
        found: list[str] = expand_document(source).data["spec"]["references"]
        return found

    page, enhancement = "https://example.com/page", "https://kep.k8s.io/5055"
    assert references(f"[{page}]") == [page, enhancement]
    assert references(f"[{enhancement}, {page}]") == [enhancement, page]
    assert references("[https://kep.k8s.io/1]") == ["https://kep.k8s.io/1"]


def test_wherever_the_model_has_a_manifest_it_may_be_in_short() -> None:
    schema = make_model_schema("scenario")
    seen = set(_manifests(schema, schema["$defs"], ()))
    assert seen == set(MANIFEST_PATHS)


def _manifests(node: Any, defs: dict[str, Any], path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Paths of all manifests in a schema, as ``MANIFEST_PATHS`` has them."""
    if not isinstance(node, dict):
        return
    name = str(node.get("$ref", "")).rpartition("/")[2]
    if name == "Manifest":
        yield path
    elif name:
        yield from _manifests(defs[name], defs, path)
    for one in (*node.get("anyOf", ()), *node.get("oneOf", ())):
        yield from _manifests(one, defs, path)
    yield from _manifests(node.get("items"), defs, (*path, "*"))
    for key, one in node.get("properties", {}).items():
        yield from _manifests(one, defs, (*path, key))
