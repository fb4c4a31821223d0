"""The decisions that a passed scenario must have recorded, by its document.

A comparison is worth as much as the decisions that it judged: with none recorded, nothing is
against a rule. So for the scenarios that the suite ships (known by id and digest) it is worked out
which claims must have been allocated and which pods must have been left waiting; what is missing in
a result counts as not judged.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from conformance.compare.evidence import mapping_field, name_of
from conformance.compare.waiting import group_of
from conformance.results.events.scenario import Outcome, PlannedScenario, ScenarioFinished
from conformance.scenario.expectations.pod import PodExpectation
from conformance.scenario.loader import find_shipped
from conformance.scenario.model import Scenario
from conformance.scenario.steps import Step
from kube.values import POD_CLAIM_ANNOTATION

_CLAIMS = ("ResourceClaim", "ResourceClaimTemplate")
_LONGEST_BASE = 57
"""Of a generated name, POD-ENTRY: pkg/controller/resourceclaim cuts both parts of a longer one."""
_Entry = tuple[str, Mapping[str, Any]]
"""Who owns a claim, and the entry of ``spec.resourceClaims`` for it."""

_OF_GROUPS = "DRAWorkloadResourceClaims"
"""The gate without which PodGroups have no claims."""

_SOURCES = ("resourceClaimName", "resourceClaimTemplateName")


@dataclass(frozen=True, slots=True)
class WantedClaim:
    """A claim that must have been allocated.

    Attributes:
        owner: the pod, or the PodGroup whose claim it is.
        entry: the name in ``spec.resourceClaims`` of the pod.
        claim: the ResourceClaim's name; empty for one generated from a template.
        number: how many of them: a Job has one for each of its pods.
    """

    owner: str
    entry: str
    claim: str
    number: int = 1

    def is_it(self, claim: Mapping[str, Any]) -> bool:
        name = name_of(claim)
        if self.claim:
            return name == self.claim
        entry = mapping_field(mapping_field(claim, "metadata"), "annotations").get(
            POD_CLAIM_ANNOTATION
        )
        # A Job's pods have six characters more.
        whole = len(f"{self.owner}-12345-{self.entry}")
        prefix = f"{self.owner}-"
        if whole > _LONGEST_BASE:
            prefix = self.owner[: len(self.owner) * _LONGEST_BASE // whole]
        return entry == self.entry and name.startswith(prefix)


@dataclass(frozen=True, slots=True)
class Demand:
    """What a passed result must contain: allocated claims, and pods seen to wait for devices."""

    claims: tuple[WantedClaim, ...]
    waiting: tuple[str, ...]


def demand_of(scenario: PlannedScenario) -> Demand | None:
    """Return the demand of a scenario; None for one that the suite does not ship."""
    return _derive_shipped(scenario.id, scenario.digest)


def list_unrecorded(finished: ScenarioFinished) -> tuple[str, ...]:
    """Return decisions that a passed scenario must have recorded and has not, each in words."""
    if finished.outcome not in (Outcome.PASSED, Outcome.FLAKY):
        return ()
    demand = demand_of(finished.scenario)
    if demand is None:
        return ()
    return (
        *_missing_decisions(demand, finished.decisions),
        *_missing_snapshots(demand, finished.undecided),
    )


def derive_demand(scenario: Scenario) -> Demand:
    """Return what a scenario's document demands; names with variables in them are left out."""
    pods: dict[str, Sequence[_Entry]] = {}
    groups = {}
    if _OF_GROUPS in scenario.spec.requires.feature_gates:
        groups = dict(group for step in scenario.spec.steps for group in _groups_of_step(step))
    claims: dict[WantedClaim, None] = {}
    waiting: dict[str, None] = {}
    created: set[str] = set()
    written = {name for step in scenario.spec.steps for name in _written_claims(step)}
    for step in scenario.spec.steps:
        pods.update(_pods_of_step(step, groups))
        created |= {name_of(obj) for obj in step.apply or () if obj.get("kind") in _CLAIMS}
        placed = (pair for item in step.expect or () for pair in item.list_scheduled_pods())
        for name, number in placed:
            for owner, entry in pods.get(name, ()):
                claim = str(entry.get("resourceClaimName") or "")
                is_one = bool(claim) or owner != name
                wanted_claim = WantedClaim(
                    owner, str(entry.get("name")), claim, 1 if is_one else number
                )
                if claim in written:
                    continue  # its allocation was no decision
                if not claim and entry.get("resourceClaimTemplateName") not in created:
                    continue  # it runs without a claim
                if not any(
                    "${" in text
                    for text in (wanted_claim.owner, wanted_claim.entry, wanted_claim.claim)
                ):
                    claims[wanted_claim] = None
        for name in _kept_waiting(step):
            sources = {
                str(entry.get(key))
                for owner, entry in pods.get(name, ())
                for key in _SOURCES
                if key in entry and WantedClaim(owner, str(entry.get("name")), "") not in claims
            }
            # The target has nothing to allocate where a claim is not there, or has its devices.
            if (
                sources <= created
                and sources - written - {wanted_claim.claim for wanted_claim in claims}
                and "${" not in name
            ):
                waiting[name] = None
    return Demand(tuple(claims), tuple(waiting))


def _written_claims(step: Step) -> Iterator[str]:
    """Yield the claims whose allocation is the scenario's own."""
    if step.copy_allocation is not None:
        yield step.copy_allocation.to
    change = step.patch
    if change is None or not isinstance(change.patch, dict):
        return
    of_claim = change.kind == "ResourceClaim" and change.subresource == "status"
    if of_claim and mapping_field(mapping_field(change.patch, "status"), "allocation"):
        yield str(change.name)


@lru_cache(maxsize=4096)  # ids and digests of files from others come here, too
def _derive_shipped(identity: str, digest: str) -> Demand | None:
    loaded = find_shipped(identity)
    return derive_demand(loaded.scenario) if loaded and loaded.digest == digest else None


def _missing_decisions(demand: Demand, decisions: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    decided = [claim for decision in decisions for claim in _objects(decision, "claims")]
    for wanted_claim in demand.claims:
        names = {name_of(claim) for claim in decided if wanted_claim.is_it(claim)}
        if len(names) < wanted_claim.number:
            many = f" ({len(names)} of {wanted_claim.number})" if wanted_claim.number > 1 else ""
            yield (
                f"claim {wanted_claim.claim or wanted_claim.entry} of {wanted_claim.owner} was"
                f" allocated, and no decision of it was recorded{many}"
            )


def _missing_snapshots(demand: Demand, undecided: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    recorded = {
        name_of(mapping_field(item, "pod"))
        for item in undecided
        if _objects(mapping_field(item, "snapshot"), "claims")
    }
    for name in demand.waiting:
        if name not in recorded:
            yield f"pod {name} was left waiting for devices, and no snapshot of it was recorded"


def _objects(obj: Mapping[str, Any], field: str) -> list[Mapping[str, Any]]:
    value = obj.get(field)
    if not isinstance(value, list | tuple):
        return []
    return [item for item in value if isinstance(item, Mapping)]


def _groups_of_step(step: Step) -> Iterator[tuple[str, Sequence[Mapping[str, Any]]]]:
    """Yield name and ``spec.resourceClaims`` of a step's PodGroups in its namespace."""
    for obj in step.apply or ():
        if obj.get("kind") == "PodGroup" and not obj["metadata"].get("namespace"):
            yield name_of(obj), obj["spec"].get("resourceClaims") or ()


def _pods_of_step(
    step: Step, groups: Mapping[str, Sequence[Mapping[str, Any]]]
) -> Iterator[tuple[str, Sequence[_Entry]]]:
    """Yield name and ``spec.resourceClaims`` of a step's pods and Jobs in its namespace.

    Beside each entry stands who owns its claim: the pod, or its PodGroup if that has the same.
    """
    for obj in step.apply or ():
        meta, spec = obj.get("metadata") or {}, obj.get("spec") or {}
        if obj.get("kind") == "Job":
            spec = (spec.get("template") or {}).get("spec") or {}
        elif obj.get("kind") != "Pod":
            continue
        # A pod that names its node goes past the scheduler.
        if not meta.get("namespace") and not spec.get("nodeName"):
            name, group = str(meta.get("name")), group_of(obj)
            shared = groups.get(group, ())
            entries = spec.get("resourceClaims") or ()
            yield name, [(group if entry in shared else name, entry) for entry in entries]


def _kept_waiting(step: Step) -> Iterator[str]:
    for item in step.expect or ():
        if isinstance(item, PodExpectation) and item.pending and item.consistently is None:
            yield item.pod
