"""Ten pods that wait for ten reasons: kubectl prints the cluster, `explain` reads what it prints.

Each answer is held against what the scheduler has said of the pod. On the served reference, and on
a real control plane with nodes that have no kubelet.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest
import yaml

from conformance.compare.explain import PendingExplanation, explain_file
from kube.values import Obj
from tests.cli.plain_client import eventually
from tests.go_programs import KUBECTL, build_programs
from tests.kubesim import kit
from tests.kubesim.front.served import serving_module
from tests.localkube.pool import Shared
from tests.programs import ended

pytestmark = [pytest.mark.slow, pytest.mark.everything]

DRIVER, RESOURCE, SPACE = "gpu.example.com", "example.com/gpu", "default"
KINDS = "resourceslices,deviceclasses,nodes,resourceclaims,resourceclaimtemplates,pods"
TOLERATED = [
    {"key": f"node.kubernetes.io/{key}", "operator": "Exists"}
    for key in ("not-ready", "unreachable")
]
"""A node without a kubelet is so after a while, which is no reason here."""

Kubectl = Callable[..., str]


class Waits(NamedTuple):
    """A pod that waits.

    Attributes:
        says: what `explain` says of it.
        scheduler: what kube-scheduler says of it; empty: it does not try the pod (PreEnqueue).
        fits: nodes on which it would have its devices.
    """

    says: str
    scheduler: str
    fits: tuple[str, ...] = ()
    claim: Obj | None = None
    spec: Mapping[str, Any] = MappingProxyType({})
    resources: Mapping[str, str] = MappingProxyType({})


def selecting(expression: str) -> Obj:
    return {"selectors": [{"cel": {"expression": expression}}]}


PODS = {
    "too-many": Waits(
        "b: 2 devices of class gpu: 2 left; 5 needed",
        "2 cannot allocate all claims",
        claim={"count": 5},
    ),
    "another-model": Waits(
        "2 fail selector #0 (model x is not y)",
        "2 cannot allocate all claims",
        claim=selecting(f"device.attributes['{DRIVER}'].model == 'y'"),
    ),
    "no-class": Waits(
        "there is no DeviceClass gpus; did you mean gpu?",
        "request gpu: device class gpus does not exist",
        claim={"deviceClassName": "gpus"},
    ),
    "held-elsewhere": Waits(
        "a: node(s) didn't match Pod's node affinity/selector b: the pod's other claims have"
        " devices elsewhere",
        "1 resourceclaim not available on the node",
        spec={
            "resourceClaims": [{"name": "gpu", "resourceClaimName": "shared"}],
            "nodeSelector": {"kubernetes.io/hostname": "b"},
        },
    ),
    "no-claim": Waits(
        "there is no ResourceClaim sharde; did you mean shared?",
        "",
        spec={"resourceClaims": [{"name": "gpu", "resourceClaimName": "sharde"}]},
    ),
    "gated": Waits(
        "scheduling gates hold the pod: example.com/quota",
        "",
        ("a", "b"),
        claim={},
        spec={"schedulingGates": [{"name": "example.com/quota"}]},
    ),
    "extended": Waits(
        f"{RESOURCE} is of DeviceClass gpu",
        "2 cannot allocate all claims",
        resources={RESOURCE: "5"},
    ),
    "misspelt": Waits(
        f"nobody provides {RESOURCE}s; did you mean {RESOURCE}?",
        f"2 Insufficient {RESOURCE}s",
        resources={f"{RESOURCE}s": "1"},
    ),
    "processors": Waits(
        "no rule of DRA keeps it pending",
        "2 Insufficient cpu",
        ("a", "b"),
        claim={},
        resources={"cpu": "64"},
    ),
    "cordoned": Waits(
        "c: node(s) were unschedulable",
        "1 node(s) were unschedulable",
        claim={},
        spec={"nodeSelector": {"kubernetes.io/hostname": "c"}},
    ),
}


def list_objects() -> Iterator[Obj]:
    for name in "abc":
        node = kit.node(name)
        yield {**node, "spec": {"unschedulable": True}} if name == "c" else node
        devices = [{"name": f"gpu-{n}", "attributes": {"model": {"string": "x"}}} for n in range(2)]
        yield kit.resource_slice(f"{name}-gpus", name, DRIVER, *devices)
    selectors = selecting(f"device.driver == '{DRIVER}'")["selectors"]
    yield kit.device_class("gpu", selectors=selectors, extendedResourceName=RESOURCE)
    yield kit.claim("shared", kit.request("gpu", "gpu"))
    yield wanting("user", {"gpu": "shared"}, {"nodeSelector": {"kubernetes.io/hostname": "a"}}, {})


def list_waiting() -> Iterator[Obj]:
    for name, waits in PODS.items():
        if waits.claim is not None:
            exactly = {"deviceClassName": "gpu", **waits.claim}
            yield kit.claim(name, {"name": "gpu", "exactly": exactly})
        claims = {} if waits.claim is None else {"gpu": name}
        yield wanting(name, claims, waits.spec, waits.resources)


def wanting(
    name: str, claims: dict[str, str], spec: Mapping[str, Any], resources: Mapping[str, str]
) -> Obj:
    pod = kit.pod(name, claims=claims, tolerations=TOLERATED, **spec)
    if resources:
        container = pod["spec"]["containers"][0]
        container.setdefault("resources", {})["limits"] = dict(resources)
    return pod


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_programs(tmp_path_factory.mktemp("programs"), KUBECTL) / "kubectl"


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Path]:
    with serving_module(tmp_path, "kubesim", "serve", "--nodes", "0") as server:
        yield server.kubeconfig


@pytest.mark.needs_clients
def test_what_kubectl_prints_of_the_served_reference_is_explained(
    program: Path, served: Path, tmp_path: Path
) -> None:
    explain_ten(program, ("--kubeconfig", str(served)), tmp_path)


@pytest.mark.needs_root
@pytest.mark.needs_go
def test_what_kubectl_prints_of_a_real_cluster_is_explained(
    program: Path, control_plane: Shared, tmp_path: Path
) -> None:
    access = control_plane.access
    where = ("--kubeconfig", str(access.kubeconfig), "--context", access.context)
    explain_ten(program, where, tmp_path)


def explain_ten(program: Path, where: tuple[str, ...], folder: Path) -> None:
    def kubectl(*arguments: str) -> str:
        done = ended([program, *where, "--namespace", SPACE, *arguments], timeout=120)
        assert done.returncode == 0, done.stderr
        return done.stdout

    files = [folder / "cluster.yaml", folder / "waiting.yaml"]
    for file, objects in zip(files, (list_objects(), list_waiting()), strict=True):
        file.write_text(yaml.safe_dump_all(objects))
    dump = folder / "dump.yaml"
    try:
        kubectl("create", "-f", str(files[0]))
        there = ("get", "pod", "user", "-o", "jsonpath={.spec.nodeName}")
        eventually(lambda: kubectl(*there) == "a", "user has its device", 60)
        kubectl("create", "-f", str(files[1]))
        tried = {name for name, waits in PODS.items() if waits.scheduler}
        eventually(lambda: tried <= read_conditions(kubectl).keys(), "all were tried", 60)
        dump.write_text(kubectl("get", KINDS, "-A", "-o", "yaml"))
        said = read_conditions(kubectl)
    finally:
        for file in files[::-1]:
            kubectl("delete", "--ignore-not-found", "--now", "--wait=false", "-f", str(file))
    for name, waits in PODS.items():
        [explained] = explain_file(dump, f"{SPACE}/{name}")
        check_answer(name, waits, explained, said.get(name, ""))


def read_conditions(kubectl: Kubectl) -> dict[str, str]:
    """Pod -> what the scheduler says of it."""
    pods = json.loads(kubectl("get", "pods", "-o", "json"))["items"]
    return {
        pod["metadata"]["name"]: condition["message"]
        for pod in pods
        for condition in (pod.get("status") or {}).get("conditions") or ()
        if condition["type"] == "PodScheduled" and condition.get("message")
    }


def check_answer(name: str, waits: Waits, explained: PendingExplanation, said: str) -> None:
    """Hold an answer against what was to come, and against the scheduler's own."""
    text = " ".join(explained.text.split())
    assert waits.says in text, text
    assert waits.scheduler in said, said
    assert explained.fits == waits.fits, text
    assert all(len(line) <= 80 for line in explained.text.splitlines()), explained.text
    tried = re.match(r"0/(\d+) nodes are available", said)
    if tried and explained.nodes:
        assert explained.nodes == int(tried[1]), (name, text, said)
