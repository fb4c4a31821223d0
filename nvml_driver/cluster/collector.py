"""Unprepares claims that no longer exist, for when nobody else will.

Normally the kubelet asks for that. It does not after a crash of its own that lost its state, or
when a pod was deleted by force while the driver was down; the claim would keep its device for ever
(kubernetes-sigs/dra-driver-nvidia-gpu#1278).

A claim that is gone from the API server may still have a container that is being stopped. So a
claim is collected only when it was found missing twice, with a pause that is longer than a kubelet
takes to stop a pod that was deleted by force. Nothing is lost by that: the kubelet itself takes as
long for pods that are gone (kubernetes v1.37.1, ``pkg/kubelet/cm/dra/manager.go``,
defaultReconcilePeriod: 60 s).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection

from nvml_driver.core import DriverCore
from nvml_driver.errors import DriverError
from nvml_driver.model.prepared import ClaimRecord
from nvml_driver.prepare.claims import ClaimGetter
from nvml_driver.worker import Worker

_LOG = logging.getLogger(__name__)
INTERVAL_SECONDS = 600.0
CONFIRM_SECONDS = 60.0


class Collector(Worker):
    """A thread that looks after the claims at start and then from time to time."""

    def __init__(
        self,
        core: DriverCore,
        get_claim: ClaimGetter,
        *,
        interval: float = INTERVAL_SECONDS,
        confirm: float = CONFIRM_SECONDS,
        active: Callable[[], bool] = lambda: True,
    ) -> None:
        super().__init__("claim-collector")
        self._core = core
        self._get_claim = get_claim
        self._interval = interval
        self._confirm = confirm
        self._active = active

    def find_missing(self) -> set[str]:
        """Return the uids in the checkpoint that the API server lacks. Raises DriverError."""
        return {record.uid for record in self._core.list_records() if self._is_missing(record)}

    def unprepare_missing(self, missing_before: Collection[str]) -> set[str]:
        """Unprepare those that are still missing; return all missing now. Raises DriverError."""
        missing = self.find_missing()
        for uid in missing & set(missing_before):
            try:
                self._core.unprepare(uid)
            except DriverError as error:
                _LOG.error("claim uid %s does not exist and cannot be unprepared: %s", uid, error)
            else:
                _LOG.warning("claim uid %s does not exist any more and was unprepared", uid)
        return missing

    def _is_missing(self, record: ClaimRecord) -> bool:
        try:
            claim = self._get_claim(record.namespace, record.name)
        except DriverError as error:
            _LOG.warning("%s cannot be looked up: %s", record, error)
            return False
        return claim is None or (claim.get("metadata") or {}).get("uid") != record.uid

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                if self._active():
                    missing = self.find_missing()
                    if missing:
                        if self._stopping.wait(self._confirm):
                            return
                        self.unprepare_missing(missing)
            except DriverError as error:
                _LOG.error("claims that no longer exist cannot be collected: %s", error)
            self._stopping.wait(self._interval)
