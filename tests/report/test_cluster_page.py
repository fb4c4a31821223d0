"""The page of a cluster: all that is told, as text; who has each device, and what keeps it back."""

from __future__ import annotations

from typing import Any

from conformance.compare.audit.once import audit
from conformance.compare.explain import (
    ExplanationTrace,
    PendingExplanation,
    explain_snapshot,
    read_snapshot,
)
from conformance.report.clusterpage import MAX_DEVICES, render_cluster
from tests.compare import cluster
from tests.report.builders import HOSTILE
from tests.report.test_html_page import Page

Obj = dict[str, Any]


def fleet(nodes: int, devices: int, waiting: int = 1) -> Obj:
    """Nodes whose first device each is held, and pods that want all devices of one."""
    names = [f"node-{number:03}" for number in range(nodes)]
    held = []
    for name in names:
        made = cluster.claim(f"has-{name}")
        made["status"] = {
            "allocation": cluster.allocation("gpu-0", node_name=name),
            "reservedFor": [{"resource": "pods", "name": f"pod-on-{name}", "uid": name}],
        }
        held.append(made)
    claims = [cluster.claim(f"wants-{number}", devices) for number in range(waiting)]
    return cluster.snapshot(
        nodes=tuple(map(cluster.node, names)),
        slices=tuple(cluster.resource_slice(name, ["40Gi"] * devices) for name in names),
        allocated=tuple(held),
        claims=tuple(claims),
        pods=tuple(
            cluster.pod(
                f"p{number}", resourceClaims=[{"name": "g", "resourceClaimName": f"wants-{number}"}]
            )
            for number in range(waiting)
        ),
    )


def explained(document: Obj, suggest: bool = True) -> tuple[str, list[PendingExplanation]]:
    seen = ExplanationTrace()
    told = explain_snapshot(read_snapshot(document), suggest=suggest, seen=seen)
    return render_cluster("Why", document, told=told, explained=seen.explanations), told


def words(page: str) -> str:
    return " ".join(" ".join(Page(page).parts).split())


def test_each_device_is_shown_with_who_has_it_and_the_rule_that_removed_it() -> None:
    text, _ = explained(fleet(2, 2))
    page = words(text)
    for said in (
        "ns/p0: 0 of 2 nodes",
        "Would fit if request gpu of claim ns/wants-0 asked for 1 instead of 2 (on node-000)",
        "claim ns/has-node-001: gpu.example.com/node-001/gpu-0, for ns/pod-on-node-001",
        "node-000 gpu-0 pod-on-node-000 in use gpu-1 free 2 devices of class gpu: 1 in use, 1 left",
        "node-001 gpu-0 pod-on-node-001 in use gpu-1 free 2 devices of class gpu: 1 in use, 1 left",
    ):
        assert said in page, page


def test_findings_are_listed_and_mark_the_devices_of_their_claims() -> None:
    document = fleet(2, 2)
    document["allocated"][1]["status"]["allocation"] = cluster.allocation(
        "gpu-0", node_name="node-000"
    )
    text = render_cluster("Audit", document, findings=audit({**document, "pods": []}))
    page = words(text)
    assert "double-allocation ns/has-node-000 gpu.example.com/node-000/gpu-0 is allocated" in page
    assert "gpu-0 pod-on-node-000, pod-on-node-001, twice" in page
    assert text.count('class="twice wrong"') == 1


def test_a_hundred_nodes_take_less_than_a_megabyte_and_what_has_no_room_is_named() -> None:
    text, told = explained(fleet(100, 8, waiting=4), suggest=False)
    assert len(text.encode()) < 1_000_000
    assert text.count("<table>") == MAX_DEVICES // 900 + 1
    assert "more nodes are not shown" in words(text)
    assert words(text).count("There is no room for its map") == 1
    assert all(f"{item.subject}: 0 of 100 nodes" in words(text) for item in told)


def test_no_name_forms_markup_and_nothing_needs_a_script_or_another_file() -> None:
    document = fleet(1, 1)
    document["allocated"][0]["status"]["reservedFor"][0]["name"] = HOSTILE
    document["pods"][0]["metadata"]["name"] = HOSTILE
    text, _ = explained(document)
    page = Page(text)
    assert not {"script", "link", "img", "iframe"} & set(page.tags)
    assert "url(" not in text
    assert "<script>alert(1)</script>" in page.text
    assert page.addresses == []
    assert {"main", "section", "caption", "h1", "h2"} <= set(page.tags)
