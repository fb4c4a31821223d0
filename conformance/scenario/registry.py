"""The feature registry: the names that a scenario's ``feature`` may have, and what each means."""

from __future__ import annotations

from functools import cache
from typing import Literal

from pydantic import Field

from conformance.data import scenarios_dir
from conformance.scenario.base import Manifest, Strict
from conformance.scenario.validate import load_document


class GateProbe(Strict):
    """An object that shows whether a feature gate is on, where nothing else tells.

    It is created with dry run. With the gate off the API server drops what is behind it, so that
    something of the object is missing in its answer.
    """

    object: Manifest
    if_invalid: Literal["enabled", "disabled"] | None = Field(
        default=None,
        alias="ifInvalid",
        description="what the gate is if the object is refused as invalid; none: that is not known",
    )

    @property
    def on_if_invalid(self) -> bool | None:
        """Whether a refusal (422) says that the gate is on; None if it says nothing."""
        return None if self.if_invalid is None else self.if_invalid == "enabled"


class Feature(Strict):
    """One DRA feature."""

    summary: str = Field(description="what it is, in a sentence")
    kep: str = Field(description="URL of the enhancement that defines it")
    gate: str | None = Field(
        default=None, description="its feature gate; none where none guards it any more"
    )
    probe: GateProbe | None = Field(
        default=None, description="how to see whether the gate is on without the server's metrics"
    )
    since: str | None = Field(
        default=None,
        description="the first Kubernetes minor in which it is on by default; none while it is off",
    )


class FeatureRegistry(Strict):
    """The features that scenarios may be about."""

    api_version: Literal["dra-conformance/v1"] = Field(alias="apiVersion")
    kind: Literal["FeatureRegistry"]
    features: dict[str, Feature]


@cache
def load_registry() -> FeatureRegistry:
    """The registry that the suite ships, ``scenarios/features.yaml``."""
    return load_document(FeatureRegistry, scenarios_dir() / "features.yaml", "feature registry")
