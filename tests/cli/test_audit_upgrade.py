"""`audit --upgrade-to` of a snapshot: what each row of the table finds, what cannot be asked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from conformance.scenario.minor_changes import load_changes
from tests.cli.conftest import Call

DRIVER = "d.example.com"
NOT_IN_SNAPSHOTS = {"gate-cannot-be-set", "api-version-not-served", "empty-selector-warned"}
"""Rows about what no snapshot has; `lint` finds them in files."""


def snapshot(**changes: Any) -> dict[str, Any]:
    devices = [
        {"name": "a", "attributes": {"v": {"version": "1.0.0+a"}}, "capacity": {"x": {"value": 1}}},
        {"name": "b", "attributes": {"v": {"version": "1.0.0+b"}}},
        {"name": "c", "attributes": {"v": {"version": "99999999999999999999.0.0"}}},
    ]
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    asked = {
        "deviceClassName": "c",
        "allocationMode": "ExactCount",
        "count": 1,
        "capacity": {"requests": {f"{DRIVER}/x": "1"}},
        "tolerations": [{"key": "k", "operator": "Exists"}],
    }
    claim = {
        "metadata": {"name": "c", "namespace": "ns", "uid": "1"},
        "spec": {
            "devices": {
                "requests": [{"name": "r", "exactly": asked}],
                "constraints": [{"matchAttribute": f"{DRIVER}/v"}],
            }
        },
    }
    result = {"request": "r", "driver": DRIVER, "pool": "p", "device": "a", "shareID": "1"}
    shares = {
        "metadata": {"name": "shares", "namespace": "ns", "uid": "2"},
        "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c"}}]}},
        "status": {
            "allocation": {"devices": {"results": [{**result, "consumedCapacity": {"x": "-1"}}]}}
        },
    }
    spec = {"driver": DRIVER, "pool": pool, "nodeName": "n", "devices": devices}
    selector = {"cel": {"expression": "true"}}
    return {
        "apiVersion": "dra-conformance/v1",
        "kind": "Snapshot",
        "kubernetes": "1.37.1",
        "features": {},
        "slices": [{"metadata": {"name": "s"}, "spec": spec}],
        "deviceClasses": [{"metadata": {"name": "c"}, "spec": {"selectors": [selector]}}],
        "nodes": [{"metadata": {"name": "n"}}],
        "claims": [claim],
        "allocated": [shares],
        "pods": [],
        **changes,
    }


def write(content: dict[str, Any]) -> str:
    Path("snapshot.json").write_text(json.dumps(content), encoding="utf-8")
    return "snapshot.json"


def test_each_row_about_stored_objects_is_found_in_a_snapshot(call: Call) -> None:
    done = call("audit", write(snapshot()), "--upgrade-to", "1.38", "--output", "json")
    rows = json.loads(done.out)
    found = {row["change"] for row in rows}
    expected = {name for name, row in load_changes().items() if row.found} - NOT_IN_SNAPSHOTS
    assert (done.code, found) == (1, expected)
    assert all(row["object"] and row["path"] and row["text"] and row["advice"] for row in rows)
    assert "not looked at: ResourceClaimTemplates, DeviceTaintRules, flags" in done.err


def test_templates_of_a_snapshot_are_looked_at_and_lines_are_short(call: Call) -> None:
    asked = {"deviceClassName": "c", "capacity": {"requests": {"x": "-1"}}}
    template = {
        "metadata": {"name": "t", "namespace": "ns"},
        "spec": {"spec": {"devices": {"requests": [{"name": "r", "exactly": asked}]}}},
    }
    done = call("audit", write(snapshot(templates=[template])), "--upgrade-to", "1.38")
    assert "ResourceClaimTemplate ns/t:" in done.out
    assert "not looked at: DeviceTaintRules, flags" in done.err
    assert [line for line in (done.out + done.err).splitlines() if len(line) > 80] == []


def test_what_could_not_be_read_is_never_called_right(call: Call) -> None:
    """`audit` without --upgrade-to has the same exit code."""
    Path("dump").mkdir()
    info = {"nodeInfo": {"kubeletVersion": "v1.37.2"}}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "status": info}
    Path("dump/good.yaml").write_text(json.dumps(node), encoding="utf-8")
    Path("dump/bad.yaml").write_text("kind: [", encoding="utf-8")
    done = call("audit", "dump", "--upgrade-to", "1.38")
    assert (done.code, done.out) == (3, "")
    assert "not read: dump/bad.yaml" in done.err


@pytest.mark.parametrize(
    ("changes", "options", "complaint"),
    [
        ({}, ["1.37"], "the cluster is of Kubernetes 1.37 already; name a later minor"),
        ({}, ["v1.36.3"], "the cluster is of Kubernetes 1.37 already; name a later minor"),
        ({}, ["1.39"], "Kubernetes version '1.39' is not supported; known minors: 1.34"),
        ({}, ["soon"], "Kubernetes version 'soon' is not supported; known minors: 1.34"),
        ({"kubernetes": ""}, ["1.38"], "does not say which Kubernetes it is of"),
        ({}, ["1.38", "--html", "x.html"], "leave --html and --kubelets out"),
    ],
)
def test_an_upgrade_that_cannot_be_judged_is_refused_in_a_sentence(
    call: Call, changes: dict[str, Any], options: list[str], complaint: str
) -> None:
    done = call("audit", write(snapshot(**changes)), "--upgrade-to", *options)
    assert (done.code, done.out) == (2, "")
    (line,) = done.err.splitlines()
    assert line.startswith("error: ")
    assert complaint in line


@pytest.mark.parametrize(
    ("changes", "code", "complaint"),
    [
        ({"features": {"x": 1}}, 2, "error: $.features"),
        ({"slices": [{"metadata": {"name": "s"}, "spec": "x"}]}, 2, "error: $.slices[0].spec"),
        (
            {"templates": [{"metadata": {"name": "t"}, "spec": {"spec": 7}}]},
            1,
            "t looked at: $.spec",
        ),
    ],
)
def test_a_damaged_snapshot_is_named_in_a_sentence(
    call: Call, changes: dict[str, Any], code: int, complaint: str
) -> None:
    done = call("audit", write(snapshot(**changes)), "--upgrade-to", "1.38")
    assert done.code == code
    assert complaint in done.err
