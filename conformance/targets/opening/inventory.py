"""What the reference has: its nodes, and the driver of their devices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from conformance.seam.values import simulated_devices
from conformance.targets.opening.options import (
    DEFAULT_SIMULATION,
    OTHER_SIMULATION,
    TargetOptions,
    is_simulated,
)
from kube.base.errors import UsageError
from kube.values import Obj
from nvml_driver.options import DEFAULT_DRIVER_NAME

if TYPE_CHECKING:
    from conformance.scenario.driver.profile import DriverProfile
    from conformance.scenario.shape import ClusterShape, ShapeNode
    from conformance.targets.reference.device_source import (
        DescribedDevices,
        DeviceSource,
        SimulatedGpus,
    )


def list_inventory(
    options: TargetOptions,
    shape: ClusterShape | None,
    profile: DriverProfile,
    published: Sequence[Obj] | None,
    nodes: Sequence[ShapeNode] | None,
) -> tuple[Sequence[ShapeNode], Sequence[Obj] | None]:
    """Return the nodes of the reference, and its driver's slices where somebody has given some.

    Raises UsageError: a shape has slices, and none of them is of the profile's driver.
    """
    from conformance.scenario.shape import ShapeNode

    if shape is not None:
        drivers = {str(item["spec"].get("driver")) for item in shape.spec.slices or ()}
        if drivers and profile.driver not in drivers:
            raise UsageError(
                f"--simulate {options.simulate}: the ResourceSlices are of the driver "
                f"{' and '.join(sorted(drivers))}, and the profile of {profile.driver}; give "
                "--driver the profile of that driver"
            )
        return shape.spec.nodes, shape.spec.slices
    slices = [item for item in published or () if item["spec"]["driver"] == profile.driver]
    simulated = not slices or bool(simulated_devices(profile.driver, slices))
    if published is None or (profile.spec.simulated.own_driver and simulated):
        alike = ShapeNode(name="reference-node", count=options.node_count or 1)
        return alike.expand_nodes() if options.node_count else (), None
    names = {item["spec"].get("nodeName") for item in slices} - {None, ""}
    named = [ShapeNode(name=name) for name in sorted(names)]
    return named if nodes is None else nodes, slices


def choose_device_source(
    options: TargetOptions, is_shape: bool, profile: DriverProfile, slices: Sequence[Obj] | None
) -> DeviceSource:
    """Return the driver of the reference's nodes: our own on simulated GPUs, or a described one.

    Raises UsageError: an option has no effect on that driver, or its devices are not known.
    """
    from conformance.targets.reference.device_source import DescribedDevices, SimulatedGpus

    if slices is not None:
        own = [item for item in slices if item["spec"].get("driver") == profile.driver]
        return DescribedDevices(profile, own, [item for item in slices if item not in own])
    if is_simulated(profile):
        gpus = "" if is_shape else options.simulate
        return SimulatedGpus(
            gpus or DEFAULT_SIMULATION,
            profile.driver,
            dynamic_mig=options.dynamic_mig,
            prefix=profile.spec.simulated.prefix,
        )
    if options.dynamic_mig or (options.simulate and not is_shape):
        flag = "--dynamic-mig" if options.dynamic_mig else "--simulate"
        raise UsageError(
            f"{flag} is for our own driver, {DEFAULT_DRIVER_NAME}; with --driver"
            f" {options.profile_name} it would do nothing"
        )
    return _describe_devices(profile, f"--driver {options.profile_name}")


def choose_other_source(
    options: TargetOptions, profile: DriverProfile, published: Sequence[Obj] | None
) -> SimulatedGpus | DescribedDevices:
    """Return the other driver; ``published`` includes its slices, if a cluster has some.

    Raises UsageError: its devices are not known.
    """
    from conformance.targets.reference.device_source import DescribedDevices, SimulatedGpus

    if is_simulated(profile):
        return SimulatedGpus(OTHER_SIMULATION, profile.driver, prefix=profile.spec.simulated.prefix)
    slices = [item for item in published or () if item["spec"]["driver"] == profile.driver]
    if slices:
        return DescribedDevices(profile, slices)
    return _describe_devices(profile, f"--other-driver {options.other_driver}")


def _describe_devices(profile: DriverProfile, option: str) -> DescribedDevices:
    from conformance.targets.reference.device_source import DescribedDevices

    if profile.spec.simulated.devices:
        return DescribedDevices(profile)
    raise UsageError(
        f"{option}: the reference does not know the devices of "
        f"{profile.driver}; describe some in the profile (spec.simulated.devices), or run in a "
        "cluster (--target cluster)"
    )
