"""The feature registry: the names that a scenario's ``feature`` may have, and what each means."""

from __future__ import annotations

from functools import cache
from typing import Literal

from pydantic import Field

from conformance.data import scenarios_dir
from conformance.scenario.base import Strict
from conformance.scenario.validate import load_document


class Feature(Strict):
    """One DRA feature."""

    summary: str = Field(description="what it is, in a sentence")
    kep: str = Field(description="URL of the enhancement that defines it")
    gate: str | None = Field(
        default=None, description="its feature gate; none where none guards it any more"
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
