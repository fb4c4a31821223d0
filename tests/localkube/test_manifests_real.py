"""A driver whose installing run was killed, on a real API server: `cleanup` takes all of it away.

A control plane is enough: no root, no node.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from kube.nodes import RUN_LABEL
from localkube import manifests
from localkube.manifests import install_objects
from tests.cli import deployment
from tests.cli.plain_client import Json
from tests.localkube.pool import Shared
from tests.programs import ended

pytestmark = [pytest.mark.needs_go, pytest.mark.slow]

DEFINITION: Json = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "domains.gpu.example.com"},
    "spec": {
        "group": "gpu.example.com",
        "scope": "Cluster",
        "names": {"plural": "domains", "kind": "Domain"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object"}},
            }
        ],
    },
}
OWN: list[Json] = [
    DEFINITION,
    {"apiVersion": "gpu.example.com/v1", "kind": "Domain", "metadata": {"name": "one"}},
    {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "certificate"}},
]
THEIRS: list[Json] = [
    {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "theirs"}},
    {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "theirs"}},
]
THEIRS[0]["spec"] = {}


def test_all_that_a_killed_run_installed_is_found_and_removed_and_nothing_else(
    control_plane: Shared, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    access, admin = control_plane.access, control_plane.admin
    for one in THEIRS:
        admin.create(one)
    objects = [*deployment.render(deployment.SIMULATED), *OWN]
    given = json.loads(json.dumps(objects))
    monkeypatch.setattr(manifests, "_await_slices", lambda *_: None)  # there is no node
    with install_objects(objects, access, "gpu.nvidia.com", lambda _: None, removes=False):
        pass  # as if the run had been killed here
    there = [admin.get(one) for one in given]
    labels = {one["metadata"]["labels"][RUN_LABEL] for one in there if one is not None}
    assert None not in there
    [run] = labels
    [made] = [one for one in there if one is not None and one["kind"] == "DaemonSet"]
    [wanted] = [one for one in given if one["kind"] == "DaemonSet"]
    assert made["spec"]["selector"] == wanted["spec"]["selector"]
    assert RUN_LABEL not in made["spec"]["template"]["metadata"]["labels"]

    kubeconfig = ["--kubeconfig", str(access.kubeconfig), "--context", access.context]
    cleanup = [sys.executable, "-m", "conformance", "cleanup", "--cluster", "kubeconfig"]
    done = ended([*cleanup, *kubeconfig, "--run", run], cwd=tmp_path, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    known = [one for one in given if one["kind"] != "Domain"]  # whose definition is gone
    assert [one["metadata"]["name"] for one in known if admin.get(one) is not None] == []
    for one in given:
        assert f"deleting {one['kind']} " in done.stdout, one["kind"]
    assert all(admin.get(one) for one in THEIRS)
