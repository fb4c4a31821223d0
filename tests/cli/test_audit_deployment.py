"""The manifests in ci/deploy/audit. The Deployment on a real cluster: test_real_audit.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

AUDIT = Path(__file__).resolve().parents[2] / "ci" / "deploy" / "audit"


def find(kind: str) -> dict[str, Any]:
    """The only object of a kind that the kustomization has."""
    names = yaml.safe_load((AUDIT / "kustomization.yaml").read_text())["resources"]
    assert set(names) == {path.name for path in AUDIT.iterdir()} - {"kustomization.yaml"}
    documents = [one for name in names for one in yaml.safe_load_all((AUDIT / name).read_text())]
    [found] = [one for one in documents if one["kind"] == kind]
    assert isinstance(found, dict)
    return found


def test_the_metrics_are_reached_from_one_namespace_alone() -> None:
    deployment, policy = find("Deployment"), find("NetworkPolicy")
    template = deployment["spec"]["template"]
    [container] = template["spec"]["containers"]
    [address] = [one for one in container["args"] if one.startswith("--metrics=")]
    [port] = container["ports"]
    assert address == f"--metrics=0.0.0.0:{port['containerPort']}"
    assert policy["metadata"]["namespace"] == deployment["metadata"]["namespace"]
    assert (
        policy["spec"]["podSelector"]["matchLabels"].items()
        <= template["metadata"]["labels"].items()
    )
    assert policy["spec"]["policyTypes"] == ["Ingress"]
    [rule] = policy["spec"]["ingress"]
    assert rule["ports"] == [{"port": port["name"], "protocol": "TCP"}]
    [peer] = rule["from"]
    [(label, namespace)] = peer["namespaceSelector"]["matchLabels"].items()
    # The API server sets this label, so that nobody gives it to a namespace of another name.
    assert (label, namespace) == ("kubernetes.io/metadata.name", "monitoring")
    assert set(peer) == {"namespaceSelector"}
