"""What people have of a cluster: read as an API server would have it, and nothing else is kept."""

from __future__ import annotations

import gzip
import io
import json
import lzma
import sys
import tarfile
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml

from conformance.compare.dumps import read_dump
from conformance.compare.evidence import Obj
from conformance.compare.explain import explain_snapshot, read_snapshot
from kube.base.errors import UsageError
from kube.manifests import read_manifests
from kubesim.world import KUBERNETES
from tests.compare import cluster

POD = cluster.pod(
    "waits",
    resourceClaims=[{"name": "gpu", "resourceClaimName": "wanted"}],
    containers=[{"name": "c", "env": [{"name": "TOKEN", "value": "hush"}], "args": ["hush"]}],
)
NODE = {**cluster.node(), "status": {"nodeInfo": {"kubeletVersion": "v1.36.2"}}}
SECRET = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "s", "namespace": "ns"},
    "stringData": {"password": "hush"},
}
OBJECTS: list[Obj] = [
    NODE,
    cluster.device_class(),
    cluster.resource_slice(sizes=["40Gi"]),
    cluster.claim("wanted", 2),
    POD,
    SECRET,
]


def of_kind(kind: str) -> list[Obj]:
    return [obj for obj in OBJECTS if obj["kind"] == kind]


def listed(objects: list[Obj], kind: str = "List", api_version: str = "v1") -> Obj:
    return {"apiVersion": api_version, "kind": kind, "metadata": {}, "items": objects}


def bare(kind: str) -> list[Obj]:
    """Items as `kubectl cluster-info dump` has them: their kind is that of the list."""
    return [
        {key: value for key, value in obj.items() if key not in ("apiVersion", "kind")}
        for obj in of_kind(kind)
    ]


def as_lists(folder: Path) -> Path:
    file = folder / "all.yaml"
    file.write_text(yaml.safe_dump(listed(OBJECTS)))
    return file


def as_documents(folder: Path) -> Path:
    file = folder / "all.yaml"
    file.write_text("# mine\n---\n" + yaml.safe_dump_all(OBJECTS))
    return file


def as_packed_json(folder: Path) -> Path:
    file = folder / "all.json.gz"
    file.write_bytes(gzip.compress(json.dumps(listed(OBJECTS), indent=1).encode()))
    return file


def as_printed_dump(folder: Path) -> Path:
    """As `kubectl cluster-info dump` prints: lists with logs between, and no DRA in it."""
    file = folder / "dump"
    of_pod = "logs for container c of pod ns/waits ====\n"
    log = f"==== START {of_pod}{{hush\n==== END {of_pod}"
    lists = [listed(bare("Node"), "NodeList"), listed(bare("Pod"), "PodList"), *OBJECTS[1:4]]
    file.write_text(log.join(json.dumps(item, indent=4) + "\n" for item in lists))
    return file


def as_must_gather(folder: Path) -> Path:
    """As `oc adm must-gather` writes: a file for each object, lists of pods, pods once more."""
    files: dict[str, Any] = {
        f"cluster-scoped-resources/{obj['kind']}/{obj['metadata']['name']}.yaml": obj
        for obj in OBJECTS
        if "namespace" not in obj["metadata"]
    }
    kept = {**POD, "metadata": {**POD["metadata"], "uid": "u", "resourceVersion": "7"}}
    newer = {**kept, "metadata": {**kept["metadata"], "resourceVersion": "8"}}
    old = {**kept, "spec": {**kept["spec"], "nodeName": "elsewhere"}}
    files["namespaces/ns/core/pods.yaml"] = listed([newer], "PodList")
    files["namespaces/ns/pods/waits/waits.yaml"] = old
    files["namespaces/ns/resource.k8s.io/resourceclaims.yaml"] = listed(of_kind("ResourceClaim"))
    files["namespaces/ns/core/secrets.yaml"] = listed([SECRET])
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(yaml.safe_dump(content))
    (folder / "namespaces/ns/pods/waits/c.log").write_text("hush")
    return folder


@pytest.mark.parametrize(
    "write", [as_lists, as_documents, as_packed_json, as_printed_dump, as_must_gather]
)
def test_each_form_of_a_dump_is_the_same_snapshot(
    write: Callable[[Path], Path], tmp_path: Path
) -> None:
    document = read_dump(write(tmp_path), report_missing=pytest.fail)
    assert "hush" not in json.dumps(document)
    snapshot = read_snapshot(document)
    assert (snapshot.kubernetes, len(snapshot.slices)) == ("1.36.2", 1)
    [explanation] = explain_snapshot(snapshot)
    assert (explanation.subject, explanation.nodes) == ("ns/waits", 1)
    assert explanation.reasons[0].reason == "1 device of class gpu: 1 left; 2 needed"


def test_standard_input_is_read_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with as_documents(tmp_path).open() as stream:
        monkeypatch.setattr(sys, "stdin", stream)
        assert len(read_dump(Path("-"))["claims"]) == 1


def test_objects_are_completed_as_an_api_server_does(tmp_path: Path) -> None:
    flat = {"name": "r", "deviceClassName": "gpu"}
    old_slice = cluster.resource_slice()
    old_slice["apiVersion"] = "resource.k8s.io/v1beta1"
    del old_slice["spec"]["pool"]["generation"]
    old_slice["spec"]["devices"] = [{"name": "gpu-0", "basic": {"attributes": {}}}]
    old_claim = {
        "apiVersion": "resource.k8s.io/v1beta1",
        "kind": "ResourceClaim",
        "metadata": {"name": "c"},
        "spec": {"devices": {"requests": [flat]}},
    }
    file = tmp_path / "typed.yaml"
    file.write_text(yaml.safe_dump_all([old_slice, old_claim]))
    document = read_dump(file)
    [claim], [item] = document["claims"], document["slices"]
    assert claim["metadata"]["namespace"] == "default"
    [request] = claim["spec"]["devices"]["requests"]
    assert request["exactly"] == {
        "deviceClassName": "gpu",
        "allocationMode": "ExactCount",
        "count": 1,
    }
    assert item["spec"]["pool"]["generation"] == 0
    assert item["spec"]["devices"] == [{"name": "gpu-0"}]  # an empty map is not stored


def test_a_pod_of_another_scheduler_keeps_its_name(tmp_path: Path) -> None:
    file = tmp_path / "pods.yaml"
    kept = []
    for name in ("default-scheduler", "volcano"):
        pod = {**POD, "spec": {**POD["spec"], "schedulerName": name}}
        file.write_text(yaml.safe_dump_all([*OBJECTS[:4], pod]))
        kept.append(read_dump(file)["pods"][0]["spec"].get("schedulerName"))
    assert kept == [None, "volcano"]


def test_what_was_not_given_is_asked_for_by_name(tmp_path: Path) -> None:
    file = tmp_path / "part.yaml"
    file.write_text(yaml.safe_dump_all([of_kind("ResourceClaim")[0], *of_kind("ResourceSlice")]))
    missing: list[str] = []
    document = read_dump(file, report_missing=missing.append)
    assert "no DeviceClass gpu in what was given: `kubectl get deviceclasses -o yaml`" in missing
    assert [text.partition(" in what")[0] for text in missing] == [
        "no Node",
        "no DeviceClass gpu",
        "no Pod",
        "no Node with a version",
    ]
    assert [node["metadata"]["name"] for node in document["nodes"]] == ["node-a"]


JSON_PROBLEM = "Expecting property name enclosed in double quotes"
GOOD = yaml.safe_dump(NODE)
ALPHA = "---\napiVersion: resource.k8s.io/v1alpha2\nkind: ResourceClaim\nmetadata: {{name: c{}}}\n"
EIGHT = (f"{name}: &{name} [{','.join([f'*{of}'] * 8)}]\n" for of, name in pairwise("abcdefgh"))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param(GOOD + "---\na: [1\nb: 2\n", ":12: is not YAML: did not find", id="broken"),
        pytest.param(
            "apiVersion: v1\nitems:\n- " + GOOD.replace("\n", "\n  ").rstrip() + "\n",
            ":1: is a list without kind, as one is that is cut off",
            id="cut off",
        ),
        pytest.param(GOOD + "---\njust text\n", ":11: is not a Kubernetes object", id="text"),
        pytest.param(
            GOOD + ALPHA.format(""),
            ":11: ResourceClaim c: resource.k8s.io/v1alpha2 is served by no Kubernetes since",
            id="old version",
        ),
        pytest.param(
            GOOD
            + ALPHA.format("").replace("v1alpha2", "v1").replace("Claim", "Slice")
            + "spec: 3\n",
            ":11: ResourceSlice c: $.spec: expected an object, got 3",
            id="wrong form",
        ),
        pytest.param(
            GOOD + "---\nkind: Pod\napiVersion: v1\n",
            ":11: Pod without a name: $.metadata: required",
            id="no name",
        ),
        pytest.param(
            GOOD + "---\n" + GOOD.replace("labels: {}", "labels: {a: b}"),
            ":11: Node node-a, of FILE:1, is there again and differs; the first is taken",
            id="twice",
        ),
        pytest.param(
            GOOD + "---\na: 1\na: hush\n", ":12: the key 'a' occurs twice", id="key twice"
        ),
        pytest.param(GOOD + "---\n" + "a: " + "[" * 200, ":11: nested too deeply", id="deep"),
        pytest.param(
            GOOD + "---\na: &a [x,x,x,x,x,x,x,x]\n" + "".join(EIGHT),
            "keys and values",
            id="aliases",
        ),
    ],
)
def test_what_cannot_be_read_is_one_message_and_the_rest_is_judged(
    text: str, problem: str, tmp_path: Path
) -> None:
    file = tmp_path / "dump.yaml"
    file.write_text(text)
    unread: list[str] = []
    document = read_dump(file, unread.append)
    [message] = unread
    assert problem.replace("FILE", str(file)) in message
    assert message.startswith(f"{file}:")
    assert "hush" not in message
    assert [node["metadata"]["name"] for node in document["nodes"]] == ["node-a"]


def test_a_file_of_a_folder_that_cannot_be_opened_is_named(tmp_path: Path) -> None:
    as_documents(tmp_path)
    (tmp_path / "gone.yaml").symlink_to("nowhere")
    (tmp_path / "snapshot.json").write_text("{")
    unread: list[str] = []
    assert len(read_dump(tmp_path, unread.append)["claims"]) == 1
    assert unread == [
        f"{tmp_path}/gone.yaml: cannot be read: No such file or directory; check the path",
        f"{tmp_path}/snapshot.json:1: is not JSON: {JSON_PROBLEM}",
    ]


def test_many_documents_with_one_fault_are_told_once(tmp_path: Path) -> None:
    file = tmp_path / "many.yaml"
    file.write_text(GOOD + "".join(map(ALPHA.format, range(1000))))
    unread: list[str] = []
    read_dump(file, unread.append)
    assert len(unread) == 21
    assert unread[-1].startswith("and more, too: ")


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("d.zip", b"PK\x03\x04rest", "is packed by zip; unpack it"),
        ("d.yaml.xz", lzma.compress(GOOD.encode()), "is packed by xz; unpack it"),
        ("d.tgz", "tar", "is packed by tar; unpack it"),
        ("d.txt", b"NAME READY\np 0/1\n", ":1: is not a Kubernetes object; give what `kubectl get"),
        ("d.txt", b"Name: p\nStatus: Pending\n", "has none of what an allocation depends on"),
        ("d.txt", b"error: You must be logged in\n", "prints"),
        ("d.json", b'{"kind": "Status", "apiVersion": "v1", "status": "Failure"}', "has none of"),
        ("d.json", b"[1]", ":1: $: must be an object"),
    ],
)
def test_what_is_no_dump_is_told_with_what_to_give(
    name: str, content: bytes | str, problem: str, tmp_path: Path
) -> None:
    file = tmp_path / name
    if isinstance(content, bytes):
        file.write_bytes(content)
    else:
        (tmp_path / "dump.yaml").write_text(GOOD)
        with tarfile.open(file, "w:gz") as archive:
            archive.add(tmp_path / "dump.yaml", "dump.yaml")
    with pytest.raises(UsageError) as refused:
        read_dump(file, lambda _problem: None)
    assert str(refused.value).startswith(str(file))
    assert problem in str(refused.value)


@pytest.mark.parametrize(
    "text",
    [
        json.dumps([listed(OBJECTS[:2]), listed([listed(OBJECTS[2:])])]),
        yaml.safe_dump(listed([listed(OBJECTS[:2]), *OBJECTS[2:]])),
        yaml.safe_dump(listed(OBJECTS)).replace("\n", "\r\n"),
    ],
    ids=["an array of jq", "a list in a list", "of Windows"],
)
def test_a_dump_went_through_other_programs(text: str, tmp_path: Path) -> None:
    file = tmp_path / "dump"
    for encoding in ("utf-8", *(("utf-16", "utf-8-sig") if "\r" in text else ())):
        file.write_text(text, encoding=encoding, newline="")
        document = read_dump(file, report_missing=pytest.fail)
        assert [len(document[key]) for key in ("nodes", "slices", "claims", "pods")] == [1] * 4


@pytest.mark.parametrize("kubelet", ["v1.33.5", "v1.52.0-eks-1"])
def test_a_minor_whose_rules_are_not_known_is_said(kubelet: str, tmp_path: Path) -> None:
    node = {**NODE, "status": {"nodeInfo": {"kubeletVersion": kubelet}}}
    file = tmp_path / "dump.yaml"
    file.write_text(yaml.safe_dump_all([node, *OBJECTS[1:]]))
    missing: list[str] = []
    assert read_dump(file, report_missing=missing.append)["kubernetes"] == KUBERNETES
    [told] = missing
    assert told.endswith(f"Kubernetes {KUBERNETES} is assumed; `--kubernetes` takes another")


def test_a_name_that_is_not_there_is_told_with_one_that_is(tmp_path: Path) -> None:
    snapshot = read_snapshot(read_dump(as_lists(tmp_path)))
    for name in ("waits", "pod/waits", "default/waits", "ns/wait"):
        with pytest.raises(UsageError, match=r"did you mean ns/waits\?"):
            explain_snapshot(snapshot, name)


def test_a_list_is_read_item_by_item() -> None:
    class Endless(io.RawIOBase):
        """A list that has no end, as far as memory is concerned."""

        def __init__(self) -> None:
            self.size = 0

        def read(self, size: int = -1) -> bytes:
            item = b"- {kind: Pod, apiVersion: v1, metadata: {name: p}}\n" * 1000
            text = item if self.size else b"items:\n" + item
            self.size += len(text)
            return text

    stream = Endless()
    manifests = read_manifests(stream, "endless")  # type: ignore[arg-type]
    assert [next(manifests).line for _ in range(2500)][-1] == 2501
    assert stream.size < 400_000


@pytest.mark.parametrize("text", ['{"kind": "Menu", "items": [1]}', "items: [1]\nkind: Menu\n"])
def test_an_object_of_another_kind_may_have_items_of_its_own(text: str) -> None:
    [manifest] = read_manifests(io.BytesIO(text.encode()), "menu")
    assert (manifest.obj["kind"], manifest.line) == ("Menu", 1)


@pytest.mark.parametrize("indent", [None, 1])
def test_an_item_of_a_json_list_has_its_own_line(indent: int | None) -> None:
    items = [{"kind": "Pod", "metadata": {"name": f"p{number}"}} for number in range(3)]
    text = json.dumps({"kind": "List", "items": items}, indent=indent)
    lines = [manifest.line for manifest in read_manifests(io.BytesIO(text.encode()), "list")]
    assert lines == ([4, 10, 16] if indent else [1, 1, 1])


def test_a_text_without_end_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("kube.manifests.MAX_YAML", 100_000)
    file = tmp_path / "large.yaml"
    file.write_text(GOOD + "---\n" + "# nothing\n" * 20_000)
    unread: list[str] = []
    read_dump(file, unread.append)
    assert "is larger than 0 MiB; give only resourceslices" in unread[0]
    file.write_text("kind: Secret\napiVersion: v1\n")
    with pytest.raises(UsageError, match="has none of what an allocation depends on"):
        read_dump(file)
