"""A difference as a scenario: what the reference does is what it expects."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import yaml

from conformance.compare.judging import judge_undecided
from conformance.fuzz.cases import Answer
from conformance.fuzz.draw.pods import RESOURCES
from conformance.fuzz.problem import ADMIN_LABEL, ANY, DOMAIN, gates_for, resources_of
from conformance.seam.overlaps import COPIED
from kube.values import Obj
from reference_allocator.extended import ANNOTATION, classes_by_resource, extended_claim

_REFERENCE = "https://kubernetes.io/docs/concepts/scheduling-eviction/dynamic-resource-allocation/"
_WIDTH = 118
_FLOW_WIDTH = 96
_LETTERS = "abcdef"
_POD_FIELDS = ("resourceClaims", "initContainers", "containers")


def scenario_of(answer: Answer, kubernetes: str) -> str:
    """Return the difference as YAML that ``dra-conformance run`` takes.

    ``kubernetes``: the version that shows the difference.
    """
    document = answer.problem.document
    name = f"fuzz-{answer.problem.id}"
    gates = sorted({gate for item in answer.problem.focus for gate in gates_for(item)})
    requires: Obj = {"kubernetes": ">=1.37"} if document["taintRules"] else {}  # served as v1
    requires |= {"featureGates": gates} if gates else {}
    drivers = sorted({item["spec"]["driver"] for item in document["slices"]})
    end = "is scheduled" if _reference_allocates(answer) else "waits"
    spec: Obj = {
        "summary": f"Where {', '.join(answer.problem.focus)} meet, the"
        f" {'last ' if answer.earlier else ''}pod {end}.",
        "level": "extended",
        "feature": "ResourceClaim",
        "tier": "allocation",
        **({"requires": requires} if requires else {}),
        "nodes": [_LETTERS[index] for index in range(len(document["nodes"]))],
        "references": [_REFERENCE],
        "steps": list(_steps(answer, drivers)),
    }
    head = (
        f"# {answer.verdict}: {answer.reason}".replace("\n", " ")[:_WIDTH].rstrip(),
        f"# Found by `dra-conformance fuzz` on Kubernetes {kubernetes}: {answer.problem.id}.",
    )
    scenario = {
        "apiVersion": "dra-conformance/v1",
        "kind": "Scenario",
        "metadata": {"name": name},
        "spec": spec,
    }
    text = yaml.dump(
        _with_variables(scenario, drivers),
        Dumper=_Dumper,
        sort_keys=False,
        width=_WIDTH,
        default_flow_style=None,
    )
    return "\n".join((*head, text))


class _Dumper(yaml.SafeDumper):
    """Writes what is short in one line, and never an alias."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 -- PyYAML's signature
        return True

    def represent_mapping(self, tag: str, mapping: Any, flow_style: bool | None = None) -> Any:
        node = super().represent_mapping(tag, mapping, flow_style)
        node.flow_style = len(str(mapping)) < _FLOW_WIDTH
        return node

    def represent_sequence(self, tag: str, sequence: Any, flow_style: bool | None = None) -> Any:
        node = super().represent_sequence(tag, sequence, flow_style)
        node.flow_style = len(str(sequence)) < _FLOW_WIDTH
        return node


def _steps(answer: Answer, drivers: list[str]) -> Iterator[Obj]:
    document = answer.problem.document
    if "adminAccess" in answer.problem.focus:
        labels = {"metadata": {"labels": ADMIN_LABEL}}
        yield {"patch": {"kind": "Namespace", "name": "${namespace}", "patch": labels}}
    if "zone" in json.dumps(document["slices"]) or "rank" in json.dumps(document["slices"]):
        for node in document["nodes"]:
            labels = {"metadata": {"labels": node["metadata"].get("labels", {})}}
            yield {"patch": {"kind": "Node", "name": node["metadata"]["name"], "patch": labels}}
    objects: list[Obj] = []
    for item in document["deviceClasses"]:
        spec = dict(item.get("spec") or {})
        if item["metadata"]["name"] == ANY:
            spec["selectors"] = [{"cel": {"expression": f"device.driver in {json.dumps(drivers)}"}}]
        selectors = [selector["cel"]["expression"] for selector in spec.pop("selectors", ())]
        objects.append({"class": item["metadata"]["name"], "selectors": selectors, **spec})
    objects += (
        {**item, "metadata": {"name": f"${{name.{item['metadata']['name']}}}"}}
        for item in document["taintRules"]
    )
    objects += (
        {"slice": f"${{name.{item['metadata']['name']}}}", **item["spec"]}
        for item in document["slices"]
    )
    annotated = {"annotations": {COPIED: "by the scenario"}}
    objects += ({**_claim_entry(item), "metadata": annotated} for item in document["allocated"])
    objects += map(_claim_entry, document["claims"])
    yield {"apply": objects}
    for item in document["allocated"]:
        status = {"status": item["status"]}
        claim = {"kind": "ResourceClaim", "name": item["metadata"]["name"]}
        yield {"patch": {**claim, "subresource": "status", "patch": status}}
    scheduled = (*answer.earlier, _reference_allocates(answer))
    for pod, is_scheduled in zip(document["pods"], scheduled, strict=False):
        name, spec = pod["metadata"]["name"], pod["spec"]
        pod_fields = {
            field: list(map(_without_image, spec[field]))
            for field in _POD_FIELDS
            if spec.get(field)
        }
        if not resources_of(pod):
            del pod_fields["containers"]
        yield {"apply": [{"pod": name, **pod_fields}]}
        outcome = {"scheduled": True} if is_scheduled else {"pending": {"reason": "Unschedulable"}}
        extended = _expected_claim(pod, document["deviceClasses"]) if is_scheduled else []
        yield {"expect": [{"pod": name, **outcome}, *extended]}
        if not is_scheduled and pod is not document["pods"][-1]:
            yield {"delete": [{"kind": "Pod", "name": name}]}


def _is_extended(claim: Obj) -> bool:
    return ANNOTATION in claim["metadata"].get("annotations", ())


def _extended_claim(pod: Obj, classes: list[Obj]) -> Obj | None:
    """Return the claim for a pod's extended resources, if it asks for any."""
    spec = dict(pod["spec"])
    for field in ("initContainers", "containers"):
        spec[field] = [
            {**item, "resources": {"requests": (item.get("resources") or {}).get("limits", {})}}
            for item in spec.get(field, ())
        ]
    extended = extended_claim({**pod, "spec": spec}, {}, classes_by_resource(classes))
    if extended is None:
        return None
    metadata = {"name": "extended", "namespace": pod["metadata"]["namespace"], "uid": "extended"}
    return {**extended.claim, "metadata": metadata}


def _expected_claim(pod: Obj, classes: list[Obj]) -> list[Obj]:
    """Return expectations: the claim for a pod's extended resources asks for the right devices."""
    claim = _extended_claim(pod, classes)
    if claim is None:
        return []
    bodies = [item["exactly"] for item in claim["spec"]["devices"]["requests"]]
    expected_requests = ", ".join(f"'{body['deviceClassName']} {body['count']}'" for body in bodies)
    request_text = "r.exactly.deviceClassName + ' ' + string(r.exactly.count)"
    owned = {"kind": "ResourceClaim", "ownedBy": pod["metadata"]["name"]}
    return [
        {
            "object": owned,
            "cel": f"object.spec.devices.requests.map(r, {request_text}) == [{expected_requests}]",
        }
    ]


def _without_image(entry: Obj) -> Obj:
    """Return a container without its image: `run` puts in one that can be pulled."""
    return {name: value for name, value in entry.items() if name != "image"}


def _claim_entry(item: Obj) -> Obj:
    return {"claim": item["metadata"]["name"], **item["spec"]["devices"]}


def _reference_allocates(answer: Answer) -> bool:
    """Return whether the reference finds devices for the pod on one of the nodes.

    The claim for extended resources is the right one, which may not be what the cluster made.
    """
    evidence = answer.evidence
    if not evidence:  # refused: the least that can be said is that it may wait
        return False
    snapshot = evidence["snapshot"]
    pod = evidence["pod"]
    if not isinstance(pod, dict):
        pod = answer.problem.document["pods"][len(answer.earlier)]
    claims = [item for item in snapshot["claims"] if not _is_extended(item)]
    right = _extended_claim(pod, snapshot["deviceClasses"])
    if right is not None:
        claims.append(right)
    return judge_undecided({"snapshot": {**snapshot, "claims": claims}, "pod": pod}) is not None


def _with_variables(scenario: Obj, drivers: list[str]) -> Obj:
    """Return the scenario with variables in place of the names of a problem."""
    text = json.dumps(scenario).replace(RESOURCES, "dra-conformance.dev/${name.res}-")
    for index, driver in enumerate([*drivers, ANY]):
        short = driver.removesuffix(f".{DOMAIN}")
        text = text.replace(driver, f"${{name.{short}}}.{DOMAIN}" if index else "${driver}")
    for index, letter in enumerate(_LETTERS):
        text = text.replace(f'"node-{index}"', f'"${{node.{letter}}}"')
    renamed: Obj = json.loads(text)
    return renamed
