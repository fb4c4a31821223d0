"""``audit --watch``: a broken allocation is told, metrics say so, and a signal ends it."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import urllib3

from conformance.cli import watching
from conformance.compare.audit.once import Finding
from conformance.targets.reference.device_source import NoDriver
from conformance.targets.reference.serving import real_time
from conformance.targets.reference.target import ReferenceOptions, ReferenceTarget
from kubesim.front.server import Front
from kubesim.front.serving import seconds_since_epoch
from tests.cli.conftest import Call
from tests.compare import cluster
from tests.kube.fake_api import FakeApi
from tests.kubesim.front.conftest import Client
from tests.targets.cluster.test_cluster_capture import fill

Told = Callable[[Callable[[str, Finding], None]], None]


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Told:
    """Have a function called with each finding, after it is printed."""

    def call(function: Callable[[str, Finding], None]) -> None:
        tell = watching._print_change

        def both(word: str, item: Finding, as_json: bool) -> None:
            tell(word, item, as_json)
            function(word, item)

        monkeypatch.setattr(watching, "_print_change", both)

    return call


@pytest.fixture
def front(tmp_path: Path) -> Iterator[Front]:
    options = ReferenceOptions(nodes=(), devices=NoDriver("none"), start=seconds_since_epoch())
    with ReferenceTarget(options) as target:
        backend = real_time(target)
        for obj in (
            cluster.device_class(),
            cluster.node("node-a"),
            cluster.resource_slice("node-a"),
        ):
            backend.store.add({"status": {}, **obj})
        for name in ("one", "two"):
            meta = {"name": name, "namespace": "default"}
            backend.store.add({"status": {}, **cluster.claim(name), "metadata": meta})
        made = Front(backend, tmp_path, "watched")
        yield made
        made.close()


def give(front: Front, name: str, *devices: str) -> None:
    """Write an allocation, as a scheduler does; or take it back."""
    client = Client(front.kubeconfig)
    path = f"/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/{name}"
    obj: dict[str, Any] = client.send("GET", path).json()
    pod = {"resource": "pods", "name": name, "uid": name}
    given = {"allocation": cluster.allocation(*devices), "reservedFor": [pod]}
    obj["status"] = given if devices else {}
    done = client.send("PUT", f"{path}/status", obj, content_type="application/json")
    assert done.status == 200, done.data
    client.pool.clear()


def test_a_broken_allocation_written_through_the_api_is_found_and_its_end_is_told(
    call: Call, front: Front, told: Told
) -> None:
    give(front, "one", "gpu-0")
    give(front, "two", "gpu-0")
    words: list[str] = []

    def mend(word: str, item: Finding) -> None:
        words.append(f"{word} {item.rule} {item.subject}")
        if word == "passed":
            signal.raise_signal(signal.SIGTERM)
        else:
            give(front, "two")

    told(mend)
    where = ("--cluster", "kubeconfig", "--kubeconfig", front.kubeconfig)
    done = call("audit", *where, "--context", "dra-conformance-watched", "--watch")
    assert done.code == 1, done
    expected = ["found double-allocation default/one", "passed double-allocation default/one"]
    assert words[:2] == expected
    assert done.out.startswith("found double-allocation: default/one: gpu.example.com/node-a/gpu-0")


def test_metrics_count_what_is_wrong_and_a_signal_ends_it(
    call: Call,
    api: FakeApi,
    told: Told,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fill(api)
    double = cluster.allocated("double", "gpu-0")
    double["status"]["allocation"] = api.objects["resourceclaims", "ns", "held"]["status"][
        "allocation"
    ]
    api.put("resourceclaims", double)
    pages: list[str] = []
    judged = watching.Metrics.note_judging

    def look(self: watching.Metrics, *arguments: Any) -> None:
        judged(self, *arguments)
        if words:
            address = capsys.readouterr().err.split()[-1]
            pages.append(urllib3.request("GET", address).data.decode())
            signal.raise_signal(signal.SIGTERM)

    words: list[str] = []
    told(lambda word, _: words.append(word))
    monkeypatch.setattr(watching.Metrics, "note_judging", look)
    where = ("--cluster", "kubeconfig", "--kubeconfig", api.kubeconfig(tmp_path / "k"))
    done = call("audit", *where, "--context", "fake", "--watch", "--metrics", "0")
    assert done.code == 1
    for line in (
        'dra_audit_findings{rule="double-allocation"} 1.0',
        "dra_audit_allocated_claims 2.0",
        'dra_audit_watch_interrupted{resource="resourceclaims"} 0.0',
        "dra_audit_judging_seconds_count",
    ):
        assert line in pages[0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--watch", "--metrics", "nowhere:x"), "--metrics nowhere:x: cannot be served"),
        (("--watch", "--metrics", "127.0.0.1"), "there is no port"),
        (("--metrics", "9400"), "--metrics: is for a cluster that is watched"),
        (("--watch", "some.json"), "--watch: is for a cluster, and goes on"),
    ],
)
def test_options_that_make_no_sense_are_refused(
    call: Call, api: FakeApi, tmp_path: Path, options: tuple[str, ...], message: str
) -> None:
    where = ("--cluster", "kubeconfig", "--kubeconfig", api.kubeconfig(tmp_path / "k"))
    done = call("audit", *where, "--context", "fake", *options)
    assert (done.code, message in " ".join(done.err.split())) == (2, True), done
