"""The step ``churn``: objects made, ended, changed, removed at random, the same for each seed."""

from __future__ import annotations

from typing import Final, Literal

from pydantic import Field, model_validator

from conformance.scenario.base import Duration, Manifest, Strict

LONGEST: Final = 30.0
"""Seconds that a scenario may ask for; a user may have it repeated for longer."""

KINDS: Final = frozenset({"Pod", "ResourceClaim", "ResourceClaimTemplate", "ResourceSlice"})


class Mix(Strict):
    """How often what is done, relative to one another; 0 is never."""

    pods: int = Field(default=8, ge=0, le=100, description="make a pod, or end one")
    claims: int = Field(default=2, ge=0, le=100, description="make a claim, or delete one")
    slices: int = Field(
        default=1, ge=0, le=100, description="withdraw devices, publish them again, remove a slice"
    )
    taints: int = Field(default=1, ge=0, le=100, description="taint devices, or lift taints")
    finish: int = Field(default=2, ge=0, le=100, description="of ends of pods: it succeeds")
    delete: int = Field(default=1, ge=0, le=100, description="of ends of pods: it is deleted")
    force_delete: int = Field(default=2, ge=0, le=100, description="of ends of pods: without grace")

    @model_validator(mode="after")
    def _pods_end(self) -> Mix:
        if not self.pods or not self.finish + self.delete + self.force_delete:
            raise ValueError("pods must be made, and must end: pods and one of their ends above 0")
        return self


class Churn(Strict):
    """Do many things at random, and see that no rule of allocations is ever broken."""

    seed: int = Field(default=1, ge=1, le=2**31, description="the same operations for the same")
    time: Duration = Field(description="for so long; at most 30s")
    rate: float = Field(default=20.0, gt=0, le=50, description="operations a second, on average")
    copies: int = Field(
        default=4,
        ge=1,
        le=16,
        description="of each pod and each claim so many at once, in each namespace",
    )
    namespaces: tuple[str, ...] = Field(
        default=(), max_length=4, description="names; default: that of the scenario"
    )
    mix: Mix = Field(default_factory=Mix)
    objects: tuple[Manifest, ...] = Field(
        min_length=1,
        max_length=16,
        description=(
            "Pods and ResourceClaims, of which copies are made and removed; ResourceClaimTemplates;"
            " ResourceSlices, which come, go and change. A pod names claims as they are called here"
        ),
    )

    @model_validator(mode="after")
    def _bounded(self) -> Churn:
        if not 0 < self.time <= LONGEST:
            raise ValueError(
                f"time must be above 0s and at most {LONGEST:g}s, is {self.time:g}s; to churn for"
                " longer, run with --churn-time"
            )
        kinds = {str(item.get("kind")) for item in self.objects}
        if kinds - KINDS:
            raise ValueError(f"objects may be {', '.join(sorted(KINDS))}, not {min(kinds - KINDS)}")
        if "Pod" not in kinds:
            raise ValueError("objects need a Pod: without one nothing is allocated")
        return self

    def of_kind(self, kind: Literal["Pod", "ResourceClaim", "ResourceSlice"]) -> tuple[int, ...]:
        return tuple(i for i, item in enumerate(self.objects) if item.get("kind") == kind)

    def items_of(self, kind: str) -> list[Manifest]:
        return [item for item in self.objects if item.get("kind") == kind]
