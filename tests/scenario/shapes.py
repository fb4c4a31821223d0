"""Shapes of correct clusters, in each of which every shipped scenario passes or is skipped."""

from __future__ import annotations

from pathlib import Path

from conformance.targets.opening.options import TargetOptions
from reference_allocator.gates import MINORS, gates_for_version

EXAMPLE = "gpu.example.com"
FABRIC = str(Path(__file__).with_name("fabric.yaml"))
OWN_WAYS = {file.stem: str(file) for file in Path(__file__).with_name("drivers").glob("*.yaml")}
"""Drivers that containers show each in its own way."""
MIG = "gpu.nvidia.com-mig"


def _gates(minor: str, *stages: str, on: bool) -> dict[str, bool]:
    """All gates of these stages that can be set."""
    return {
        gate.name: on
        for gate in gates_for_version(minor).values()
        if gate.stage in stages and not gate.locked and gate.name != "DynamicResourceAllocation"
    }


SIZES: dict[str, TargetOptions] = {
    "1x1": TargetOptions(simulate="t4x1"),
    "1x2": TargetOptions(simulate="t4x2"),
    "2x1": TargetOptions(nodes=2, simulate="t4x1"),
    "3x1": TargetOptions(nodes=3, simulate="t4x1"),
    "2x4": TargetOptions(nodes=2, simulate="t4x4"),
    "4x8": TargetOptions(nodes=4, simulate="l40sx8"),
    "control plane only": TargetOptions(nodes=0),
    "no devices": TargetOptions(nodes=2, simulate="t4x0"),
}
SITUATIONS: dict[str, TargetOptions] = {
    name: TargetOptions(simulate=name)
    for name in (
        "nodes-without-gpus",
        "one-gpu-held",
        "one-gpu-tainted",
        "cordoned-node",
        "not-ready-node",
        "tainted-nodes",
        "shared-gpus",
    )
}
DRIVERS: dict[str, TargetOptions] = {
    "static MIG": TargetOptions(driver=MIG, simulate="mixed"),
    "static MIG, full GPUs": TargetOptions(simulate="mixed"),
    "dynamic MIG": TargetOptions(driver=MIG, simulate="a30x4", dynamic_mig=True),
    "dynamic MIG, full GPUs": TargetOptions(simulate="a100-40x8", dynamic_mig=True),
    "example driver": TargetOptions(driver=EXAMPLE),
    "example driver, 2 nodes": TargetOptions(driver=EXAMPLE, nodes=2),
    "several pools": TargetOptions(driver=EXAMPLE, simulate="several-pools"),
    "two drivers": TargetOptions(driver=EXAMPLE, simulate="two-drivers"),
    "network-attached": TargetOptions(driver=FABRIC, simulate="network-attached"),
    **{
        f"{name} driver, {nodes} nodes": TargetOptions(driver=file, nodes=nodes)
        for name, file in sorted(OWN_WAYS.items())
        for nodes in (1, 2)
    },
}
VERSIONS: dict[str, TargetOptions] = {
    f"{minor}{name}": TargetOptions(kubernetes_version=f"{minor}.0", feature_gates=gates)
    for minor in MINORS
    for name, gates in (
        ("", {}),
        (", beta off", _gates(minor, "Beta", on=False)),
        (", all off", _gates(minor, "Beta", "GA", on=False)),
        (", alpha on", _gates(minor, "Alpha", "Beta", on=True)),
    )
}
SHAPES = {**SIZES, **SITUATIONS, **DRIVERS, **VERSIONS}
ALWAYS = (
    *("1x1", "control plane only"),
    *("one-gpu-held", "tainted-nodes", "shared-gpus"),
    *("static MIG", "dynamic MIG", "several pools", "network-attached"),
)
"""A sample runs in these in `make test`: each differs from the others in nodes, devices or driver.

The versions are for test_gates.
"""
