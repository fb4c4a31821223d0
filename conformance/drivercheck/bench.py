"""The bench that a driver is put on: claims for its devices, and calls about them.

Checks see nothing else. What a check makes is undone by `clean`, which says whether the driver let
itself be brought back; if not, and it was started here, the next check gets a new one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from conformance.drivercheck import kubelet
from conformance.drivercheck.driver import DriverUnderCheck
from conformance.drivercheck.kubelet import Device, Plugin, RefusedError
from conformance.drivercheck.violations import NotOfferedError, UnanswerableError, ViolationError
from kube.base.text import one_line
from kube.values import Obj


class Bench:
    """A driver, and the claims of the present check.

    Attributes:
        driver: starts, stops and registers.
        api: the API server that it sees.
        names_devices: whether an answer has had devices. One that never has is right, too: it may
            attach them by other ways than CDI ("each request may have zero or more devices",
            k8s.io/kubelet/pkg/apis/dra/v1/api.proto).
    """

    def __init__(self, driver: DriverUnderCheck) -> None:
        self.driver = driver
        self.api = driver.api
        self._claims: list[Obj] = []
        self.names_devices = False

    def pending_claim(self, *requests: Mapping[str, Any], **named: str) -> Obj:
        """Create a claim; ``named``: its name, or namespace."""
        claim = self.api.objects.create_claim(self.driver.name, *requests, **named)
        self._claims.append(claim)
        return claim

    def allocated_claim(self, *requests: Mapping[str, Any], **named: str) -> Obj:
        """Create an allocated claim. Raises UnanswerableError: devices do not suffice."""
        claim = self.pending_claim(*requests, **named)
        return self.allocate(claim, self.find_allocation(claim))

    def find_allocation(self, claim: Obj) -> dict[str, Any]:
        """Return what kube-scheduler would allocate to a claim.

        Raises UnanswerableError: the devices do not suffice; NotOfferedError: it takes two, and the
        driver has one.
        """
        allocation = self.api.objects.find_allocation(claim)
        if allocation is None:
            count = sum(
                len(resource_slice["spec"].get("devices") or ())
                for resource_slice in self.driver.list_slices()
            )
            if count == 1:
                raise NotOfferedError("the driver has one device")
            raise UnanswerableError(
                f"there are not enough devices for it: the driver published {count}"
            )
        return allocation

    def allocate(self, claim: Obj, allocation: Mapping[str, Any], *, pods: int = 1) -> Obj:
        return self.api.objects.allocate(claim, allocation, pods)

    def delete_claim(self, claim: Obj) -> None:
        self.api.objects.delete(claim)

    def prepare(self, *claims: Obj, plugin: Plugin | None = None) -> list[tuple[Device, ...]]:
        """Prepare claims in one call; return the devices of each. Raises ViolationError."""
        try:
            answer = (plugin or self.driver.plugin).prepare(map(kubelet.claim_reference, claims))
        except RefusedError as error:
            raise ViolationError(f"expected a prepared claim; found {error}") from None
        uids = _check_uids("NodePrepareResources", claims, answer)
        _expect_no_errors("prepared", {uid: answer[uid].error for uid in uids})
        devices = [answer[uid].devices for uid in uids]
        self.names_devices |= any(devices)
        return devices

    def prepared_claim(self) -> Obj:
        """Create a claim that is prepared; raises as `allocated_claim` and `prepare`."""
        claim = self.allocated_claim()
        self.prepare(claim)
        return claim

    def configured_claim(self, driver: str, parameters: Mapping[str, Any]) -> Obj:
        """Create an allocated claim with opaque configuration for a driver."""
        claim = self.pending_claim()
        allocation = self.find_allocation(claim)
        opaque = {"driver": driver, "parameters": parameters}
        config = {"source": "FromClaim", "requests": [], "opaque": opaque}
        allocation["devices"]["config"] = [config]
        return self.allocate(claim, allocation)

    def try_prepare(self, *claims: Obj, seconds: float = kubelet.CALL_SECONDS) -> list[str]:
        """Prepare claims that may be refused; return the error of each (empty: it was prepared)."""
        try:
            answer = self.driver.plugin.prepare(map(kubelet.claim_reference, claims), seconds)
        except RefusedError as error:
            return [error.text for _ in claims]
        uids = _check_uids("NodePrepareResources", claims, answer)
        return [answer[uid].error for uid in uids]

    def unprepare(self, *claims: Obj, plugin: Plugin | None = None) -> None:
        """Unprepare claims in one call. Raises ViolationError: it failed, or answered otherwise."""
        try:
            answer = (plugin or self.driver.plugin).unprepare(map(kubelet.claim_reference, claims))
        except RefusedError as error:
            raise ViolationError(f"expected success; found {error}") from None
        _check_uids("NodeUnprepareResources", claims, answer)
        _expect_no_errors("unprepared", answer)

    def clean(self) -> bool:
        """Unprepare and delete what a check made; return whether the driver went along."""
        self.api.release()
        self.driver.begin_check()
        claims, self._claims = self._claims, []
        try:
            if claims:
                self.unprepare(*claims)
        except ViolationError:
            return False
        finally:
            for claim in claims:
                self.delete_claim(claim)
        return True

    @contextmanager
    def api_down(self) -> Iterator[None]:
        """Let the API server answer every request with 503 meanwhile."""
        self.api.faults.refuse = 503
        try:
            yield
        finally:
            self.api.release()


def _check_uids(method: str, claims: tuple[Obj, ...], answer: Mapping[str, Any]) -> list[str]:
    """Return the uids of the claims if an answer has one entry for each and no other.

    Source: cm/dra/manager.go, prepareResources.
    """
    uids = [claim["metadata"]["uid"] for claim in claims]
    missing = [uid for uid in uids if uid not in answer]
    unasked = [uid for uid in answer if uid not in uids]
    if missing or unasked:
        raise ViolationError(
            f"expected exactly the claims of the request in the answer to {method}; "
            f"missing: {', '.join(map(repr, missing)) or 'none'}; not asked for: "
            f"{one_line(', '.join(map(repr, unasked)), 200) or 'none'}"
        )
    return uids


def _expect_no_errors(state: str, errors: Mapping[str, str]) -> None:
    for uid, error in errors.items():
        if error:
            raise ViolationError(
                f"expected claim {uid} to be {state}; found the error {one_line(error, 200)}"
            )
