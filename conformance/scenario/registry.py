"""The feature registry: the names that a scenario's ``feature`` may have, and what each means."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from conformance.errors import UsageError
from conformance.scenario.lint.claims import Problem
from conformance.scenario.validate import validated
from conformance.scenario.yamlfile import read_documents


class Feature(BaseModel):
    """One DRA feature.

    Attributes:
        kep: URL of the enhancement that defines it.
        gate: the feature gate, None where none guards it any more.
        since: the first Kubernetes minor in which it is on by default; None while it is off.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    summary: str
    kep: str
    gate: str | None = None
    since: str | None = None


class FeatureRegistry(BaseModel):
    """A document of kind FeatureRegistry."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    api_version: Literal["dra-conformance/v1"] = Field(alias="apiVersion")
    kind: Literal["FeatureRegistry"]
    features: dict[str, Feature]

    def problems(self, name: str) -> list[Problem]:
        """What is wrong with a scenario's feature: it must be one of these names."""
        if name in self.features:
            return []
        near = difflib.get_close_matches(name, self.features, n=3, cutoff=0.3)
        hint = f"did you mean {', '.join(near)}?" if near else "see features.yaml for those known"
        return [Problem(("spec", "feature"), f"unknown feature {name!r}; {hint}")]


def load_registry(file: Path) -> FeatureRegistry:
    """Read ``features.yaml``.

    Raises:
        UsageError: it is missing or malformed.
    """
    documents = read_documents(file)
    if len(documents) != 1:
        raise UsageError(f"{file}: has {len(documents)} documents; a feature registry is one")
    return validated(FeatureRegistry, documents[0])
