"""``capture``, ``explain``, ``replay``: from a cluster to a file to an answer; what goes wrong."""

from __future__ import annotations

import io
import json
import sys
import time
from pathlib import Path

import pytest
import yaml

from kubesim.world import KUBERNETES
from tests.cli.conftest import Call
from tests.compare import cluster
from tests.kube.fake_api import FakeApi
from tests.targets.cluster.test_cluster_capture import fill


@pytest.fixture
def where(api: FakeApi, tmp_path: Path) -> list[str]:
    fill(api)
    file = api.kubeconfig(tmp_path / "kubeconfig")
    return ["--cluster", "kubeconfig", "--kubeconfig", str(file), "--context", "fake"]


@pytest.mark.parametrize("name", ["snapshot.json", "snapshot.json.gz"])
def test_a_cluster_and_its_snapshot_are_explained_alike(
    call: Call, where: list[str], name: str
) -> None:
    done = call("capture", *where, "-o", name)
    assert (done.code, done.err) == (0, ""), done
    assert "2 nodes, 2 slices, 1 allocated claims, 1 claims without devices, 2 pods" in done.out
    of_cluster = call("explain", *where, "ns/waits")
    assert of_cluster.code == 0
    assert "would fit if pod ns/holder ended (on rack-7)" in of_cluster.out
    assert call("explain", name, "ns/waits").out == of_cluster.out
    assert call("explain", name).out == of_cluster.out
    [told] = json.loads(call("explain", name, "ns/picky", "-o", "json").out)
    assert told["held"] == [
        {"claim": "ns/held", "pods": ["ns/holder"], "devices": ["gpu.example.com/rack-7/gpu-0"]}
    ]


def test_a_renamed_snapshot_is_explained_with_other_names(call: Call, where: list[str]) -> None:
    assert call("capture", *where, "--rename", "-o", "other.json").code == 0
    out = call("explain", "other.json").out
    assert "namespace-00001/pod-00002: 0/2 nodes" in out
    assert "would fit if pod namespace-00001/pod-00001 ended (on node-00001)" in out


def test_a_snapshot_is_replayed_as_it_would_be_if(call: Call, where: list[str]) -> None:
    assert call("capture", *where, "-o", "s.json").code == 0
    assert call("replay", "s.json").out.startswith("pending is correct")
    done = call("replay", "s.json", "--end", "ns/holder")
    assert (done.code, "fits now on rack-7" in done.out) == (0, True)
    done = call("replay", "s.json", "--end", "ns/holder", "--cordon", "rack-7", "--json")
    assert done.code == 1
    assert json.loads(done.out)[0]["fits"] == []
    assert call("replay", "s.json", "--feature-gate", "X").code == 2
    assert call("replay", "s.json", "--kubernetes", "1.2").code == 2


def test_questions_are_asked_of_the_same_snapshot_one_after_the_other(
    call: Call, where: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert call("capture", *where, "-o", "s.json").code == 0
    freed = {"id": "1", "end": ["ns/holder"]}
    lines = "\n".join(map(json.dumps, [freed, {"id": "2"}, freed])).encode()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(lines)))
    done = call("replay", "s.json", "--questions", "-")
    fits = [json.loads(line)["pods"][0]["fits"] for line in done.out.splitlines()]
    assert fits == [["rack-7"], [], ["rack-7"]]
    (tmp_path / "q").write_bytes(lines)
    assert call("replay", "s.json", "--questions", "q").out == done.out
    assert call("replay", "none.json", "--questions", "q").code == 2


def test_each_answer_can_be_a_page(call: Call, where: list[str], tmp_path: Path) -> None:
    assert call("capture", *where, "-o", "s.json").code == 0
    (tmp_path / "decision.json").write_text(
        json.dumps(cluster.decision([cluster.claim()], [cluster.allocation("gpu-1")]))
    )
    for arguments, said in (
        (("explain", "s.json", "ns/waits"), "would fit if"),
        (("audit", "s.json"), "No findings"),
        (("replay", "s.json", "--end", "ns/holder"), "Fits now on rack-7"),
        (("replay", "s.json"), "pending is correct"),
        (("replay", "decision.json"), 'class="admissible"'),
    ):
        assert call(*arguments, "--html", "page.html").code in {0, 1}, arguments
        page = (tmp_path / "page.html").read_text()
        assert said.lower() in page.lower(), arguments
        assert "gpu-0" in page
    assert 'class="chosen"' in page
    assert call("replay", "results.ndjson", "--html", "page.html").code == 2
    assert call("explain", "s.json", "--html", "/proc/page.html").code == 2


def test_the_rights_that_are_needed_are_printed(call: Call) -> None:
    role = yaml.safe_load(call("capture", "--rbac").out)
    assert {verb for rule in role["rules"] for verb in rule["verbs"]} == {"list", "watch", "get"}


def test_what_goes_wrong_is_told(call: Call, api: FakeApi, where: list[str]) -> None:
    for arguments, code, message in (
        (("capture",), 2, "name the cluster: --cluster kubeconfig"),
        (("capture", *where[:4]), 2, "--context"),
        (("explain", "ns/waits"), 2, "name the cluster"),
        (("explain", *where, "waits"), 2, "must be NAMESPACE/NAME"),
        (("explain", *where, "ns/none"), 2, "there is no ResourceClaim"),
        (("explain", "none.json"), 2, "No such file"),
    ):
        done = call(*arguments)
        assert (done.code, message in " ".join(done.err.split())) == (code, True), done
    api.fail("GET", "/pods", 403, times=1)
    done = call("capture", *where, "-o", "some.json")
    assert done.code == 0
    assert "warning: pods: cannot be read" in done.err
    api.fail("GET", "/resourceslices", 403, times=1)
    done = call("explain", *where, "ns/waits")
    assert done.code == 3
    assert "cannot be read" in done.err


def test_a_cluster_is_audited_and_what_passes_is_no_finding(
    call: Call, api: FakeApi, where: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    done = call("audit", *where)
    assert (done.code, done.out) == (0, ""), done
    held = dict(api.objects["resourceclaims", "ns", "held"])
    double = cluster.allocated("double", "gpu-0")
    double["status"]["allocation"] = held["status"]["allocation"]
    api.put("resourceclaims", double)
    done = call("audit", *where, "--settle", "0")
    assert done.code == 1
    assert "double-allocation: ns/double: gpu.example.com/rack-7/gpu-0 is allocated" in done.out
    assert call("capture", *where, "-o", "s.json").code == 0
    assert json.loads(call("audit", "s.json", "-o", "json").out)[0]["rule"] == "double-allocation"
    monkeypatch.setattr(time, "sleep", lambda _: api.drop("resourceclaims", "ns", "double"))
    assert call("audit", *where).code == 0


def test_an_audit_that_saw_no_pods_is_inconclusive(
    call: Call, api: FakeApi, where: list[str]
) -> None:
    api.fail("GET", "/pods", 403)
    assert call("audit", *where).code == 3
    assert call("audit").code == 2


def test_claims_that_a_kubelet_has_prepared_and_no_pod_uses_are_found(
    call: Call, api: FakeApi, where: list[str]
) -> None:
    place = "/api/v1/nodes/rack-7/proxy/metrics"
    for number, code in ((1, 0), (2, 1)):
        series = 'dra_resource_claims_in_use{driver_name="%s"} %d'
        lines = (series % ("<any>", number), series % ("gpu.example.com", 9))
        api.answers[place] = (200, "\n".join(lines))
        done = call("audit", *where, "--kubelets", "--settle", "0")
        assert done.code == code, done
    assert done.out.startswith(
        "prepared-for-nobody: rack-7: its kubelet has 2 claims prepared; pods there use 1"
    )
    assert "warning: kubelet of rack-8 not asked" in done.err


def test_a_dump_of_kubectl_is_explained_audited_replayed_and_made_small(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wants = cluster.pod("p", resourceClaims=[{"name": "gpu", "resourceClaimName": "claim-0"}])
    objects = [cluster.node(), cluster.device_class(), cluster.resource_slice(), wants]
    objects.append(cluster.claim(count=3))
    text = yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": objects})
    (tmp_path / "dump.yaml").write_text(text)
    done = call("explain", "dump.yaml", "ns/p")
    assert (done.code, "2 devices of class gpu: 2 left; 3 needed" in done.out) == (0, True), done
    assert f"Kubernetes {KUBERNETES} is assumed" in done.err
    assert call("audit", "dump.yaml").code == 0
    assert call("replay", "dump.yaml").out.startswith("pending is correct")
    assert call("shrink", "dump.yaml").code == 0
    assert "ns/p: 0/1 nodes" in call("explain", "dump.yaml.small.json").out
    with (tmp_path / "dump.yaml").open() as stream:
        monkeypatch.setattr(sys, "stdin", stream)
        assert "2 left; 3 needed" in call("explain", "-", "ns/p").out


def test_replay_names_the_known_faults_that_it_meets(call: Call, tmp_path: Path) -> None:
    every, broken = cluster.claim(), cluster.resource_slice("left")
    request = {"deviceClassName": "gpu", "allocationMode": "All"}
    every["spec"]["devices"]["requests"][0]["exactly"] = request
    broken["spec"]["pool"]["resourceSliceCount"] = 2
    waiting = cluster.snapshot(
        claims=(every,),
        slices=(broken, cluster.resource_slice("right")),
        nodes=(cluster.node("left"), cluster.node("right")),
    )
    taken = cluster.snapshot(allocated=(cluster.allocated("other", "gpu-0"),))
    twice = cluster.decision([cluster.claim()], [cluster.allocation("gpu-0")], taken)
    for document, code, link in (
        (waiting, 0, "https://github.com/kubernetes/kubernetes/issues/141829"),
        (twice, 1, "docs/found/double-allocation.md"),
    ):
        (tmp_path / "given.json").write_text(json.dumps(document))
        done = call("replay", "given.json")
        last = done.out.splitlines()[-1]
        assert (done.code, last.partition(": ")[0], last.split()[-1]) == (
            code,
            "known fault of Kubernetes",
            link,
        )


def test_what_is_given_is_judged_by_the_kubernetes_that_is_named(
    call: Call, where: list[str], tmp_path: Path
) -> None:
    """1.34 has no partitions unless its gate is on, and 1.37 has them."""
    parted = cluster.resource_slice(sizes=["40Gi"])
    parted["spec"]["devices"][0]["consumesCounters"] = [
        {"counterSet": "s", "counters": {"m": {"value": "1"}}}
    ]
    counters = cluster.resource_slice("counters")
    counters["spec"] |= {
        "nodeName": "node-a",
        "pool": {"name": "node-a", "generation": 1, "resourceSliceCount": 2},
        "sharedCounters": [{"name": "s", "counters": {"m": {"value": "1"}}}],
    }
    del counters["spec"]["devices"]
    parted["spec"]["pool"]["resourceSliceCount"] = 2
    wants = cluster.pod("p", resourceClaims=[{"name": "gpu", "resourceClaimName": "claim-0"}])
    objects = (parted, counters, cluster.device_class(), cluster.claim(), wants, cluster.node())
    (tmp_path / "dump.yaml").write_text(yaml.safe_dump_all(objects))
    snapshot = cluster.snapshot(slices=(parted, counters), claims=objects[3:4], pods=(wants,))
    (tmp_path / "s.json").write_text(json.dumps(snapshot))
    for file in ("dump.yaml", "s.json"):
        for kubernetes, nodes in (("1.34", "0/1"), ("1.37", "1/1")):
            done = call("explain", "--kubernetes", kubernetes, file, "ns/p")
            assert (done.code, done.err) == (0, ""), done
            assert done.out.startswith(f"ns/p: {nodes} nodes"), done
        assert call("audit", "--kubernetes", "1.34", file).code == 0
    for given, message in (
        (("explain", "--kubernetes", "1.2", "s.json"), "--kubernetes: "),
        (("explain", "--kubernetes", "1.34", *where, "ns/waits"), "the cluster says its version"),
        (("audit", "--kubernetes", "1.34", *where), "the cluster says its version itself"),
    ):
        done = call(*given)
        assert (done.code, message in " ".join(done.err.split())) == (2, True), done


@pytest.mark.parametrize("subcommand", ["explain", "audit", "replay", "shrink"])
def test_what_could_not_be_read_is_never_called_right(
    call: Call, tmp_path: Path, subcommand: str
) -> None:
    wants = cluster.pod("p", resourceClaims=[{"name": "gpu", "resourceClaimName": "claim-0"}])
    objects = [cluster.node(), cluster.device_class(), cluster.resource_slice(), wants]
    objects.append(cluster.claim(count=3))
    (tmp_path / "dump.yaml").write_text(yaml.safe_dump_all(objects) + "---\n{")
    done = call(subcommand, "dump.yaml")
    assert done.code == 3, done
    assert "not read: dump.yaml:" in done.err


def test_two_pods_are_compared(call: Call, tmp_path: Path) -> None:
    held = [cluster.allocated(name, f"gpu-{n}") for n, name in enumerate("ab")]
    pods = [
        cluster.pod(name, resourceClaims=[{"name": "gpu", "resourceClaimName": name}])
        for name in "ab"
    ]
    document = cluster.snapshot(allocated=tuple(held), pods=tuple(pods))
    (tmp_path / "s.json").write_text(json.dumps(document))
    done = call("explain", "--together", "s.json", "ns/a", "ns/b")
    assert (done.code, done.out) == (0, "ns/a and ns/b share gpu.example.com/type: gpu\n"), done
    assert "two Pods" in call("explain", "--together", "s.json", "ns/a").err
