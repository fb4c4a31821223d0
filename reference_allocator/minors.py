"""What the allocator of older minors does otherwise, apart from what feature gates say.

Read in structured/internal/stable/ of k8s.io/dynamic-resource-allocation v0.34.4, v0.35.4, v0.36.3
and v0.37.1; the other two implementations of each minor agree. Of what differs, here is what a
correct cluster shows in claims; how an error about an invalid pool is worded is not.
"""

from __future__ import annotations

from dataclasses import dataclass

from reference_allocator.gates import MINORS, nearest_minor


@dataclass(frozen=True, slots=True)
class MinorRules:
    """The rules of one minor.

    Attributes:
        uses_incomplete_pools: whether requests for a number of devices get them from pools whose
            slices are not all there, and slices of other nodes count as missing; until 1.34
            (GatherPools in pools_stable.go, allocateOne in allocator_stable.go).
        config_names_requests: whether a configuration names requests also where it is for all of
            them, and is listed once for each that it names; until 1.36 (Allocate in
            allocator_stable.go).
    """

    uses_incomplete_pools: bool = False
    config_names_requests: bool = False

    @classmethod
    def of(cls, kubernetes: str) -> MinorRules:
        """Those of a Kubernetes version; for one that is not known, of the nearest that is."""
        minor = MINORS.index(nearest_minor(kubernetes))
        return cls(
            uses_incomplete_pools=minor <= MINORS.index("1.34"),
            config_names_requests=minor <= MINORS.index("1.36"),
        )
