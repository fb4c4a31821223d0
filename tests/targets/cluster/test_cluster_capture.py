"""A cluster's snapshot: what is in it, what is not, and what is said of what may not be read."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from conformance.targets.cluster import ClusterTarget
from conformance.targets.cluster.capture import capture
from conformance.targets.cluster.rename import replace_names
from kube.base.errors import TargetError
from reference_allocator.explain import explain
from reference_allocator.snapshot import Snapshot
from tests.compare import cluster
from tests.kube.fake_api import FakeApi

SECRET = "s3cr3t"


def fill(api: FakeApi) -> None:
    for name in ("rack-7", "rack-8"):
        node = cluster.node(name, unschedulable=name == "rack-8")
        node["metadata"] |= {
            "labels": {"kubernetes.io/hostname": name, "owner": SECRET},
            "annotations": {"note": SECRET},
        }
        api.put("nodes", node)
        api.put("resourceslices", cluster.resource_slice(name))
    api.put("deviceclasses", cluster.device_class())
    picky = cluster.claim("picky", 2)
    selector = {"cel": {"expression": "device.attributes['gpu.example.com'].type != 'rack-7'"}}
    picky["spec"]["devices"]["requests"][0]["exactly"]["selectors"] = [selector]
    picky["metadata"]["annotations"] = {"note": SECRET}
    api.put("resourceclaims", picky)
    held = cluster.allocated("held", "gpu-0")
    held["status"] = {
        "allocation": cluster.allocation("gpu-0", node_name="rack-7"),
        "reservedFor": [{"resource": "pods", "name": "holder", "uid": "uid-holder"}],
        "devices": [{"device": "gpu-0", "data": {"key": SECRET}}],
    }
    api.put("resourceclaims", held)
    wants = {"resourceClaims": [{"name": "gpu", "resourceClaimName": "picky"}]}
    container = {"name": "c", "image": SECRET, "args": [SECRET], "env": [{"value": SECRET}]}
    api.put("pods", cluster.pod("waits", **wants) | {"status": {"phase": "Pending"}})
    holder = cluster.pod("holder", nodeName="rack-7", volumes=[{"name": SECRET}])
    holder["spec"]["containers"] = [container]
    holder["metadata"] |= {"uid": "uid-holder", "annotations": {"note": SECRET}}
    api.put("pods", holder)
    api.put("pods", cluster.pod("web", nodeName="rack-7"))


def names(objects: list[dict[str, Any]]) -> list[str]:
    return [item["metadata"]["name"] for item in objects]


def test_a_cluster_is_captured_in_pages_and_without_what_no_decision_reads(
    api: FakeApi, target: ClusterTarget
) -> None:
    fill(api)
    said: list[str] = []
    found = capture(target.api, said.append)
    assert said == []
    assert Snapshot.from_dict(found).to_dict() | {"templates": []} == found
    assert names(found["claims"]) == ["picky"]
    assert names(found["allocated"]) == ["held"]
    assert names(found["nodes"]) == ["rack-7", "rack-8"]
    assert names(found["pods"]) == ["holder", "waits"]
    assert SECRET not in json.dumps(found).replace(f'"owner": "{SECRET}"', "")
    assert sum("limit=500" in path for _, path, *_ in api.requests) >= 6


def test_a_renamed_snapshot_says_the_same_with_other_names(
    api: FakeApi, target: ClusterTarget
) -> None:
    fill(api)
    found = capture(target.api, print)
    other = replace_names(found)
    text = re.sub(r'"uid-[^"]*"', '""', json.dumps(other))
    for name in ("rack-", "picky", "held", "holder", "waits", '"ns"', SECRET):
        assert name not in text, name
    assert "type != 'node-00001'" in text
    before, after = (explain(Snapshot.from_dict(item)).text for item in (found, other))
    assert "rack-7: 2 devices of class gpu: 1 in use" in before
    assert after == before.replace("rack-7", "node-00001").replace("rack-8", "node-00002")


@pytest.mark.parametrize(
    ("plural", "gate", "message"),
    [
        ("pods", None, "pods: cannot be read"),
        ("resourceclaimtemplates", None, "resourceclaimtemplates: cannot be read"),
        ("devicetaintrules", "0", "devicetaintrules: cannot be read"),
    ],
)
def test_what_is_of_use_without_a_list_is_captured_and_the_list_named(
    api: FakeApi, target: ClusterTarget, plural: str, gate: str | None, message: str
) -> None:
    fill(api)
    if gate is not None:
        api.metrics = f'kubernetes_feature_enabled{{name="DRADeviceTaintRules",stage=""}} {gate}\n'
    api.fail("GET", f"/{plural}", 403, times=9)
    said: list[str] = []
    assert capture(target.api, said.append)["slices"]
    assert [line for line in said if line.startswith(message) and "(403)" in line] == said != []


@pytest.mark.parametrize(
    "plural", ["resourceslices", "resourceclaims", "nodes", "devicetaintrules"]
)
def test_what_every_answer_depends_on_is_an_error(
    api: FakeApi, target: ClusterTarget, plural: str
) -> None:
    api.fail("GET", f"/{plural}", 403, times=9)
    with pytest.raises(TargetError, match=r"cannot be read.*\(403\).*--rbac"):
        capture(target.api, print)


@pytest.mark.parametrize(
    ("gone", "message"),
    [
        (["v1"], r"serves resource.k8s.io/v1beta1 and not .*/v1, which"),
        (["v1", "v1beta1"], r"\(404\); dynamic resource allocation needs"),
    ],
)
def test_a_cluster_without_the_api_is_told_what_it_needs(
    api: FakeApi, target: ClusterTarget, gone: list[str], message: str
) -> None:
    for version in gone:
        api.served.pop(f"resource.k8s.io/{version}")
    with pytest.raises(TargetError, match=message):
        capture(target.api, print)
