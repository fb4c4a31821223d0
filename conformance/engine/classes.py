"""Make sure that the DeviceClasses of the driver profile exist before the node tier begins."""

from __future__ import annotations

from conformance.engine.kinds import RESOURCE_V1
from conformance.engine.ledger import Ledger
from conformance.scenario.profile import DriverProfile
from conformance.targets.base import ApiError, Ref, Scope


def ensure_classes(profile: DriverProfile, scope: Scope, ledger: Ledger) -> tuple[str, ...]:
    """Create each class that the cluster does not have; one that is there is left as it is.

    Returns:
        Names of the classes that were made.
    """
    made = []
    for entry in profile.spec.classes.values():
        if scope.get(Ref(RESOURCE_V1, "DeviceClass", entry.name)) is not None:
            continue
        manifest = {
            "apiVersion": RESOURCE_V1,
            "kind": "DeviceClass",
            "metadata": {"name": entry.name},
            "spec": entry.spec,
        }
        try:
            ledger.create(manifest)
        except ApiError as error:
            if error.reason != "AlreadyExists":
                raise
        else:
            made.append(entry.name)
    return tuple(made)
