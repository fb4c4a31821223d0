"""The differences between Kubernetes minors: DRA's feature gates, and rules of the allocator.

The gates are a table, because a cluster is described by its version first and by explicit gates
second, and both must lead to the same `Features`. Source: pkg/features/kube_features.go of each
minor (the versioned specs of each gate). A gate that is absent from a minor is unknown to its
binaries.

The rules were read in structured/internal/stable/ of k8s.io/dynamic-resource-allocation v0.34.4,
v0.35.4, v0.36.3, v0.37.1 and v0.38.0-beta.0; the other two implementations of each minor agree.
Only what a correct cluster shows in claims is here; how an error about an invalid pool is worded is
not.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Final, Literal

Stage = Literal["Alpha", "Beta", "GA"]

MINORS: Final = ("1.34", "1.35", "1.36", "1.37", "1.38")
"""The Kubernetes minors that the table knows, oldest first."""

LATEST: Final = "1.37"
"""The latest minor that is released: what is meant where no version is named. The rules of later
ones in `MINORS` are those of a pre-release, and may change."""


@dataclass(frozen=True, slots=True)
class Gate:
    """One feature gate in one Kubernetes minor."""

    name: str
    stage: Stage
    default: bool
    locked: bool = False
    """The gate cannot be changed from its default."""
    removed: bool = False
    """No binary knows the gate any more, and what it guarded is always on."""


# One column per entry of MINORS; A/B/G is the stage, + or - the default, ! locked, "" not there,
# "=" not there any more, because what it guarded is always on.
_TABLE: Final[Mapping[str, tuple[str, str, str, str, str]]] = {
    "DynamicResourceAllocation": ("G+", "G+", "G+", "G+!", "="),
    "DRAAdminAccess": ("B+", "B+", "G+", "G+!", "G+!"),
    "DRAConsumableCapacity": ("A-", "A-", "B+", "B+", "G+"),
    "DRADerivedAttributes": ("", "", "", "A-", "A-"),
    "DRADeviceBindingConditions": ("A-", "A-", "B+", "B+", "G+!"),
    "DRADeviceCompatibilityGroups": ("", "", "", "A-", "A-"),
    "DRADeviceTaintRules": ("", "A-", "B-", "G+", "G+!"),
    "DRADeviceTaints": ("A-", "A-", "B+", "G+", "G+!"),
    "DRAExtendedResource": ("A-", "A-", "B+", "G+!", "G+!"),
    # In 1.37 beta and on, but only where the minimum compatibility version is 1.37 too; a binary of
    # 1.37 emulates 1.36 compatibility by default, and then it is off (MinCompatibilityVersion).
    "DRAFractionalCapacityRange": ("", "", "", "B-", "G+"),
    "DRAListTypeAttributes": ("", "", "A-", "A-", "A-"),
    "DRANodeAllocatableResources": ("", "", "A-", "A-", "A-"),
    "DRAOptionalNodeOperations": ("", "", "", "A-", "A-"),
    "DRAPartitionableDevices": ("A-", "A-", "B+", "B+", "G+!"),
    "DRAPartitionableDevicesType": ("", "", "", "A-", "A-"),
    "DRAPrioritizedList": ("B+", "B+", "G+", "G+!", "G+!"),
    "DRAResourceClaimDeviceStatus": ("B+", "B+", "B+", "G+!", "G+!"),
    "DRAResourceClaimGranularStatusAuthorization": ("", "", "B+", "B+", "B+"),
    "DRAResourcePoolStatus": ("", "", "A-", "A-", "A-"),
    "DRASchedulerFilterTimeout": ("B+", "B+", "B+", "B+", "B+"),
    "DRAWorkloadResourceClaims": ("", "", "A-", "B-", "B-"),
    "ResourceHealthStatus": ("A-", "A-", "B+", "B+", "B+"),
    "ResourceHealthStatusMessage": ("", "", "B+", "B+", "B+"),
    "KubeletPodResourcesDynamicResources": ("B+", "B+", "G+", "G+!", "G+!"),
    "GenericWorkload": ("", "A-", "A-", "B-", "B-"),
    "NodeDeclaredFeatures": ("", "A-", "B+", "G+!", "G+!"),
    "SchedulerPreQueueingHints": ("", "", "", "A-", "B+"),
}

# defaultKubernetesFeatureGateDependencies, which 1.35 brought, for the gates that a minor has;
# those on DynamicResourceAllocation, which went with it in 1.38, are left out.
_DEPENDENCIES_SINCE: Final = "1.35"
_DEPENDENCIES: Final[Mapping[str, tuple[str, ...]]] = {
    "DRADeviceBindingConditions": ("DRAResourceClaimDeviceStatus",),
    "DRADeviceCompatibilityGroups": ("DRAPartitionableDevices",),
    "DRADeviceTaintRules": ("DRADeviceTaints",),
    "DRAFractionalCapacityRange": ("DRAConsumableCapacity",),
    "DRAOptionalNodeOperations": ("NodeDeclaredFeatures",),
    "DRAPartitionableDevicesType": ("DRAPartitionableDevices", "DRAResourcePoolStatus"),
    "DRAResourceClaimGranularStatusAuthorization": ("DRAResourceClaimDeviceStatus",),
    "DRAWorkloadResourceClaims": ("GenericWorkload",),
    "ResourceHealthStatusMessage": ("ResourceHealthStatus",),
}

_STAGES: Final[Mapping[str, Stage]] = {"A": "Alpha", "B": "Beta", "G": "GA"}


def minor_of(version: str) -> str:
    """Return the minor ("1.37") of a Kubernetes version ("v1.37.1", "1.37.0-rc.1", "1.37").

    Raises ValueError: the text is no version, or the minor is not in `MINORS`.
    """
    numbers = version.strip().removeprefix("v").split(".")
    minor = ".".join(numbers[:2])
    if minor not in MINORS:
        supported = ", ".join(MINORS)
        raise ValueError(
            f"Kubernetes version {version!r} is not supported; known minors: {supported}"
        )
    return minor


@lru_cache(maxsize=64)
def nearest_minor(version: str) -> str:
    """Return the minor of `MINORS` that is nearest to a Kubernetes version.

    For callers that need an answer about any cluster: the oldest minor for older versions, the
    newest for newer ones, and `LATEST` for a text that is no version.
    """
    try:
        major_minor = _major_minor(version)
    except ValueError:
        return LATEST
    return next((minor for minor in MINORS if _major_minor(minor) >= major_minor), MINORS[-1])


def describe_rules(version: str) -> dict[str, str]:
    """Return {"rules": by which rules a version is judged}; {} where they are those of its release.

    For what a run says of the versions that it met.
    """
    nearest = nearest_minor(version)
    try:
        known = _major_minor(version) == _major_minor(nearest)
    except ValueError:
        known = False
    if not known:
        return {"rules": f"those of Kubernetes {nearest}, the nearest minor that is known"}
    if MINORS.index(nearest) > MINORS.index(LATEST):
        return {"rules": f"those of a pre-release of Kubernetes {nearest}"}
    return {}


def _major_minor(version: str) -> tuple[int, int]:
    major, minor = version.strip().removeprefix("v").split(".")[:2]
    return int(major), int(minor)


def gates_for_version(version: str) -> Mapping[str, Gate]:
    """Return the DRA gates of a Kubernetes version: gate name -> `Gate`.

    Those that were removed because they are always on are among them: whoever asks what a cluster
    does finds them on.

    Raises ValueError: see `minor_of`.
    """
    column = MINORS.index(minor_of(version))
    gates: dict[str, Gate] = {}
    for name, cells in _TABLE.items():
        cell = cells[column]
        if cell == "=":
            gates[name] = Gate(name, "GA", default=True, locked=True, removed=True)
        elif cell:
            gates[name] = Gate(name, _STAGES[cell[0]], cell[1] == "+", cell.endswith("!"))
    return MappingProxyType(gates)


def dra_gates() -> frozenset[str]:
    """Return the names of all gates of the table, whichever minors have them."""
    return frozenset(_TABLE)


KUBELET_GATES: Final = frozenset(
    {
        "DRAExtendedResource",
        "DRANodeAllocatableResources",
        "DRAOptionalNodeOperations",
        "DRAWorkloadResourceClaims",
        "KubeletPodResourcesDynamicResources",
        "NodeDeclaredFeatures",
        "ResourceHealthStatus",
        "ResourceHealthStatusMessage",
    }
)
"""The gates that code of pkg/kubelet asks for in one of `MINORS`."""


def kubelet_gates(version: str, gates: Mapping[str, bool], kubelet: str) -> dict[str, bool]:
    """Return the kubelet's gates in a cluster whose API server has a version and gates.

    A gate that differs from that version's default was set for all components; any other has the
    default of the kubelet's version.

    Args:
        version: the API server's version; this and ``kubelet`` may be of any minor.
        gates: the API server's gates, as far as they are known: name -> on.
        kubelet: the kubelet's version.
    """
    return _gates_beside(version, gates, KUBELET_GATES, kubelet)


def scheduler_gates(version: str, gates: Mapping[str, bool], scheduler: str) -> dict[str, bool]:
    """Return the DRA gates of a scheduler in a cluster whose API server has a version and gates.

    As for `kubelet_gates`: a gate that is not as that version has it was set for all components.

    Args:
        version: the API server's version; this and ``scheduler`` may be of any minor.
        gates: the API server's gates, as far as they are known: name -> on.
        scheduler: the scheduler's version.
    """
    return _gates_beside(version, gates, dra_gates(), scheduler)


def _gates_beside(
    version: str, gates: Mapping[str, bool], names: frozenset[str], component: str
) -> dict[str, bool]:
    """Return which of ``names`` a component of another version has on, of those that are known."""
    server_gates = gates_for_version(nearest_minor(version))
    known_gates = gates_for_version(nearest_minor(component))
    values = {}
    for name in names & gates.keys():
        known = known_gates.get(name)
        was_set = name in server_gates and server_gates[name].default != gates[name]
        can_be_set = known is not None and not known.locked
        default = known is not None and known.default
        values[name] = gates[name] if was_set and can_be_set else default
    return values


def list_fixed_gates(version: str) -> dict[str, bool]:
    """Return the gates with one value in every cluster of a minor: it locks them, or lacks them.

    A version that is not in `MINORS` has the gates of the nearest.
    """
    gates = gates_for_version(nearest_minor(version))
    locked = {name: gate.default for name, gate in gates.items() if gate.locked}
    return {**dict.fromkeys(_TABLE.keys() - gates.keys(), False), **locked}


def known_to_binaries(version: str) -> frozenset[str]:
    """Return the gates that binaries of a Kubernetes version take; they refuse any other.

    Raises ValueError: see `minor_of`.
    """
    gates = gates_for_version(version).values()
    return frozenset(gate.name for gate in gates if not gate.removed)


def list_dependencies(gate: str) -> tuple[str, ...]:
    """Return the gates that a gate depends on; () where there are none."""
    return _DEPENDENCIES.get(gate, ())


def check_gates(version: str, chosen: Mapping[str, bool]) -> None:
    """Raise ValueError for gates with which no binary of a Kubernetes version would start.

    Args:
        version: a version whose minor is in `MINORS`.
        chosen: gate name -> on; only gates that concern DRA.

    Raises ValueError: a gate is unknown, locked to the other value, or depends on one that is off,
    or the version is none that `minor_of` takes.
    """
    minor, gates_of_minor = minor_of(version), gates_for_version(version)
    for name, value in chosen.items():
        gate = gates_of_minor.get(name)
        if gate is None:
            near = difflib.get_close_matches(name, gates_of_minor, n=1)
            hint = (
                f"did you mean {near[0]}?"
                if near
                else f"it has {', '.join(sorted(gates_of_minor))}"
            )
            raise ValueError(f"Kubernetes {minor} has no DRA feature gate {name}; {hint}")
        if gate.removed:
            raise ValueError(
                f"Kubernetes {minor} has no feature gate {name} any more, what it guarded is "
                "always on; leave it out"
            )
        if gate.locked and value != gate.default:
            raise ValueError(
                f"the feature gate {name} cannot be {str(value).lower()} in Kubernetes {minor}: "
                f"it is locked to {str(gate.default).lower()}"
            )
    if MINORS.index(minor) < MINORS.index(_DEPENDENCIES_SINCE):
        return
    enabled = {name: gate.default for name, gate in gates_of_minor.items()} | dict(chosen)
    for name, needed in _DEPENDENCIES.items():
        missing = [other for other in needed if not enabled.get(other)]
        if enabled.get(name) and missing and not chosen.keys().isdisjoint({name, *missing}):
            raise ValueError(
                f"the feature gate {name} is on and depends on {missing[0]}, which is off; set "
                f"{name}=false or {missing[0]}=true"
            )


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
        slices_in_any_order: whether pools are tried in the order of Go's map, and the slices of a
            pool as the lister happens to give them, so that a search may or may not meet a device
            on which a selector fails; until 1.35 (GatherPools in pools_stable.go).
        repeats_shared_devices: whether one request gets several shares of one device, because each
            of its devices is looked for from the first one on; until 1.35 (allocateOne in
            experimental/allocator_experimental.go).
        leaves_out_tolerations: whether results do not have the tolerations of their requests; until
            1.34 (Allocate).
        fails_pod_for_invalid_pool: whether a pool that is invalid fails the pod as soon as a device
            is looked for in it, and not the node once nothing else is left; until 1.34, where that
            depends on the order of Go's map: here it comes last (allocateOne).
        rounds_to_binary: whether an amount that a range rounds up is written with a binary suffix
            whatever the range's step has; until 1.36 (roundUpRange in consumable_capacity.go).
        reads_inner_types: whether the allocator reads slices as types of its own, so that a
            capacity has its bare and its full name, versions are compared without their build
            metadata, and a value that cannot be read fails only who compares it; since 1.38
            (conversion.go in k8s.io/dynamic-resource-allocation/api, consumable_capacity.go,
            constraint.go).
        fails_all_on_node: whether a pool of which not all devices are known fails a request for all
            of them on this node only; since 1.38 (validateDeviceRequest).
        refuses_negative_amounts: whether a negative amount is an error: a request for one though a
            policy would round it up (calculateConsumedCapacity), and one in use, for every pod
            (consumedCapacityError); since 1.38.
        allows_any_default: whether a policy allows its default whatever else it says; before 1.38
            not one that 64 bits do not hold (fillEmptyRequest, violatesPolicy).
        shares_keep_device: whether nobody gets a device for himself that is not for several claims
            any more while somebody has a share of it; since 1.38 (allocateDevice).
    """

    uses_incomplete_pools: bool = False
    config_names_requests: bool = False
    slices_in_any_order: bool = False
    repeats_shared_devices: bool = False
    leaves_out_tolerations: bool = False
    fails_pod_for_invalid_pool: bool = False
    rounds_to_binary: bool = False
    reads_inner_types: bool = False
    fails_all_on_node: bool = False
    refuses_negative_amounts: bool = False
    allows_any_default: bool = False
    shares_keep_device: bool = False

    @classmethod
    def for_version(cls, kubernetes: str) -> MinorRules:
        """Return the rules of a Kubernetes version; for an unknown one, of the nearest minor."""
        minor = MINORS.index(nearest_minor(kubernetes))
        return cls(
            uses_incomplete_pools=minor <= MINORS.index("1.34"),
            config_names_requests=minor <= MINORS.index("1.36"),
            slices_in_any_order=minor <= MINORS.index("1.35"),
            repeats_shared_devices=minor <= MINORS.index("1.35"),
            leaves_out_tolerations=minor <= MINORS.index("1.34"),
            fails_pod_for_invalid_pool=minor <= MINORS.index("1.34"),
            rounds_to_binary=minor <= MINORS.index("1.36"),
            reads_inner_types=minor >= MINORS.index("1.38"),
            fails_all_on_node=minor >= MINORS.index("1.38"),
            refuses_negative_amounts=minor >= MINORS.index("1.38"),
            allows_any_default=minor >= MINORS.index("1.38"),
            shares_keep_device=minor >= MINORS.index("1.38"),
        )
