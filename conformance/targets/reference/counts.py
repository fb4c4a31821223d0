"""What the parts of a reference have counted since they started."""

from __future__ import annotations

from collections import Counter

from conformance.scenario.observation import CREATES, Sample
from conformance.targets.seam.values import Obj

_Series = tuple[str, str, tuple[tuple[str, str], ...]]
"""Component, metric, labels."""


class Counts:
    """The counters of all components; ``node-1/kubelet`` is that of a node."""

    def __init__(self) -> None:
        self._series: Counter[_Series] = Counter()

    def count(self, component: str, metric: str, **labels: str) -> None:
        """One more."""
        self._series[component, metric, tuple(sorted(labels.items()))] += 1

    def created(self, component: str, claim: Obj, *, success: bool) -> None:
        """A claim was made for a pod, or refused.

        The labels are those of getClaimCreateMetricLabels
        (pkg/controller/resourceclaim/controller.go).
        """
        self.count(
            component,
            CREATES,
            status="success" if success else "failure",
            admin_access=admin_access(claim),
            owner_api_group="",
            owner_api_kind="Pod",
        )

    def forget(self, component: str) -> None:
        """A new process counts from 0."""
        for series in [series for series in self._series if series[0] == component]:
            del self._series[series]

    def samples(self, component: str, metric: str) -> list[Sample]:
        """The series of a metric; one without an event is not there, as in Go's client library."""
        return [
            Sample(dict(labels), float(value))
            for (of, name, labels), value in self._series.items()
            if (of, name) == (component, metric)
        ]


def admin_access(claim: Obj) -> str:
    """``true`` where some request asks for it; alternatives cannot."""
    requests = (claim["spec"].get("devices") or {}).get("requests") or []
    asks = ((request.get("exactly") or {}).get("adminAccess") for request in requests)
    return str(any(asks)).lower()
