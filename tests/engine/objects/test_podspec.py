"""Pods keep to the nodes of a pool and to the pod security standard ``restricted``."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.engine.objects.ledger import Ledger
from conformance.engine.objects.podspec import HOSTNAME, confine, restrict
from conformance.engine.run.scenario_run import run_scenario
from kube.values import Obj
from tests.engine.miniature import Miniature, pod, scenario, setup


def made(kind: str, spec: Any) -> Obj:
    found = {"kind": kind, "spec": spec}
    confine(found, ["a", "b"])
    return found


ONLY = {"key": HOSTNAME, "operator": "In", "values": ["a", "b"]}


def affinity(*terms: Any) -> Obj:
    required = {"nodeSelectorTerms": list(terms)}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


def test_pods_and_those_that_objects_make_are_confined() -> None:
    wanted = {"affinity": affinity({"matchExpressions": [ONLY]})}
    assert made("Pod", {})["spec"] == wanted
    assert made("Job", {"template": {"spec": {}}})["spec"]["template"]["spec"] == wanted
    assert made("ResourceClaim", {"template": {"spec": {}}})["spec"] == {"template": {"spec": {}}}


def test_what_a_pod_wants_itself_is_kept() -> None:
    zone = {"key": "zone", "operator": "Exists"}
    named = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]}]}
    found = made("Pod", {"affinity": affinity({"matchExpressions": [zone]}, named)})
    assert found["spec"]["affinity"] == affinity(
        {"matchExpressions": [zone, ONLY]}, {**named, "matchExpressions": [ONLY]}
    )


@pytest.mark.parametrize(
    "spec",
    [
        {"nodeName": "elsewhere"},
        {"affinity": "wrong"},
        {"affinity": affinity()},
        {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": 1}}},
        "wrong",
    ],
)
def test_what_is_bound_or_malformed_stays_as_it_is(spec: Any) -> None:
    assert made("Pod", spec)["spec"] == spec


def run(target: Miniature, apply: Obj) -> None:
    loaded = scenario(apply, {"expect": [{"pod": "p", "scheduled": True}]})
    run_scenario(loaded, setup(target), lambda _: None)


def test_its_namespaces_say_what_pod_security_their_pods_need() -> None:
    target = Miniature()
    made: list[Obj] = []
    target.on_create = made.append
    other = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "${name.other}"}}
    run(target, {"apply": [other, pod("p")]})
    labels = [obj["metadata"]["labels"] for obj in made if obj["kind"] == "Namespace"]
    assert [one["pod-security.kubernetes.io/enforce"] for one in labels] == ["restricted"] * 2
    assert "pod-security.kubernetes.io/enforce" not in made[-1]["metadata"]["labels"]


@pytest.mark.parametrize("kind", ["Pod", "Job", "Deployment", "CronJob"])
def test_pods_are_made_so_that_restricted_admits_them(kind: str) -> None:
    spec: dict[str, Any] = {
        "initContainers": [{"name": "i"}],
        "containers": [{"name": "c"}, {"name": "own", "securityContext": {"privileged": True}}],
    }
    template: Obj = {"metadata": {"name": "p"}, "spec": spec}
    manifest: Obj = {
        "Pod": template,
        "CronJob": {"spec": {"jobTemplate": {"spec": {"template": template}}}},
    }.get(kind) or {"spec": {"template": template}}
    made: list[Obj] = []
    target = Miniature()
    target.on_create = made.append
    Ledger(target.scope("ns"), {"a": "b"}).create(
        {"apiVersion": "v1", "kind": kind, **manifest, "metadata": {"name": "p"}}
    )
    found = made[0]["spec"]
    for name in ("jobTemplate", "template"):
        found = found[name]["spec"] if name in found else found
    assert found["securityContext"]["runAsNonRoot"] is True
    assert found["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    [first, own], [init] = found["containers"], found["initContainers"]
    assert first["securityContext"] == init["securityContext"]
    assert first["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert first["securityContext"]["allowPrivilegeEscalation"] is False
    assert own["securityContext"] == {"privileged": True}


@pytest.mark.parametrize(
    ("served", "user"), [({"security.openshift.io/v1"}, 1000700000), (set(), 65534)]
)
def test_pods_run_as_the_first_user_that_openshift_gives_to_their_namespace(
    served: set[str], user: int
) -> None:
    made: list[Obj] = []
    target = Miniature()
    target.served |= served

    def on_create(obj: Obj) -> None:
        made.append(obj)
        if obj["kind"] == "Namespace":
            notes = {"openshift.io/sa.scc.uid-range": "1000700000/10000"}
            obj["metadata"]["annotations"] = notes

    target.on_create = on_create
    run(target, {"apply": [pod("p")]})
    assert made[-1]["spec"]["securityContext"]["runAsUser"] == user
    assert made[-1]["spec"]["securityContext"]["runAsNonRoot"] is True


@pytest.mark.parametrize("spec", [None, 7, {}, {"containers": [7]}, {"containers": 7}])
def test_a_malformed_pod_is_left_to_the_api_server(spec: Any) -> None:
    for kind in ("Pod", "Job"):
        manifest = {"kind": kind, "spec": spec}
        restrict(manifest)
        assert manifest["kind"] == kind
