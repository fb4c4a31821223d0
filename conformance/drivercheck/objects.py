"""The objects that a driver under check sees, and those of the checks.

Objects go through the same validation as on the reference (`kubesim.apiserver`), and
devices are allocated by the same rules as everywhere in the suite (`reference_allocator`), so a
driver is asked to prepare what a kube-scheduler could really have given out.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Mapping, Sequence
from typing import Any, Final

from conformance.drivercheck.rbac.policy import Policy
from conformance.drivercheck.rbac.rights import Rights
from kube.values import Obj, Ref
from kubesim.apiserver import patches
from kubesim.apiserver.handling import Handler
from kubesim.apiserver.server import ApiServer
from kubesim.clock import VirtualClock
from kubesim.cluster import Cluster
from kubesim.controllers.claims import FINALIZER
from kubesim.front.backend import Backend
from kubesim.store import Identity, Store, clone
from reference_allocator.allocator import Allocator
from reference_allocator.api.quantity import parse_quantity
from reference_allocator.features import Features
from reference_allocator.gates import gates_for_version
from reference_allocator.index import Index

NODE: Final = "checked-node"
OTHER_NODE: Final = "other-node"
NAMESPACE: Final = "driver-check"
OTHER_NAMESPACE: Final = "driver-check-other"
OTHER_DRIVER: Final = "other.dra-conformance.dev"
KUBERNETES: Final = "1.37.2"
"""Whose API is served, with every feature gate on: a driver may use any field that there is."""

_CLASS: Final = "driver-check"
_RESOURCE: Final = "resource.k8s.io/v1"


class Objects(Backend):
    """A small cluster's objects, without controllers. Any thread may call its methods.

    Attributes:
        rights: what the driver has asked, and may.
    """

    def __init__(self, policy: Policy | None) -> None:
        gates = dict.fromkeys(gates_for_version(KUBERNETES), True)
        clock = VirtualClock()
        # Claims have other uids in each run: a driver may remember those of an earlier one.
        identity = Identity(random.SystemRandom().getrandbits(64))
        store = Store(clock, identity)
        self._features = Features.all()
        cluster = Cluster(clock, identity, store, self._features, gates, minor="1.37")
        api = ApiServer(cluster)
        super().__init__(cluster, api, Handler(cluster, api), KUBERNETES, threading.RLock())
        self.rights = self.handler.authorizer = Rights(cluster, policy)
        admin = {"resource.kubernetes.io/admin-access": "true"}  # AdminAccess, types.go
        self.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}})
        for namespace in (NAMESPACE, OTHER_NAMESPACE):
            metadata = {"name": namespace, "labels": admin}
            self.create({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
        for name in (NODE, OTHER_NODE):
            self.create(
                {
                    "apiVersion": "v1",
                    "kind": "Node",
                    "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
                    "status": {"conditions": [{"type": "Ready", "status": "True"}]},
                }
            )
        self._claims = 0

    def create(self, obj: Obj) -> Obj:
        with self.lock:
            return self.api.create(obj, NAMESPACE)

    def get_node(self) -> Obj:
        with self.lock:
            node = self.store.get("Node", "", NODE)
        assert node is not None
        return node

    def list_slices(self, driver: str) -> list[Obj]:
        with self.lock:
            all_slices = self.store.all("ResourceSlice")
        return [
            resource_slice
            for resource_slice in all_slices
            if resource_slice["spec"]["driver"] == driver
        ]

    def create_claim(
        self, driver: str, *requests: Mapping[str, Any], name: str = "", namespace: str = NAMESPACE
    ) -> Obj:
        """Create a claim for devices of a driver, without an allocation.

        ``requests`` are v1 DeviceRequests without class and tolerations; by default one device. Of
        devices that may be shared they get a share.
        """
        with self.lock:
            if self.store.get("DeviceClass", "", _CLASS) is None:
                self._create_class(driver)
            self._claims += 1
            share = _share_of_devices(self.list_slices(driver))
            requested = requests or ({"name": "gpu", "exactly": {}},)
            completed = [_complete_request(request, share) for request in requested]
            metadata = {"name": name or f"claim-{self._claims}", "namespace": namespace}
            return self.create(
                {
                    "apiVersion": _RESOURCE,
                    "kind": "ResourceClaim",
                    "metadata": metadata,
                    "spec": {"devices": {"requests": completed}},
                }
            )

    def _create_class(self, driver: str) -> None:
        selector = {"cel": {"expression": f"device.driver == {driver!r}"}}
        self.create(
            {
                "apiVersion": _RESOURCE,
                "kind": "DeviceClass",
                "metadata": {"name": _CLASS},
                "spec": {"selectors": [selector]},
            }
        )

    def find_allocation(self, claim: Obj) -> dict[str, Any] | None:
        """Return what kube-scheduler would allocate to a claim on the node; None: devices lack."""
        with self.lock:
            kinds = ("ResourceSlice", "DeviceClass", "ResourceClaim")
            objects = (self.store.all(kind) for kind in kinds)
            index = Index(self._features, *objects, kubernetes=KUBERNETES)
            outcome = Allocator(index).allocate(self.get_node(), [claim])
        return clone(outcome.allocations[0]) if outcome.allocations else None

    def allocate(self, claim: Obj, allocation: Mapping[str, Any], pods: int = 1) -> Obj:
        """Write an allocation into a claim, in place of any, and reserve it for so many pods."""
        uid = claim["metadata"]["uid"]
        names = [f"pod-{number}" for number in range(pods)]
        users = [{"resource": "pods", "name": name, "uid": f"{name}-of-{uid}"} for name in names]
        status = {"allocation": allocation, "reservedFor": users}
        cleared = dict.fromkeys(status)
        with self.lock:
            for value in (cleared, status):  # an allocation cannot be changed, only taken away
                allocated = self.change(claim, "status", status=value)
        return allocated

    def change(self, obj: Obj, subresource: str = "", **fields: Any) -> Obj:
        """Change fields of an object, as somebody else would."""
        with self.lock:
            return self.api.change(
                Ref.of(obj), patches.make_change("patch", fields), subresource, NAMESPACE
            )

    def begin_deletion(self, claim: Obj) -> None:
        """Delete a claim that kube-scheduler's finalizer keeps, as one that it allocated has."""
        with self.lock:
            protected = self.store.modify(
                claim, lambda new: new["metadata"].update(finalizers=[FINALIZER])
            )
            self.api.delete_stored(protected)

    def delete(self, obj: Obj) -> None:
        """Delete an object, whatever its finalizers say; one that is gone is not an error."""
        with self.lock:
            self.store.remove(obj)

    def put_slice(self, driver: str, node: str, pool: str) -> Obj:
        """Publish a slice as somebody else would, with one device."""
        spec = {
            "driver": driver,
            "nodeName": node,
            "pool": {"name": pool, "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": "somebody-elses"}],
        }
        metadata = {"generateName": f"{node}-"}
        return self.create(
            {"apiVersion": _RESOURCE, "kind": "ResourceSlice", "metadata": metadata, "spec": spec}
        )


_SHARES: Final = 16
"""Parts of a capacity without a policy: a request without an amount would take all of it."""


def _share_of_devices(slices: Sequence[Obj]) -> dict[str, str]:
    """Return capacity -> how much to ask for where all devices may be shared (KEP-5075)."""
    devices = [
        device
        for resource_slice in slices
        for device in resource_slice["spec"].get("devices") or ()
    ]
    if not devices or not all(device.get("allowMultipleAllocations") for device in devices):
        return {}
    shares: dict[str, str] = {}
    for name, capacity in (devices[0].get("capacity") or {}).items():
        policy = capacity.get("requestPolicy") or {}
        if "default" in policy:
            continue
        lowest = (policy.get("validRange") or {}).get("min") or next(
            iter(policy.get("validValues") or ()), None
        )
        amount = parse_quantity(capacity["value"]).nanos // 10**9 // _SHARES
        shares[name] = lowest or str(max(1, amount))
    return shares


def _complete_request(request: Mapping[str, Any], share: Mapping[str, str]) -> dict[str, Any]:
    """Return a request with the class, tolerations and share that every request here has."""
    completed = dict(request)
    common: dict[str, Any] = {"deviceClassName": _CLASS, "tolerations": [{"operator": "Exists"}]}
    if share:
        common["capacity"] = {"requests": dict(share)}
    if "exactly" in completed:
        completed["exactly"] = {**common, **completed["exactly"]}
    alternatives: Sequence[Mapping[str, Any]] = completed.get("firstAvailable", ())
    if alternatives:
        completed["firstAvailable"] = [{**common, **alternative} for alternative in alternatives]
    return completed
