"""What a kubelet's PodResources API says of a container's claims (KEP-3695)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ListedDevice:
    """A device of a claim.

    Attributes:
        driver, pool, device: as in the claim's allocation.
        cdi: the CDI devices that the driver answered for it, fully qualified.
    """

    driver: str
    pool: str
    device: str
    cdi: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ListedClaim:
    """A ResourceClaim that a container uses, with all of its devices."""

    namespace: str
    name: str
    devices: tuple[ListedDevice, ...]
