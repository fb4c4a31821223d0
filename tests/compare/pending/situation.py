"""Makes a situation of `situations.yaml` through a scope of either target."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from conformance.compare.explain import PendingExplanation, explain_snapshot, read_snapshot
from conformance.seam.scope import Scope
from kube.values import Obj, Ref
from tests.kubesim import kit

FILE = Path(__file__).parent / "situations.yaml"
SITUATIONS: list[Obj] = yaml.safe_load(FILE.read_text())
DRIVER = "gpu.example.com"
SECONDS = 60
_FIELDS = frozenset(
    {"name", "says", "change", "then", "before", "devices", "users", "requests"}
) | {*("claims", "constraints", "pod", "cordon", "counters", "incomplete")}


class Situation:
    """One of the table, in a namespace of its own; ``remove`` it in the end."""

    def __init__(self, scope: Scope, row: Mapping[str, Any]) -> None:
        assert row.keys() <= _FIELDS, row.keys() - _FIELDS
        self._scope, self._row = scope, row
        self._made: list[Ref] = []

    def make(self) -> None:
        row = self._row
        self._create(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self._scope.namespace}}
        )
        selector = {"cel": {"expression": f"device.driver == '{DRIVER}'"}}
        self._create({**kit.device_class("gpu"), "spec": {"selectors": [selector]}})
        nodes = row.get("devices") or {"a": 2}
        for name, devices in nodes.items():
            self._create(kit.node(name))
            # A new node is tainted until its controller has seen that it is ready.
            assert self._scope.wait(partial(self._untainted, name), SECONDS), name
            self._slice(name, devices)
        for number, wanted in enumerate(row.get("users", ())):
            name, body = f"user-{number}", {"count": wanted} if isinstance(wanted, int) else wanted
            # One on each node, the rest on the last, whatever a scheduler would rather have.
            node = list(nodes)[min(number, len(nodes) - 1)]
            there = {"nodeSelector": {"kubernetes.io/hostname": node}}
            self._want(name, {f"{name}-gpus": [body]}, there)
            self.await_devices(name)
        for node in row.get("cordon", ()):
            self._patch(node, {"spec": {"unschedulable": True}})
        for node, patch in row.get("before", {}).get("nodes", {}).items():
            self._patch(node, patch)
        self._want("p", self._claims(row), row.get("pod", {}))
        if self._scope.wait(self._settled, SECONDS) == "bound":
            # A scheduler may see the pod before what was changed on the nodes just before it.
            self._forget("p", *self._claims(row))
            self._want("p", self._claims(row), row.get("pod", {}))
        assert self._scope.wait(self._waits, SECONDS), "the pod does not wait"

    def explain(self) -> PendingExplanation:
        snapshot = read_snapshot(self._scope.snapshot(pods=True))
        [told] = explain_snapshot(snapshot, f"{self._scope.namespace}/p")
        return told

    def change(self) -> None:
        """Do what the row says would help; the pod must be given its devices then."""
        then = self._row["then"]
        if then.keys() & {"requests", "claims", "pod"}:
            self._forget("p", *self._claims(self._row))
        for name in then.get("end", ()):
            self._forget(name, f"{name}-gpus")
        for node, patch in then.get("nodes", {}).items():
            self._patch(node, patch)
        for node, devices in then.get("slices", {}).items():
            self._forget_slice(node)
            self._slice(node, devices, whole=True)
        if then.keys() & {"requests", "claims", "pod"}:
            again = {**self._row, **then}
            self._want("p", self._claims(again), again.get("pod", {}))
        self.await_devices("p")

    def await_devices(self, pod: str) -> None:
        """Raises AssertionError: the pod has no node, or a claim of it no devices, in time."""
        assert self._scope.wait(lambda: self._bound(pod), SECONDS), f"{pod} waits"

    def remove(self) -> None:
        for ref in reversed(self._made):
            if self._scope.get(ref) is not None:
                self._scope.delete(ref, 0 if ref.kind == "Pod" else None)
        for ref in self._made:
            if ref.kind != "Namespace":  # a real one ends in its own time
                self._await_gone(ref)

    def _claims(self, row: Mapping[str, Any]) -> dict[str, list[Obj]]:
        return row.get("claims") or {"wanted": row.get("requests", [{}])}

    def _want(self, pod: str, claims: Mapping[str, list[Obj]], spec: Obj) -> None:
        constraints = self._row.get("constraints", []) if pod == "p" else []
        for name, bodies in claims.items():
            requests = [
                _request("gpu" if number == 0 else f"more-{number}", body)
                for number, body in enumerate(bodies)
            ]
            self._create(kit.claim(name, *requests, constraints=constraints))
        self._create(kit.pod(pod, claims={name: name for name in claims}, **spec))

    def _slice(self, node: str, devices: Any, whole: bool = False) -> None:
        bodies = [{}] * devices if isinstance(devices, int) else devices
        if not bodies:
            return
        made = [_device(number, body) for number, body in enumerate(bodies)]
        slices = [kit.resource_slice(f"{node}-gpus", node, DRIVER, *made)]
        counters = self._row.get("counters")
        if counters:
            amounts = {name: {"value": amount} for name, amount in counters.items()}
            slices.append(kit.resource_slice(f"{node}-counters", node, DRIVER))
            del slices[1]["spec"]["devices"]
            slices[1]["spec"]["sharedCounters"] = [{"name": "set", "counters": amounts}]
        more = 1 if self._row.get("incomplete") and not whole else 0
        for item in slices:
            item["spec"]["pool"]["resourceSliceCount"] = len(slices) + more
            self._create(item)

    def _create(self, obj: Obj) -> None:
        namespaced = obj["kind"] in {"Pod", "ResourceClaim"}
        self._scope.create(obj)
        space = self._scope.namespace if namespaced else None
        ref = Ref(obj["apiVersion"], obj["kind"], obj["metadata"]["name"], space)
        self._made = [one for one in self._made if one != ref] + [ref]

    def _patch(self, node: str, patch: Obj) -> None:
        self._scope.patch(Ref("v1", "Node", node), patch)

    def _forget_slice(self, node: str) -> None:
        ref = Ref(kit.DRA, "ResourceSlice", f"{node}-gpus")
        if self._scope.get(ref) is not None:
            self._scope.delete(ref)
            self._await_gone(ref)

    def _forget(self, pod: str, *claims: str) -> None:
        space = self._scope.namespace
        refs = [
            Ref("v1", "Pod", pod, space),
            *(Ref(kit.DRA, "ResourceClaim", name, space) for name in claims),
        ]
        for ref in refs:
            self._scope.delete(ref, 0 if ref.kind == "Pod" else None)
        for ref in refs:
            self._await_gone(ref)

    def _await_gone(self, ref: Ref) -> None:
        gone = self._scope.wait(lambda: True if self._scope.get(ref) is None else None, SECONDS)
        assert gone, f"{ref} stays"

    def _untainted(self, node: str) -> bool | None:
        found = self._scope.get(Ref("v1", "Node", node)) or {"spec": {"taints": [{}]}}
        return None if (found.get("spec") or {}).get("taints") else True

    def _waits(self) -> bool | None:
        pod = self._scope.get(Ref("v1", "Pod", "p", self._scope.namespace)) or {}
        conditions = (pod.get("status") or {}).get("conditions") or ()
        told = [one for one in conditions if one["type"] == "PodScheduled"]
        gated = (pod.get("spec") or {}).get("schedulingGates")
        return True if gated or any(one["status"] == "False" for one in told) else None

    def _settled(self) -> str | None:
        return "bound" if self._bound("p") else "waits" if self._waits() else None

    def _bound(self, name: str) -> bool | None:
        space = self._scope.namespace
        pod = self._scope.get(Ref("v1", "Pod", name, space)) or {"spec": {}}
        names = [one["resourceClaimName"] for one in pod["spec"].get("resourceClaims", ())]
        found = [self._scope.get(Ref(kit.DRA, "ResourceClaim", one, space)) for one in names]
        has = all(one and (one.get("status") or {}).get("allocation") for one in found)
        return True if has and pod["spec"].get("nodeName") else None


def _request(name: str, body: Mapping[str, Any]) -> Obj:
    if "firstAvailable" in body:
        those = [
            {"name": f"option-{number}", **_request("", one)["exactly"]}
            for number, one in enumerate(body["firstAvailable"])
        ]
        return {"name": name, "firstAvailable": those}
    fields = {key: value for key, value in body.items() if key != "select"}
    if "select" in body:
        fields["selectors"] = [{"cel": {"expression": body["select"]}}]
    return kit.request(name, "gpu", **fields)


def _device(number: int, body: Mapping[str, Any]) -> Obj:
    more = dict(body)
    return {
        "name": f"gpu-{number}",
        "capacity": {"memory": {"value": more.pop("memory", "40Gi")}},
        "attributes": {"model": {"string": "x"}, **more.pop("attributes", {})},
        **more,
    }
