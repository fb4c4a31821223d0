"""The feature registry: the names that a scenario's ``feature`` may have, and what each means."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Literal

from pydantic import Field

from conformance.scenario.base import Strict
from conformance.scenario.validate import load_document
from conformance.scenario.yamlfile import Problem


class Feature(Strict):
    """One DRA feature.

    Attributes:
        kep: URL of the enhancement that defines it.
        gate: the feature gate, None where none guards it any more.
        since: the first Kubernetes minor in which it is on by default; None while it is off.
    """

    summary: str
    kep: str
    gate: str | None = None
    since: str | None = None


class FeatureRegistry(Strict):
    """A document of kind FeatureRegistry."""

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
    return load_document(FeatureRegistry, file, "feature registry")
