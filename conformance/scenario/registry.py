"""The feature registry: the names that a scenario's ``feature`` may have, and what each means."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field

from conformance.scenario.base import Strict
from conformance.scenario.near import hint
from conformance.scenario.validate import load_document
from conformance.scenario.yamlfile import Problem


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

    def problems(self, name: str) -> list[Problem]:
        """What is wrong with a scenario's feature: it must be one of these names."""
        if name in self.features:
            return []
        return [
            Problem(("spec", "feature"), f"unknown feature {name!r}; {hint(name, self.features)}")
        ]


def load_registry(file: Path) -> FeatureRegistry:
    """Read ``features.yaml``.

    Raises:
        UsageError: it is missing or malformed.
    """
    return load_document(FeatureRegistry, file, "feature registry")
