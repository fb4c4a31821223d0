"""What another process is handed to use a cluster."""

from __future__ import annotations

import json
from pathlib import Path

from conformance.clusters.base import ClusterAccess


def test_a_hand_over_survives_its_json_form() -> None:
    access = ClusterAccess(
        kubeconfig=Path("/tmp/k"),
        context="here",
        kubernetes_version="v1.37.1",
        image="i:1",
        nodes=("a", "b"),
        component_logs={"kube-apiserver": Path("/tmp/log")},
        versions={"runc": "without seccomp"},
    )
    assert ClusterAccess.from_json(json.loads(json.dumps(access.to_json()))) == access
