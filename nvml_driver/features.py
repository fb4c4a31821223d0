"""What a driver publishes beyond full GPUs and static MIG devices; all off by default.

Named after the feature gates of kubernetes-sigs/dra-driver-nvidia-gpu (``pkg/featuregates``) that
do the same. Like there, some do not go together, and saying so early beats a slice that is wrong.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

ConsumableShares = Literal["unlimited", "memory"] | int


@dataclass(frozen=True, slots=True, kw_only=True)
class Features:
    """Switches for discovery.

    Attributes:
        dynamic_mig: publish what could be partitioned, and make it when it is prepared.
        vfio: publish GPUs that the kernel driver vfio-pci has.
        numa_list: ``resource.kubernetes.io/numaNode`` is a list of int instead of one int. A
            server without the gate DRAListTypeAttributes (1.37, off by default) refuses such a
            slice: it drops the value that it does not know and then finds none.
        consumable_shares: several claims may have shares of a device: ``unlimited``, limited by
            ``memory``, or at most so many.
        ignored_xids: errors of applications beyond the well-known ones: they taint with effect
            None.
    """

    dynamic_mig: bool = False
    vfio: bool = False
    numa_list: bool = False
    consumable_shares: ConsumableShares | None = None
    ignored_xids: frozenset[int] = frozenset()

    def __post_init__(self) -> None:
        shares = self.consumable_shares
        if isinstance(shares, int) and shares < 1:
            raise ValueError(f"consumable_shares must be at least 1, not {shares}")
        if isinstance(shares, str) and shares not in ("unlimited", "memory"):
            raise ValueError(
                f"consumable_shares must be unlimited, memory or a number, not {shares!r}"
            )
