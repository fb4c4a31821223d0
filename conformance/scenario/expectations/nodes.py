"""``cdi`` and ``podResources``: what a node's CDI specs and its kubelet say of claims.

The CDI format: https://github.com/cncf-tags/container-device-interface/blob/main/SPEC.md. The
PodResources API lists a claim as a whole, whichever of its requests a container names
(GetContainerClaimInfos in pkg/kubelet/cm/dra/manager.go).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any

from pydantic import Field, model_validator

from conformance.scenario.base import Strict
from conformance.scenario.driver.probing import Probe
from conformance.scenario.expectations.base import Cluster, Known, Seen, Timed
from conformance.scenario.expectations.conditions import unmet
from conformance.seam.abilities import Ability
from kube.observations import ContainerView, ListedClaim
from kube.values import Obj

Cel = Annotated[str, Field(min_length=1, max_length=10_240)]


class Cdi(Strict):
    """A claim of a pod, and whether the driver's CDI spec for it is on a node."""

    pod: str
    claim: str = Field(description="name in the pod's spec.resourceClaims")
    present: bool
    containers: tuple[str, ...] = Field(
        default=(),
        description=(
            "of the pod, using the whole claim: the CDI ids that the kubelet has for them are in"
            " specs, and they have the environment and device files that these say"
        ),
    )


class CdiExpectation(Timed):
    """The CDI spec that the driver wrote for a claim of a pod (needs the ability `cdi`)."""

    cdi: Cdi
    cel: Cel | tuple[Cel, ...] = Field(
        default=(), description="CEL over `specs` (a list, as they are in the files)"
    )

    @model_validator(mode="after")
    def _present(self) -> CdiExpectation:
        if not self.cdi.present and (self.cdi.containers or self.cel):
            raise ValueError("containers and cel are for specs that are present")
        return self

    @property
    def _conditions(self) -> tuple[str, ...]:
        return (self.cel,) if isinstance(self.cel, str) else self.cel

    @property
    def waits_for_start(self) -> bool:
        """What containers have is known once they have started."""
        return bool(self.cdi.containers)

    def describe(self) -> str:
        wanted = self.cdi
        given = f", given to {', '.join(wanted.containers)}" if wanted.containers else ""
        says = f" with {' and '.join(self._conditions)}" if self._conditions else ""
        state = "a" if wanted.present else "no"
        return f"{state} CDI spec for claim {wanted.claim} of {wanted.pod}{given}{says}"

    def evaluate(self, cluster: Cluster) -> Seen:
        wanted = self.cdi
        observed: dict[str, Any] = {"cdi": f"{wanted.pod}/{wanted.claim}"}
        uid = cluster.claim_uid(wanted.pod, wanted.claim)
        if uid is None:
            return Seen(False, f"claim {wanted.claim} of pod {wanted.pod} was never seen", observed)
        names = cluster.observe.cdi_claims().get(uid, ())
        files = [item for item in cluster.observe.cdi_specs() if item[0] in names]
        observed["present"] = bool(files)
        found = f"CDI specs for it: {', '.join(name for name, _ in files) or 'none'}"
        if bool(files) != wanted.present:
            return Seen(False, found, observed)
        wrong = [*unmet(self._conditions, {"specs": [spec for _, spec in files]})]
        for container in wanted.containers:
            problems = self._not_given(container, cluster)
            wrong += (f"{wanted.pod}/{container} {problem}" for problem in problems)
        if self._conditions or wanted.containers:
            observed["fits"] = not wrong
        return Seen(not wrong, "; ".join([found, *wrong]), observed)

    def _not_given(self, container: str, cluster: Cluster) -> Iterator[str]:
        """How what a container has differs from what its CDI ids stand for."""
        wanted = self.cdi
        claim = cluster.claim_of(wanted.pod, wanted.claim)
        listed = cluster.observe.pod_resources(wanted.pod, container)
        view = cluster.observe.container(wanted.pod, container)
        if claim is None or listed is None or view is None:
            yield "is not known to the kubelet, or has shown nothing, yet"
            return
        name = claim["metadata"]["name"]
        devices = [device for one in listed if one.name == name for device in one.devices]
        ids = [*dict.fromkeys(one for device in devices for one in device.cdi)]
        if not ids:
            yield f"has no CDI ids for claim {wanted.claim}"
        defined = _devices(spec for _, spec in cluster.observe.cdi_specs())
        for one in ids:
            if one not in defined:
                yield f"has the CDI id {one}, which no spec defines"
        edits = [edit for one in ids if one in defined for edit in defined[one]]
        assert cluster.profile is not None, "scenarios with containers run with a driver profile"
        yield from _missing(edits, view, cluster.profile.spec.probe)

    def lint(self, known: Known) -> None:
        wanted = self.cdi
        known.named(("cdi", "pod"), "Pod", wanted.pod)
        known.pod_claim(("cdi", "claim"), (wanted.pod,), wanted.claim)
        for index, name in enumerate(wanted.containers):
            known.container(("cdi", "containers", index), (wanted.pod,), name)
        known.relation(("cel",), self._conditions, ("specs",))
        known.needed(("cdi",), "ability", Ability.CDI)
        if wanted.containers:
            known.needed(("cdi", "containers"), "ability", Ability.POD_RESOURCES)
        known.needed(("cdi",), "trait", "cdiPerClaim")
        known.needed(("cdi",), "kubelet")


def _devices(specs: Iterable[Obj]) -> dict[str, tuple[Obj, Obj]]:
    """CDI id -> the edits of its spec, and its own."""
    return {
        f"{spec.get('kind')}={device.get('name')}": (
            spec.get("containerEdits") or {},
            device.get("containerEdits") or {},
        )
        for spec in specs
        for device in spec.get("devices") or ()
    }


def _missing(
    edits: Sequence[Mapping[str, Any]], view: ContainerView, probe: Probe
) -> Iterator[str]:
    """What a container does not show of its edits; mounts do not show.

    A device file without a type may be a block device, which does not show, if it is not one by
    which the driver's devices are told.
    """
    variables = [text.partition("=") for edit in edits for text in edit.get("env") or ()]
    for name, value in {name: value for name, _, value in variables}.items():
        found = view.environment.get(name)
        if found != value and "\n" not in value:
            yield f"has {name}={found}, not {value}" if found is not None else f"has no {name}"
    nodes = [node for edit in edits for node in edit.get("deviceNodes") or ()]
    kinds = {node["path"]: node.get("type") for node in nodes}
    for path, kind in kinds.items():
        shows = kind in ("c", "u") or (not kind and probe.is_device_node(path))
        if shows and path not in view.device_nodes:
            yield f"has no device file {path}"


class PodResources(Strict):
    """Containers, and the claims that the PodResources API lists for each of them."""

    of: tuple[str, ...] = Field(min_length=1, description="containers as pod/container")
    claims: tuple[str, ...] = Field(
        description=(
            "names in the pods' spec.resourceClaims: these are listed, each with the devices that"
            " it is allocated, and no others; none: no claim is"
        )
    )
    cdi: bool = Field(default=False, description="each claim is listed with CDI devices")
    shares: bool = Field(
        default=False,
        description=(
            "devices that may be shared are listed with the ids of their shares; else only where"
            " a driver says them"
        ),
    )
    extended: bool = Field(
        default=False, description="the claim of the pod's extended resources is listed, too"
    )
    unlisted: tuple[str, ...] = Field(
        default=(), description="containers as pod/container that are not listed at all"
    )


class PodResourcesExpectation(Timed):
    """What the PodResources API of the kubelet lists (needs the ability `pod-resources`)."""

    pod_resources: PodResources

    @property
    def waits_for_start(self) -> bool:
        """The pods must have their claims prepared."""
        return True

    def describe(self) -> str:
        wanted = self.pod_resources
        claims = ", ".join(wanted.claims)
        what = f"the devices of {claims}" if claims else "no claim"
        cdi = ", with CDI devices" if wanted.cdi else ""
        return f"PodResources lists {what} for {', '.join(wanted.of)}{cdi}"

    def evaluate(self, cluster: Cluster) -> Seen:
        wanted = self.pod_resources
        observed: dict[str, Any] = {"podResources": list(wanted.of), "claims": list(wanted.claims)}
        wrong = []
        for entry in wanted.of:
            pod, _, container = entry.partition("/")
            listed = cluster.observe.pod_resources(pod, container)
            if listed is None:
                return Seen(False, f"the kubelet does not list {entry}", observed)
            problem = self._problem(pod, listed, cluster)
            wrong += [f"for {entry} {problem}"] if problem else []
        for entry in wanted.unlisted:
            pod, _, container = entry.partition("/")
            if cluster.observe.pod_resources(pod, container) is not None:
                wrong.append(f"it lists {entry}")
        observed["fits"] = not wrong
        return Seen(not wrong, "; ".join(wrong) or "as allocated", observed)

    def _problem(self, pod: str, listed: Iterable[ListedClaim], cluster: Cluster) -> str:
        """What is listed otherwise than it is allocated; empty if nothing is."""
        shown = {
            (claim.namespace, claim.name): sorted(
                (d.driver, d.pool, d.device, d.share) for d in claim.devices
            )
            for claim in listed
        }
        own = {}
        claims = {name: cluster.claim_of(pod, name) for name in self.pod_resources.claims}
        if self.pod_resources.extended:
            claims["of extended resources"] = _extended_claim_of(pod, cluster)
        for name, claim in claims.items():
            if claim is None:
                return f"there is no claim {name} yet"
            meta, status = claim["metadata"], claim.get("status") or {}
            devices = (status.get("allocation") or {}).get("devices") or {}
            key = (meta["namespace"], meta["name"])
            # A driver's answer may leave the ids out (kubelet/pkg/apis/dra/v1/api.proto, Device).
            named = self.pod_resources.shares or any(one[3] for one in shown.get(key, ()))
            own[key] = sorted(
                (one["driver"], one["pool"], one["device"], (named and one.get("shareID")) or "")
                for one in devices.get("results") or ()
            )
        if shown != own:
            return f"it lists {shown or 'no claim'}; allocated is {own or 'none'}"
        bare = [claim.name for claim in listed if not any(one.cdi for one in claim.devices)]
        if self.pod_resources.cdi and bare:
            return f"it lists {', '.join(bare)} without CDI devices"
        return ""

    def lint(self, known: Known) -> None:
        wanted = self.pod_resources
        for key, entries in (("of", wanted.of), ("unlisted", wanted.unlisted)):
            for index, entry in enumerate(entries):
                name, _, container = entry.partition("/")
                known.named(("podResources", key, index), "Pod", name)
                known.container(("podResources", key, index), (name,), container)
        pods = tuple(entry.partition("/")[0] for entry in wanted.of)
        for place, claim in enumerate(wanted.claims):
            known.pod_claim(("podResources", "claims", place), pods, claim)
        known.needed(("podResources",), "ability", Ability.POD_RESOURCES)
        if wanted.cdi:
            known.needed(("podResources", "cdi"), "trait", "cdiPerClaim")
        if wanted.shares:
            known.needed(("podResources", "shares"), "trait", "namesShares")
        known.needed(("podResources",), "kubelet")

    def placed(self) -> Iterable[tuple[str, int]]:
        return ((entry.partition("/")[0], 1) for entry in self.pod_resources.of)


def _extended_claim_of(pod: str, cluster: Cluster) -> Obj | None:
    found = cluster.get("Pod", pod) or {}
    status = found.get("status", {}).get("extendedResourceClaimStatus") or {}
    name = status.get("resourceClaimName")
    return cluster.get("ResourceClaim", name) if name else None
