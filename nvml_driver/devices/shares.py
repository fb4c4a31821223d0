"""Consumable shares: several claims have one device, each with a part of its memory (KEP-5075).

Modes as kubernetes-sigs/dra-driver-nvidia-gpu has them, ``consumable_shares.go``: ``unlimited``
lets any number of claims in, with memory only if they ask for it; ``memory`` lets them in until the
memory is given away, and who does not ask takes all; a number lets in so many, by a capacity of its
own, ``shares``.
"""

from __future__ import annotations

from dataclasses import replace

from nvml_driver.features import ConsumableShares
from nvml_driver.model.inventory import Device, RequestPolicy

STEP = 2**20
"""Memory is given in MiB. The API wants the most that can be asked for to be a multiple."""


def share(device: Device, mode: ConsumableShares) -> Device:
    """The device, open for several claims."""
    capacity = dict(device.capacity)
    policies = dict(device.request_policies)
    memory = capacity.get("memory", 0) // STEP * STEP
    if "memory" in capacity and memory >= 2 * STEP:
        capacity["memory"] = memory
        whole = mode == "memory"
        policies["memory"] = RequestPolicy(
            default=memory if whole else 0, minimum=STEP if whole else 0, step=STEP
        )
    if isinstance(mode, int):
        capacity["shares"] = mode
        policies["shares"] = RequestPolicy(default=1, minimum=1, step=1)
    return replace(
        device, capacity=capacity, request_policies=policies, allow_multiple_allocations=True
    )
