"""Deliberate defects of the reference, so that the suite itself can be tested.

A conformance suite that passes everything is worthless. Each fault breaks one rule at one place;
a scenario that is about this rule must fail on a reference that has the fault. Nothing but tests
of the suite switches one on.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum


class Fault(Enum):
    """One deliberate defect: the member's value says in one line what goes wrong."""

    ACCEPT_INVALID_POD_CLAIM = "the API server does not check pod.spec.resourceClaims"
    ALL_TAKES_ONE = "allocationMode All takes one device"
    DOUBLE_ALLOCATION = "the scheduler does not see which devices are in use"
    FORGETS_RESERVATION = "the scheduler allocates without adding the pod to reservedFor"
    IGNORE_MATCH_ATTRIBUTE = "the scheduler ignores the constraints of a claim"
    IGNORE_SELECTORS = "the scheduler ignores CEL selectors of claims and classes"
    IGNORES_COUNT = "the scheduler takes one device whatever the count"
    LEAK_CDI = "unprepare leaves the claim prepared and its CDI spec behind"
    LOSES_CONFIG = "the scheduler does not copy opaque configuration into the allocation"
    NEVER_RELEASE = "the claim controller does not release a claim when its pods are done"
    NO_FINALIZER = "the scheduler allocates without the delete-protection finalizer"
    NO_OWNER_REFERENCE = "generated claims have no owner reference"
    NO_POD_CLAIM_ANNOTATION = "generated claims lack the pod-claim-name annotation"
    OTHER_NAMESPACE = "a missing claim is taken from another namespace"
    REQUEST_FILTER_IGNORED = "a container that names one request sees all devices of the claim"
    SEES_ALL_CLAIMS = "every container of a pod sees all devices of the pod"
    SHARES_TEMPLATE_CLAIM = "pods that use the same template share one generated claim"
    WRONG_DEVICE_IN_CONTAINER = "a container gets another device than the one allocated"
    WRONG_VERSION_CONVERSION = "v1beta1 requests lose their selectors when they are stored"

    @property
    def title(self) -> str:
        """The name used on command lines and in reports, for example ``double-allocation``."""
        return self.name.lower().replace("_", "-")


def parse(names: Iterable[str]) -> frozenset[Fault]:
    """Faults by title.

    Raises:
        ValueError: a title that no fault has; the message lists those that exist.
    """
    by_title = {fault.title: fault for fault in Fault}
    found = set()
    for name in names:
        if name not in by_title:
            raise ValueError(f"unknown fault {name!r}; known are {', '.join(sorted(by_title))}")
        found.add(by_title[name])
    return frozenset(found)
