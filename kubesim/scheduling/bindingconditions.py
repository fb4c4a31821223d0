"""Devices that have to be made ready before a pod may be bound to its node (KEP-5007).

Follows isClaimReadyForBinding, isClaimTimeout and the end of PreBind of the dynamicresources plugin
(pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go), which polls every 5 s; here
claims are looked at after each change. Gates: DRADeviceBindingConditions and
DRAResourceClaimDeviceStatus.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from kube.slices import results_of
from kube.values import Obj, device_key
from kubesim import pods
from kubesim.cluster import Cluster
from kubesim.scheduling.binding import Binder
from kubesim.store import name_of, uid_of

TIMEOUT: Final = 600.0  # Seconds, the default of ``bindingTimeout`` in DynamicResourcesArgs.


class Readiness(Enum):
    """What an allocated claim's devices say."""

    READY = "ready"
    WAITING = "waiting"
    FAILED = "failed"


class BindingConditions:
    """Reads the binding conditions of the claims in one cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def must_wait_for(self, claim: Obj) -> bool:
        """Return whether a claim has a device that must be waited for."""
        if not self._cluster.features.device_binding_and_status:
            return False
        return any(result.get("bindingConditions") for result in results_of(claim))

    def read_readiness(self, claim: Obj) -> Readiness:
        """Return what the drivers have reported in ``status.devices`` of an allocated claim."""
        worst = Readiness.READY
        for result in results_of(claim):
            if not result.get("bindingConditions"):
                continue
            conditions = _read_conditions(claim, result)
            failures = result.get("bindingFailureConditions") or []
            if any(conditions.get(name) for name in failures):
                return Readiness.FAILED
            if not all(conditions.get(name) for name in result["bindingConditions"]):
                worst = Readiness.WAITING
        return worst

    def is_late(self, claim: Obj) -> bool:
        """Return whether the devices of an allocated claim have been waited for long enough."""
        since = claim["status"]["allocation"].get("allocationTimestamp")
        return since is not None and self._cluster.clock.format_timestamp(-TIMEOUT) > since

    def cannot_bind(self, claim: Obj) -> bool:
        """Return whether an allocated claim will not become ready and should be allocated anew."""
        if not self.must_wait_for(claim):
            return False
        state = self.read_readiness(claim)
        return state is Readiness.FAILED or (state is Readiness.WAITING and self.is_late(claim))


class WaitingPods:
    """Binds pods at once, or when their devices are ready.

    ``assumed``: pod uid -> node, of those that wait; kept up to date here.
    """

    def __init__(
        self,
        cluster: Cluster,
        binder: Binder,
        conditions: BindingConditions,
        assumed: dict[str, str],
    ) -> None:
        self._cluster = cluster
        self._binder = binder
        self._conditions = conditions
        self._assumed = assumed

    def __contains__(self, pod: Obj) -> bool:
        return uid_of(pod) in self._assumed

    def bind(self, pod: Obj, node: str) -> None:
        """Bind a pod whose claims are reserved, or let it wait."""
        pod = self._cluster.store.by_uid(uid_of(pod)) or pod
        if not any(self._conditions.must_wait_for(claim) for claim in self._claims(pod)):
            self._binder.bind(pod, node)
            return
        self._assumed[uid_of(pod)] = node
        self._cluster.clock.wake_in(TIMEOUT + 1)
        self._binder.report_waiting(pod, node)
        self.sync()

    def sync(self) -> None:
        """Bind those that are ready, and give up those whose devices failed or took too long."""
        for uid, node in list(self._assumed.items()):
            pod = self._cluster.store.by_uid(uid)
            if pod is None or pods.is_deleted(pod):
                del self._assumed[uid]
                continue
            problem, ready = "", True
            for claim in self._claims(pod):
                if not self._conditions.must_wait_for(claim):
                    continue
                state = self._conditions.read_readiness(claim)
                ready = ready and state is Readiness.READY
                if state is Readiness.FAILED:
                    problem = f"device binding failed: claim={name_of(claim)}"
                elif state is Readiness.WAITING and self._conditions.is_late(claim):
                    problem = f"device binding timeout: claim={name_of(claim)}"
            if problem:
                del self._assumed[uid]
                self._binder.unreserve(pod)
                self._binder.report_pre_bind_error(pod, problem)
            elif ready:
                del self._assumed[uid]
                self._binder.bind(pod, node)

    def _claims(self, pod: Obj) -> list[Obj]:
        named = [claim for _, claim in self._cluster.claims_of(pod)]
        special = self._cluster.extended_claim_of(pod)
        return [claim for claim in (*named, special) if claim is not None]


def _read_conditions(claim: Obj, result: Obj) -> dict[str, bool]:
    """Return condition -> whether it is true, for one device, or one share of it.

    Upstream takes the first report on the device, whichever share it is about (docs/found/).
    """
    for device in claim["status"].get("devices") or []:
        if device_key(device) == device_key(result):
            return {
                condition["type"]: condition["status"] == "True"
                for condition in device.get("conditions") or []
            }
    return {}
