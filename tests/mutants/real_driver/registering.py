"""Defects of how the driver makes itself known to the kubelet."""

from __future__ import annotations

from nvml_driver.kubelet import plugin
from tests.mutants.real_driver.putting import instead

another_name = instead(
    plugin,
    "registration_service",
    lambda original, name, *others: original(f"other-{name}", *others),
)
unknown_version = instead(
    plugin,
    "registration_service",
    lambda original, name, endpoint, _versions, registered: original(
        name, endpoint, ["v99.DRAPlugin"], registered
    ),
)
