"""Builders of objects and questions about a scope, for the tests of the reference."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from conformance import probe
from conformance.targets.reference.scope import ReferenceScope
from kube.values import Obj, Query, Ref

DRA = "resource.k8s.io/v1"
CLASS = "gpu.nvidia.com"
DRIVER = "gpu.nvidia.com"
NODE = "reference-node-0"


def device_class(name: str = CLASS, **spec: Any) -> Obj:
    expression = f"device.driver == '{DRIVER}' && device.attributes['{DRIVER}'].type == 'gpu'"
    return {
        "apiVersion": DRA,
        "kind": "DeviceClass",
        "metadata": {"name": name},
        "spec": {"selectors": [{"cel": {"expression": expression}}], **spec},
    }


def request(name: str = "gpu", class_name: str = CLASS, **exactly: Any) -> Obj:
    return {"name": name, "exactly": {"deviceClassName": class_name, **exactly}}


def claim(name: str, *requests: Obj, **devices: Any) -> Obj:
    return {
        "apiVersion": DRA,
        "kind": "ResourceClaim",
        "metadata": {"name": name},
        "spec": {"devices": {"requests": list(requests) or [request()], **devices}},
    }


def template(name: str, *requests: Obj, **devices: Any) -> Obj:
    return {
        "apiVersion": DRA,
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name},
        "spec": {"spec": claim(name, *requests, **devices)["spec"]},
    }


def container(
    name: str = "ctr0", *claims: str | Obj, command: tuple[str, ...] = probe.HOLD, **more: Any
) -> Obj:
    entries = [{"name": item} if isinstance(item, str) else item for item in claims]
    built: Obj = {"name": name, "image": "probe", "command": list(command), **more}
    if entries:
        built["resources"] = {"claims": entries}
    return built


def pod(
    name: str,
    *containers: Obj,
    claims: dict[str, str] | None = None,
    templates: dict[str, str] | None = None,
    **spec: Any,
) -> Obj:
    """A pod; ``claims`` and ``templates``: pod claim name -> claim or template."""
    entries = [
        *({"name": key, "resourceClaimName": value} for key, value in (claims or {}).items()),
        *(
            {"name": key, "resourceClaimTemplateName": value}
            for key, value in (templates or {}).items()
        ),
    ]
    names = [entry["name"] for entry in entries]
    full: Obj = {"containers": list(containers) or [container("ctr0", *names)], **spec}
    if entries:
        full["resourceClaims"] = entries
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": full}


def workload(kind: str, *, grace: int = 0, **spec: Any) -> Obj:
    """One of apps/v1 called ``web``; its pods have a label ``version`` and a grace period."""
    template = {
        "metadata": {"labels": {"app": "web", "version": "1"}},
        "spec": pod("web", terminationGracePeriodSeconds=grace)["spec"],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": "web"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": template, **spec},
    }


def node(name: str, **labels: str) -> Obj:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **labels}},
        "status": {
            "allocatable": {"cpu": "4", "memory": "4Gi", "pods": "110"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def resource_slice(name: str, node_name: str, driver: str, *devices: Obj) -> Obj:
    return {
        "apiVersion": DRA,
        "kind": "ResourceSlice",
        "metadata": {"name": name},
        "spec": {
            "driver": driver,
            "nodeName": node_name,
            "pool": {"name": node_name, "generation": 1, "resourceSliceCount": 1},
            "devices": list(devices),
        },
    }


def pod_ref(name: str) -> Ref:
    return Ref("v1", "Pod", name)


def claim_ref(name: str) -> Ref:
    return Ref(DRA, "ResourceClaim", name)


def get(scope: ReferenceScope, ref: Ref) -> Obj:
    found = scope.get(ref)
    assert found is not None, f"{ref} is not there"
    return found


def phase(scope: ReferenceScope, name: str) -> str | None:
    found = scope.get(pod_ref(name))
    return None if found is None else found["status"].get("phase")


def until(scope: ReferenceScope, check: Callable[[], object], seconds: float = 60) -> None:
    """Wait until ``check`` is true."""
    assert scope.wait(lambda: True if check() else None, seconds), scope.diagnostics()


def runs(scope: ReferenceScope, *names: str) -> None:
    """Wait until these pods run."""
    until(scope, lambda: all(phase(scope, name) == "Running" for name in names))


def gone(scope: ReferenceScope, *refs: Ref) -> None:
    """Wait until these objects are gone."""
    until(scope, lambda: all(scope.get(ref) is None for ref in refs))


def claims_of(scope: ReferenceScope) -> list[Obj]:
    return scope.find(Query(DRA, "ResourceClaim"))


def devices(found: Obj) -> list[str]:
    """Names of the devices that a claim has."""
    allocation = found["status"].get("allocation") or {"devices": {"results": []}}
    return [result["device"] for result in allocation["devices"]["results"]]


def seen(scope: ReferenceScope, name: str, container_name: str = "ctr0") -> list[str]:
    """GPU device files that a container sees."""
    view = scope.observe.container(name, container_name)
    assert view is not None, f"{name}/{container_name} has not run"
    return [
        path for path in view.device_nodes if path.startswith("/dev/nvidia") and path[-1:].isdigit()
    ]


def why_pending(scope: ReferenceScope, name: str) -> str:
    """The scheduler's message on a pod; empty without one."""
    for condition in get(scope, pod_ref(name))["status"].get("conditions") or []:
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            return str(condition["message"])
    return ""


def events(scope: ReferenceScope, reason: str) -> list[str]:
    """Messages of the events with a reason."""
    found = scope.find(Query("v1", "Event"))
    return [event["message"] for event in found if event["reason"] == reason]
