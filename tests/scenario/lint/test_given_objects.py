"""Manifests that are checked together name what is there, or say that it is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.scenario.documents.yamlfile import parse_documents
from conformance.scenario.lint.given_objects import GivenObjects

API = "apiVersion: resource.k8s.io/v1\n"
CLASS = API + "kind: DeviceClass\nmetadata: {name: gpu.example.org}\n"
TEMPLATE = (
    API + "kind: ResourceClaimTemplate\nmetadata: {name: one}\nspec: {spec: {devices: {requests:"
    " [{name: gpu, exactly: {deviceClassName: gpu.example.org}}]}}}\n"
)
POD = (
    "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  containers: [{name: c, resources:"
    " {claims: [{name: g, request: gpu}]}}]\n  resourceClaims:"
    " [{name: g, resourceClaimTemplateName: one}]\n"
)
POOL = "driver: gpu.example.org, nodeName: n, pool: {name: n, generation: 1, resourceSliceCount: 2}"
DEVICE = "{name: a, consumesCounters: [{counterSet: s, counters: {m: {value: 1}}}]}"
COUNTERS = (
    API + f"kind: ResourceSlice\nmetadata: {{name: counters}}\nspec: {{{POOL},\n"
    " sharedCounters: [{name: s, counters: {m: {value: 4}}}]}\n"
)
DEVICES = (
    API + f"kind: ResourceSlice\nmetadata: {{name: b}}\nspec: {{{POOL},\n devices: [{DEVICE}]}}\n"
)

RIGHT = (CLASS, TEMPLATE, POD, COUNTERS, DEVICES)


def lines(*files: str) -> list[str]:
    given = GivenObjects()
    for number, text in enumerate(files):
        for document in parse_documents(text, Path(f"{number}.yaml")):
            given.add(document, valid=True)
    return [document.tell(problem) for document, problem in given.list_problems()]


def test_what_fits_together_is_not_complained_about() -> None:
    assert lines(*RIGHT) == []
    assert lines("---\n".join(RIGHT)) == []


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (
            "request: gpu}",
            "request: gpus}",
            "2.yaml:5: $.spec.containers[0].resources.claims[0].request: ResourceClaimTemplate one",
        ),
        (
            "TemplateName: one",
            "TemplateName: two",
            "2.yaml:6: $.spec.resourceClaims[0].resourceClaimTemplateName: warning: no ",
        ),
        (
            "metadata: {name: gpu.example.org}",
            "metadata: {name: gpu.example.com}",
            "1.yaml:4: $.spec.spec.devices.requests[0].exactly.deviceClassName: warning: no",
        ),
        (
            "counterSet: s,",
            "counterSet: t,",
            "4.yaml:5: $.spec.devices[0].consumesCounters: counter set t not found in the pool",
        ),
        (
            "{counterSet: s, counters: {m:",
            "{counterSet: s, counters: {n:",
            "4.yaml:5: $.spec.devices[0].consumesCounters: counter n not found in counter set s",
        ),
        (
            f"[{DEVICE}]",
            "[{name: a}]",
            "3.yaml:5: $.spec.sharedCounters[0].name: warning: no device of the pool con",
        ),
    ],
)
def test_what_is_not_there_is_said(old: str, new: str, expected: str) -> None:
    files = [text.replace(old, new) for text in RIGHT]
    assert files != [*RIGHT]
    assert [line for line in lines(*files) if line.startswith(expected)]


def test_a_device_of_two_slices_of_a_pool_is_found() -> None:
    again = DEVICES.replace(DEVICE, "{name: a}")
    [line] = lines(again, again.replace("name: b}", "name: c}"))
    assert line.startswith("1.yaml:5: $.spec.devices[0].name: 'a' is in another slice of the pool")


ADMIN = TEMPLATE.replace("{name: one}", "{name: one, namespace: ops}").replace(
    "deviceClassName", "adminAccess: true, deviceClassName"
)
NAMESPACE = "apiVersion: v1\nkind: Namespace\nmetadata: {name: ops, labels: {%s: 'true'}}\n"
PERMITTED = NAMESPACE % "resource.kubernetes.io/admin-access"


@pytest.mark.parametrize(
    ("namespace", "expected"),
    [
        (PERMITTED, []),
        (NAMESPACE % "other", ["admin access to devices requires the `resource.kubernetes.io"]),
        (PERMITTED.replace("name: ops", "name: dev"), ["warning: is refused unless namespace ops"]),
    ],
)
def test_admin_access_needs_the_label_of_its_namespace(namespace: str, expected: list[str]) -> None:
    told = lines(CLASS, ADMIN, namespace)
    assert len(told) == len(expected)
    for line, text in zip(told, expected, strict=True):
        assert line.startswith("1.yaml:4: $.spec.spec.devices.requests[0].exactly.adminAccess: ")
        assert text in line


@pytest.mark.parametrize(
    "files",
    [
        pytest.param((TEMPLATE, POD), id="a class that may be in the cluster"),
        pytest.param((CLASS, POD), id="a template that may be in the cluster"),
        pytest.param((DEVICES,), id="a pool whose other slice may be there"),
        pytest.param(
            (TEMPLATE.replace("name: gpu,", "name: x,"), TEMPLATE + "---\n" + POD), id="two"
        ),
    ],
)
def test_what_may_be_elsewhere_is_not_missed(files: tuple[str, ...]) -> None:
    assert lines(*files) == []
