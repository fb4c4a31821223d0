from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import yaml

from conformance.targets.cluster import ClusterTarget
from kube.base.redaction import REDACTED, redact_object
from localkube.base import ClusterAccess
from localkube.processes.tools import read_tail
from tests.kube.fake_api import FakeApi

JWT = "eyJhbGciOiJSUzI1NiIs.eyJpc3MiOiJrdWJlcm5ldGVz.c2lnbmF0dXJl"


def test_objects_lose_managed_fields_and_secret_looking_values() -> None:
    pod = {
        "metadata": {"name": "p", "managedFields": [{"manager": "x"}]},
        "spec": {
            "env": [
                {"name": "DB_PASSWORD", "value": "hunter2"},
                {"name": "MODE", "value": "fast"},
                {"name": "K", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
            ]
        },
    }
    cleaned = redact_object(pod)
    assert cleaned["metadata"] == {"name": "p"}
    assert cleaned["spec"]["env"][0]["value"] == REDACTED
    assert cleaned["spec"]["env"][1:] == pod["spec"]["env"][1:]  # type: ignore[index]


def test_a_failure_comes_with_objects_events_and_logs(
    api: FakeApi, access: ClusterAccess, tmp_path: Path
) -> None:
    log = tmp_path / "scheduler.log"
    log.write_text(f"started\nusing Bearer {JWT}\n")
    logs = {"kube-scheduler": log, "kubelet": tmp_path / "missing.log"}
    target = ClusterTarget(replace(access, component_logs=logs))
    status = {"containerStatuses": [{"name": "ctr0", "containerID": "containerd://1"}]}
    api.put("pods", {"metadata": {"name": "pod0", "namespace": "demo"}, "status": status})
    api.logs["demo/pod0/ctr0"] = "hello"
    api.put("resourceclaims", {"metadata": {"name": "c", "namespace": "demo"}, "spec": {}})
    api.put("pods", {"metadata": {"name": "theirs", "namespace": "other"}})
    nodes_status = {"conditions": [{"type": "Ready", "status": "True"}], "images": ["long"]}
    api.put("nodes", {"metadata": {"name": "n1"}, "status": nodes_status})
    for name, moment in (("b", "2026-01-01T00:00:02Z"), ("a", "2026-01-01T00:00:01Z")):
        event = {
            "metadata": {"name": name, "namespace": "demo"},
            "type": "Warning",
            "reason": f"Reason{name}",
            "message": "two\nlines",
            "eventTime": moment,
            "involvedObject": {"kind": "Pod", "name": "pod0"},
            "reportingComponent": "scheduler",
        }
        api.put("events", event)
    api.fail("GET", "/resourceslices", 403)
    found = target.scope("demo").diagnostics()
    target.close()
    assert yaml.safe_load(found["pods.yaml"])["metadata"]["name"] == "pod0"
    assert yaml.safe_load(found["resourceclaims.yaml"])["kind"] == "ResourceClaim"
    assert yaml.safe_load(found["nodes.yaml"])["status"] == {
        "conditions": [{"type": "Ready", "status": "True"}]
    }
    assert found["events.txt"].splitlines() == [
        "2026-01-01T00:00:01Z Warning Reasona Pod/pod0 (scheduler): two lines",
        "2026-01-01T00:00:02Z Warning Reasonb Pod/pod0 (scheduler): two lines",
    ]
    assert found["logs/pod0/ctr0.log"] == "hello"
    assert found["components/kube-scheduler.log"] == f"started\nusing Bearer {REDACTED}"
    assert found["components/kubelet.log"].startswith("cannot be read")
    assert found["resourceslices.yaml"].startswith("cannot be read")
    assert not any(path.endswith("/secrets") for _, path, _, _ in api.requests)


def test_only_the_end_of_a_long_log_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("\n".join(f"line {n}" for n in range(100_000)))
    lines = read_tail(path, 200).splitlines()
    assert len(lines) == 200
    assert lines[-1] == "line 99999"
