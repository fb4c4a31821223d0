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
from conformance.scenario.expectations.base import Cluster, Evaluation, Timed
from conformance.scenario.expectations.conditions import explain_unmet
from conformance.scenario.lint_context import LintContext
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
        """Return whether containers are named: what they have is known once they have started."""
        return bool(self.cdi.containers)

    def describe(self) -> str:
        expected = self.cdi
        receivers = f", given to {', '.join(expected.containers)}" if expected.containers else ""
        says = f" with {' and '.join(self._conditions)}" if self._conditions else ""
        state = "a" if expected.present else "no"
        return f"{state} CDI spec for claim {expected.claim} of {expected.pod}{receivers}{says}"

    def evaluate(self, cluster: Cluster) -> Evaluation:
        expected = self.cdi
        observed: dict[str, Any] = {"cdi": f"{expected.pod}/{expected.claim}"}
        uid = cluster.claim_uid(expected.pod, expected.claim)
        if uid is None:
            return Evaluation(
                False, f"claim {expected.claim} of pod {expected.pod} was never seen", observed
            )
        names = cluster.observe.cdi_claims().get(uid, ())
        files = [item for item in cluster.observe.cdi_specs() if item[0] in names]
        observed["present"] = bool(files)
        finding = f"CDI specs for it: {', '.join(name for name, _ in files) or 'none'}"
        if bool(files) != expected.present:
            return Evaluation(False, finding, observed)
        wrong = [*explain_unmet(self._conditions, {"specs": [spec for _, spec in files]})]
        for container in expected.containers:
            container_problems = self._explain_missing_devices(container, cluster)
            wrong += (f"{expected.pod}/{container} {problem}" for problem in container_problems)
        if self._conditions or expected.containers:
            observed["fits"] = not wrong
        return Evaluation(not wrong, "; ".join([finding, *wrong]), observed)

    def _explain_missing_devices(self, container: str, cluster: Cluster) -> Iterator[str]:
        """Yield how what a container has differs from what its CDI ids stand for."""
        expected = self.cdi
        claim = cluster.claim_of(expected.pod, expected.claim)
        listed = cluster.observe.pod_resources(expected.pod, container)
        view = cluster.observe.container(expected.pod, container)
        if claim is None or listed is None or view is None:
            yield "is not known to the kubelet, or has shown nothing, yet"
            return
        name = claim["metadata"]["name"]
        devices = [device for entry in listed if entry.name == name for device in entry.devices]
        ids = [*dict.fromkeys(device_id for device in devices for device_id in device.cdi)]
        if not ids:
            yield f"has no CDI ids for claim {expected.claim}"
        defined = _collect_cdi_devices(spec for _, spec in cluster.observe.cdi_specs())
        for device_id in ids:
            if device_id not in defined:
                yield f"has the CDI id {device_id}, which no spec defines"
        edits = [edit for device_id in ids if device_id in defined for edit in defined[device_id]]
        assert cluster.profile is not None, "scenarios with containers run with a driver profile"
        yield from _explain_missing_edits(edits, view, cluster.profile.spec.probe)

    def lint(self, lint: LintContext) -> None:
        expected = self.cdi
        lint.expects_object(("cdi", "pod"), "Pod", expected.pod)
        lint.expects_pod_claim(("cdi", "claim"), (expected.pod,), expected.claim)
        for index, name in enumerate(expected.containers):
            lint.expects_container(("cdi", "containers", index), (expected.pod,), name)
        lint.check_relation(("cel",), self._conditions, ("specs",))
        lint.requires(("cdi",), "ability", Ability.CDI)
        if expected.containers:
            lint.requires(("cdi", "containers"), "ability", Ability.POD_RESOURCES)
        lint.requires(("cdi",), "trait", "cdiPerClaim")
        lint.requires(("cdi",), "kubelet")


def _collect_cdi_devices(specs: Iterable[Obj]) -> dict[str, tuple[Obj, Obj]]:
    """Return the devices of CDI specs: CDI id -> the edits of its spec, and its own."""
    return {
        f"{spec.get('kind')}={device.get('name')}": (
            spec.get("containerEdits") or {},
            device.get("containerEdits") or {},
        )
        for spec in specs
        for device in spec.get("devices") or ()
    }


def _explain_missing_edits(
    edits: Sequence[Mapping[str, Any]], view: ContainerView, probe: Probe
) -> Iterator[str]:
    """Yield what a container does not show of its edits; mounts do not show.

    A device file without a type may be a block device, which does not show, if it is not one by
    which the driver's devices are told.
    """
    variables = [text.partition("=") for edit in edits for text in edit.get("env") or ()]
    for name, value in {name: value for name, _, value in variables}.items():
        shown_value = view.environment.get(name)
        if shown_value != value and "\n" not in value:
            yield (
                f"has {name}={shown_value}, not {value}"
                if shown_value is not None
                else f"has no {name}"
            )
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
        """Return True: the pods must have their claims prepared."""
        return True

    def describe(self) -> str:
        expected = self.pod_resources
        claims = ", ".join(expected.claims)
        listed_things = f"the devices of {claims}" if claims else "no claim"
        cdi = ", with CDI devices" if expected.cdi else ""
        return f"PodResources lists {listed_things} for {', '.join(expected.of)}{cdi}"

    def evaluate(self, cluster: Cluster) -> Evaluation:
        expected = self.pod_resources
        observed: dict[str, Any] = {
            "podResources": list(expected.of),
            "claims": list(expected.claims),
        }
        problems = []
        for entry in expected.of:
            pod, _, container = entry.partition("/")
            listed = cluster.observe.pod_resources(pod, container)
            if listed is None:
                return Evaluation(False, f"the kubelet does not list {entry}", observed)
            problem = self._find_problem(pod, listed, cluster)
            problems += [f"for {entry} {problem}"] if problem else []
        for entry in expected.unlisted:
            pod, _, container = entry.partition("/")
            if cluster.observe.pod_resources(pod, container) is not None:
                problems.append(f"it lists {entry}")
        observed["fits"] = not problems
        return Evaluation(not problems, "; ".join(problems) or "as allocated", observed)

    def _find_problem(self, pod: str, listed: Iterable[ListedClaim], cluster: Cluster) -> str:
        """Return what is listed otherwise than it is allocated; empty if nothing is."""
        listed_devices = {
            (claim.namespace, claim.name): sorted(
                (d.driver, d.pool, d.device, d.share) for d in claim.devices
            )
            for claim in listed
        }
        allocated_devices = {}
        claims = {name: cluster.claim_of(pod, name) for name in self.pod_resources.claims}
        if self.pod_resources.extended:
            claims["of extended resources"] = _find_extended_resource_claim(pod, cluster)
        for name, claim in claims.items():
            if claim is None:
                return f"there is no claim {name} yet"
            meta, status = claim["metadata"], claim.get("status") or {}
            devices = (status.get("allocation") or {}).get("devices") or {}
            key = (meta["namespace"], meta["name"])
            # A driver's answer may leave the ids out (kubelet/pkg/apis/dra/v1/api.proto, Device).
            with_shares = self.pod_resources.shares or any(
                listed_device[3] for listed_device in listed_devices.get(key, ())
            )
            allocated_devices[key] = sorted(
                (
                    listed_device["driver"],
                    listed_device["pool"],
                    listed_device["device"],
                    (with_shares and listed_device.get("shareID")) or "",
                )
                for listed_device in devices.get("results") or ()
            )
        if listed_devices != allocated_devices:
            allocated = allocated_devices or "none"
            return f"it lists {listed_devices or 'no claim'}; allocated is {allocated}"
        bare = [
            claim.name
            for claim in listed
            if not any(listed_device.cdi for listed_device in claim.devices)
        ]
        if self.pod_resources.cdi and bare:
            return f"it lists {', '.join(bare)} without CDI devices"
        return ""

    def lint(self, lint: LintContext) -> None:
        expected = self.pod_resources
        for key, entries in (("of", expected.of), ("unlisted", expected.unlisted)):
            for index, entry in enumerate(entries):
                name, _, container = entry.partition("/")
                lint.expects_object(("podResources", key, index), "Pod", name)
                lint.expects_container(("podResources", key, index), (name,), container)
        pods = tuple(entry.partition("/")[0] for entry in expected.of)
        for position, claim in enumerate(expected.claims):
            lint.expects_pod_claim(("podResources", "claims", position), pods, claim)
        lint.requires(("podResources",), "ability", Ability.POD_RESOURCES)
        if expected.cdi:
            lint.requires(("podResources", "cdi"), "trait", "cdiPerClaim")
        if expected.shares:
            lint.requires(("podResources", "shares"), "trait", "namesShares")
        lint.requires(("podResources",), "kubelet")

    def list_scheduled_pods(self) -> Iterable[tuple[str, int]]:
        return ((entry.partition("/")[0], 1) for entry in self.pod_resources.of)


def _find_extended_resource_claim(pod: str, cluster: Cluster) -> Obj | None:
    pod_object = cluster.get("Pod", pod) or {}
    status = pod_object.get("status", {}).get("extendedResourceClaimStatus") or {}
    name = status.get("resourceClaimName")
    return cluster.get("ResourceClaim", name) if name else None
