"""The state of a cluster between decisions, kept up to date by events.

A scheduler does not look at its whole cluster for each pod: it hears of changes. An `Index` is
built once and then told of slices, claims and classes that came, changed or went, so that an event
costs what it is about, and a decision what its node has. What has been computed about devices
(their values for CEL, what selectors say about them) stays until the device itself changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from reference_allocator.api import AllocatedDevice, DeviceClass, ResourceClaim, ResourceSlice
from reference_allocator.api.claims import AllocatedClaim
from reference_allocator.api.quoting import go_quote
from reference_allocator.api.reading import read_all
from reference_allocator.cluster.state import AllocatedState
from reference_allocator.cluster.views import Views
from reference_allocator.environment import selector_environment
from reference_allocator.features import Features
from reference_allocator.gates import LATEST, MinorRules
from reference_allocator.matching.selectors import Selectors
from reference_allocator.matching.validate import Validator

Object = Mapping[str, Any]
"""A Kubernetes object as JSON."""

_Results = tuple[AllocatedDevice, ...]
_ClaimKey = tuple[str, str]


class Index:
    """The slices, classes and allocated claims of a cluster. Not thread-safe.

    Wherever a JSON object is taken, the value that was read from it (`reference_allocator.api`) may
    be given instead.

    Args:
        features: what may be used; fixed for the life of the index.
        slices: v1 ResourceSlices, with DeviceTaintRules already applied.
        device_classes: v1 DeviceClasses.
        allocated: v1 ResourceClaims; those with `status.allocation` say what is in use.
        kubernetes: the version whose rules apply and whose CEL environment selectors are compiled
            in; for one that is not known, the nearest that is.

    Attributes:
        unusable: why nothing can be allocated; empty while something can. Since 1.38 that is so
            while a claim consumes less than nothing of a device.

    Raises:
        InputError: an object has not the form of its kind; the path starts with `$.slices[i]`,
            `$.deviceClasses[i]` or `$.allocated[i]`.
    """

    def __init__(
        self,
        features: Features,
        slices: Sequence[Object | ResourceSlice] = (),
        device_classes: Sequence[Object | DeviceClass] = (),
        allocated: Sequence[Object | ResourceClaim] = (),
        *,
        kubernetes: str = LATEST,
    ) -> None:
        read_slices = read_all(slices, ResourceSlice.from_dict, "slices")
        classes = read_all(device_classes, DeviceClass.from_dict, "deviceClasses")
        claims = read_all(allocated, AllocatedClaim.read, "allocated")
        self.features = features
        self.rules = MinorRules.for_version(kubernetes)
        self.selectors = Selectors(selector_environment(features, kubernetes))
        self._state = AllocatedState(features, self.rules)
        self.views = Views(read_slices, features, self._state, self.rules)
        self._classes = {item.name: item for item in classes}
        self.validator = Validator(features, self._classes)
        self._claims: dict[_ClaimKey, list[_Results]] = {}
        self._negative: dict[_ClaimKey, str] = {}
        self.unusable = ""
        for claim in claims:
            self._add_claim(claim)

    def put_slice(self, item: Object | ResourceSlice) -> None:
        """Record that a slice was added or updated; slices are told apart by name.

        Raises:
            InputError: the object has not the form of a ResourceSlice.
        """
        read = ResourceSlice.from_dict(item)
        self.views.put_slice(read)

    def remove_slice(self, name: str) -> bool:
        """Record that a slice was deleted; return False where there is none of that name."""
        return self.views.remove_slice(name)

    def put_claim(self, claim: Object | ResourceClaim) -> None:
        """Record that a claim was added or updated; namespace and name tell claims apart.

        A claim without an allocation has no devices; it may be recorded or not.

        Raises:
            InputError: the object has not the form of a ResourceClaim.
        """
        read = ResourceClaim.from_dict(claim)
        self.remove_claim(read.namespace, read.name)
        self._add_claim(read)

    def remove_claim(self, namespace: str, name: str) -> bool:
        """Record that a claim was deleted or deallocated; return False where it had no devices."""
        if self._negative.pop((namespace, name), None):
            self._explain_unusable()
        allocations = self._claims.pop((namespace, name), [])
        for results in allocations:
            self._state.remove(results)
        return bool(allocations)

    def put_class(self, item: Object | DeviceClass) -> None:
        """Record that a class was added or updated.

        Raises:
            InputError: the object has not the form of a DeviceClass.
        """
        read = DeviceClass.from_dict(item)
        self._classes[read.name] = read
        self.validator.forget()

    def remove_class(self, name: str) -> bool:
        """Record that a class was deleted; return False where there is none of that name."""
        self.validator.forget()
        return self._classes.pop(name, None) is not None

    def _add_claim(self, claim: AllocatedClaim | ResourceClaim) -> None:
        if claim.results:
            self._state.add(claim.results)
            key = (claim.namespace, claim.name)
            self._claims.setdefault(key, []).append(claim.results)
            if self.rules.refuses_negative_amounts and self.features.consumable_capacity:
                problem = next(_explain_negative(claim), None)
                if problem is not None:
                    self._negative[key] = problem
                    self._explain_unusable()

    def _explain_unusable(self) -> None:
        """Say why nothing can be allocated (getCapacities, the scheduler's allocateddevices.go)."""
        self.unusable = ""
        if self._negative:
            first, *others = sorted(self._negative.values())
            count = f" (and {len(others)} more claims with invalid consumed capacity)"
            self.unusable = f"gather allocation state: {first}{count if others else ''}"


def _explain_negative(claim: AllocatedClaim | ResourceClaim) -> Iterator[str]:
    """Yield what a claim consumes less than nothing of, in upstream's words."""
    for result in claim.results or ():
        for name, amount in sorted(result.consumed_capacity.items()):
            if amount.nanos < 0:
                yield (
                    f"claim {claim.namespace}/{claim.name}, device {result.id}: consumed capacity "
                    f"{go_quote(name)} must not be negative, got {amount}"
                )
