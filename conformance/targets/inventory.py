"""What the reference has: its nodes, and the driver of their devices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from conformance.errors import UsageError
from conformance.targets.base import Obj
from conformance.targets.options import DEFAULT_SIMULATION, REFERENCE_DRIVER, TargetOptions

if TYPE_CHECKING:
    from conformance.scenario.profile import DriverProfile
    from conformance.scenario.shape import ClusterShape, ShapeNode
    from conformance.targets.reference.nodes.device_source import DeviceSource


def inventory(
    options: TargetOptions,
    shape: ClusterShape | None,
    profile: DriverProfile,
    published: Sequence[Obj] | None,
    nodes: Sequence[ShapeNode] | None,
) -> tuple[Sequence[ShapeNode], Sequence[Obj] | None]:
    """The nodes of the reference, and the slices of their driver where somebody has given some."""
    from conformance.scenario.shape import ShapeNode

    if shape is not None:
        for item in shape.spec.slices or ():
            if item["spec"].get("driver") != profile.driver:
                raise UsageError(
                    f"--simulate {options.simulate}: the ResourceSlices are of the driver "
                    f"{item['spec'].get('driver')}, and the profile of {profile.driver}; give "
                    "--driver the profile of that driver"
                )
        return shape.spec.nodes, shape.spec.slices
    if published is None or profile.spec.simulated.own_driver:
        alike = ShapeNode(name="reference-node", count=options.nodes or 1)
        return alike.each() if options.nodes else (), None
    slices = [item for item in published if item["spec"]["driver"] == profile.driver]
    names = {item["spec"].get("nodeName") for item in slices} - {None, ""}
    named = [ShapeNode(name=name) for name in sorted(names)]
    return named if nodes is None else nodes, slices


def device_source(
    options: TargetOptions, is_shape: bool, profile: DriverProfile, slices: Sequence[Obj] | None
) -> DeviceSource:
    """The driver of the reference's nodes: our own on simulated GPUs, or one that is described."""
    from conformance.targets.reference.nodes.device_source import DescribedDevices, SimulatedGpus

    if slices is not None:
        return DescribedDevices(profile, slices)
    if profile.driver == REFERENCE_DRIVER or profile.spec.simulated.own_driver:
        gpus = "" if is_shape else options.simulate
        return SimulatedGpus(
            gpus or DEFAULT_SIMULATION, profile.driver, dynamic_mig=options.dynamic_mig
        )
    if options.dynamic_mig or (options.simulate and not is_shape):
        flag = "--dynamic-mig" if options.dynamic_mig else "--simulate"
        raise UsageError(
            f"{flag} is for our own driver, {REFERENCE_DRIVER}; with --driver"
            f" {options.profile_name} it would do nothing"
        )
    if profile.spec.simulated.devices:
        return DescribedDevices(profile)
    raise UsageError(
        f"--driver {options.profile_name}: the reference does not know the devices of "
        f"{profile.driver}; describe some in the profile (spec.simulated.devices), or run in a "
        "cluster (--target cluster)"
    )
