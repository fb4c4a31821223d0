"""`lint --kubernetes` names what its minor treats otherwise than the one before."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Call

MANIFESTS = """\
apiVersion: kind.x-k8s.io/v1alpha4
kind: Cluster
featureGates:
  DynamicResourceAllocation: true
---
apiVersion: v1
kind: List
items:
- apiVersion: resource.k8s.io/v1
  kind: ResourceClaimTemplate
  metadata: {name: t}
  spec:
    spec:
      devices:
        requests:
        - name: r
          exactly:
            deviceClassName: c
            tolerations:
            - {key: example.com/k, operator: Exists}
"""
FLAT = "apiVersion: resource.k8s.io/v1beta1\nkind: DeviceClass\nmetadata: {name: c}\nspec: {}\n"


@pytest.mark.parametrize("version", ["1.38", "v1.38", "1.38.0-beta.0"])
def test_what_a_minor_treats_otherwise_is_warned_of_in_its_place(call: Call, version: str) -> None:
    Path("a.yaml").write_text(MANIFESTS, encoding="utf-8")
    done = call("lint", "a.yaml", "--kubernetes", version)
    gate, toleration, total = done.out.splitlines()
    assert gate.startswith(
        "a.yaml:3: $.featureGates: warning: otherwise than in Kubernetes "
        "1.37: Kubernetes 1.38 has no feature gate DynamicResourceAllocation any more"
    )
    assert toleration.startswith(
        "a.yaml:20: $.items[0].spec.spec.devices.requests[0].exactly.tolerations[0]: warning: "
        "otherwise than in Kubernetes 1.37: it names no effect"
    )
    assert toleration.endswith("Name the effect where eviction is meant to happen.")
    assert (done.code, total) == (0, "1 file checked, 0 errors, 2 warnings")


@pytest.mark.parametrize("options", [(), ("--kubernetes", "1.37"), ("--kubernetes", "1.34")])
def test_no_news_is_no_warning(call: Call, options: tuple[str, ...]) -> None:
    Path("a.yaml").write_text(MANIFESTS, encoding="utf-8")
    assert "otherwise than" not in call("lint", "a.yaml", *options).out


def test_a_version_that_is_not_served_any_more_is_an_error(call: Call) -> None:
    Path("a.yaml").write_text(FLAT, encoding="utf-8")
    said = "a.yaml:1: $.apiVersion: resource.k8s.io/v1beta1 is not served from Kubernetes 1.38 on"
    assert said not in call("lint", "a.yaml", "--kubernetes", "1.37").out
    done = call("lint", "a.yaml", "--kubernetes", "1.38")
    assert (done.code, f"{said}; write resource.k8s.io/v1" in done.out) == (2, True)


@pytest.mark.parametrize("version", ["1.39", "next", "1", "1.38.", ""])
def test_a_minor_that_is_not_known_is_refused_in_a_sentence(call: Call, version: str) -> None:
    Path("a.yaml").write_text(FLAT, encoding="utf-8")
    done = call("lint", "a.yaml", "--kubernetes", version)
    if version in ("", "1.38."):
        assert done.code in (0, 2)
        return
    assert done.code == 2
    (line,) = done.err.splitlines()
    assert line.startswith(f"error: --kubernetes: Kubernetes version '{version}' is not supported")
