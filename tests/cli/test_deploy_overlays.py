"""The policy that holds a driver to its node's slices binds it whatever an overlay calls it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import yaml

from reference_allocator.cel import DYN, compile_expression
from tests.cli import deployment

pytestmark = [pytest.mark.needs_go, pytest.mark.slow]

OTHERS = (
    "system:node:node-1",
    "system:serviceaccount:nvml-dra-driver:default",
    "system:serviceaccount:kube-system:generic-garbage-collector",
    "nvml-dra-driver",
)


@pytest.mark.parametrize(
    "overlay", [{}, {"namespace": "gpu-team"}, {"namePrefix": "a-", "nameSuffix": "-b"}]
)
def test_an_overlay_does_not_set_the_driver_free(overlay: dict[str, str], tmp_path: Path) -> None:
    base = os.path.relpath(deployment.BASE, tmp_path)
    kustomization = {"kind": "Kustomization", "resources": [base], **overlay}
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(kustomization), encoding="utf-8")
    rendered = deployment.render(tmp_path)
    [daemon_set] = [item for item in rendered if item["kind"] == "DaemonSet"]
    namespace = daemon_set["metadata"]["namespace"]
    account = daemon_set["spec"]["template"]["spec"]["serviceAccountName"]
    [condition] = [
        condition["expression"]
        for item in rendered
        for condition in item.get("spec", {}).get("matchConditions", ())
        if condition["name"] == "is-the-driver"
    ]
    program = compile_expression(condition, {"request": DYN})
    bound = {
        name: program.evaluate({"request": {"userInfo": {"username": name}}})
        for name in (f"system:serviceaccount:{namespace}:{account}", *OTHERS)
    }
    assert [*bound.values()] == [True, *[False for _ in OTHERS]], bound
