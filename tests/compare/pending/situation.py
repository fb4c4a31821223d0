"""Makes a situation of `situations.yaml` through a scope of either target."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from conformance.compare.evidence import claim_names
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
) | {
    *("claims", "constraints", "pod", "cordon", "counters", "incomplete"),
    *("asks", "class", "templates", "only", "untried"),
}
_NAMESPACED = frozenset({"Pod", "ResourceClaim", "ResourceClaimTemplate", "ResourceQuota"})
_MADE_AGAIN = frozenset({"requests", "claims", "pod", "asks"})
_UNTRIED_SECONDS = 5


class Situation:
    """One of the table, in a namespace of its own; ``remove`` it in the end."""

    def __init__(self, scope: Scope, row: Mapping[str, Any]) -> None:
        assert row.keys() <= _FIELDS, row.keys() - _FIELDS
        self._scope, self._row = scope, row
        self._made: list[Ref] = []
        self._asks: dict[str, str] = row.get("asks", {})

    def make(self) -> None:
        row = self._row
        self._create(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self._scope.namespace}}
        )
        selector = {"cel": {"expression": f"device.driver == '{DRIVER}'"}}
        spec = {"selectors": [selector], **row.get("class", {})}
        self._create({**kit.device_class("gpu"), "spec": spec})
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
        for name, bodies in row.get("templates", {}).items():
            if bodies is not None:
                self._create(kit.template(name, *_requests(bodies)))
        self._act(row.get("before", {}))
        self._want("p", self._claims(row), row.get("pod", {}))
        if row.get("untried"):
            self._scope.pause(_UNTRIED_SECONDS)
            assert not self._bound("p"), "the pod does not wait"
            return
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
        if then.keys() & _MADE_AGAIN:
            self._forget("p", *self._claims(self._row))
        for name in then.get("end", ()):
            self._forget(name, f"{name}-gpus")
        self._act(then)
        for node, devices in then.get("slices", {}).items():
            self._forget_slice(node)
            self._slice(node, devices, whole=True)
        if then.keys() & _MADE_AGAIN:
            again = {**self._row, **then}
            self._asks = again.get("asks", {})
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

    def _act(self, actions: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> None:
        """Patch nodes, then create, patch and delete objects; a list is done part by part."""
        if isinstance(actions, Sequence):
            for some in actions:
                self._act(some)
            return
        for node, patch in actions.get("nodes", {}).items():
            self._patch(node, patch)
        for obj in actions.get("create", ()):
            self._create(obj)
        for one in actions.get("patch", ()):
            self._scope.patch(self._ref(one), one["patch"], one.get("subresource", ""))
        for one in actions.get("delete", ()):
            self._scope.delete(self._ref(one), 0 if one["kind"] == "Pod" else None)
            self._await_gone(self._ref(one))

    def _ref(self, obj: Mapping[str, Any]) -> Ref:
        """Return the reference of an object; without a name it is that of the namespace."""
        space = self._scope.namespace
        name = obj["metadata"]["name"] if "metadata" in obj else obj.get("name", space)
        return Ref(obj["apiVersion"], obj["kind"], name, space if _is_namespaced(obj) else None)

    def _claims(self, row: Mapping[str, Any]) -> dict[str, list[Obj]]:
        if row.keys() & {"claims", "templates", "asks"}:
            claims: dict[str, list[Obj]] = row.get("claims", {})
            return claims
        return {"wanted": row.get("requests", [{}])}

    def _want(self, pod: str, claims: Mapping[str, list[Obj]], spec: Obj) -> None:
        constraints = self._row.get("constraints", []) if pod == "p" else []
        for name, bodies in claims.items():
            if bodies is not None:
                self._create(kit.claim(name, *_requests(bodies), constraints=constraints))
        templates = self._row.get("templates", {}) if pod == "p" else {}
        made = kit.pod(pod, claims=_same(claims), templates=_same(templates), **spec)
        if pod == "p" and (asks := self._asks):
            made["spec"]["containers"][0]["resources"] = {"limits": asks, "requests": asks}
        self._create(made)

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
        self._scope.create(obj)
        ref = self._ref(obj)
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
        found = [
            self._scope.get(Ref(kit.DRA, "ResourceClaim", one, space)) for one in claim_names(pod)
        ]
        has = all(one and (one.get("status") or {}).get("allocation") for one in found)
        return True if has and pod["spec"].get("nodeName") else None


def _is_namespaced(obj: Mapping[str, Any]) -> bool:
    return obj["kind"] in _NAMESPACED


def _same(names: Iterable[str]) -> dict[str, str]:
    return {name: name for name in names}


def _requests(bodies: Sequence[Obj]) -> list[Obj]:
    return [
        _request("gpu" if number == 0 else f"more-{number}", body)
        for number, body in enumerate(bodies)
    ]


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
        "capacity": {"memory": {"value": more.pop("memory", "40Gi"), **more.pop("policy", {})}},
        "attributes": {"model": {"string": "x"}, **more.pop("attributes", {})},
        **more,
    }
