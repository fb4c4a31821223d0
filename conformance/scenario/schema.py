"""The JSON Schemas of the documents that people write, generated from their models.

They are shipped as files below ``scenarios/schemas`` too, for editors; a test sees that these are
what the models say.
"""

from __future__ import annotations

import json
from typing import Any

from pydantic import BaseModel

from conformance.scenario.model import Scenario
from conformance.scenario.profile import DriverProfile
from conformance.scenario.registry import FeatureRegistry

MODELS: dict[str, type[BaseModel]] = {
    "features": FeatureRegistry,
    "profile": DriverProfile,
    "scenario": Scenario,
}


def json_schema(which: str) -> dict[str, Any]:
    """The schema of the documents in :data:`MODELS` (JSON Schema 2020-12)."""
    schema = MODELS[which].model_json_schema(by_alias=True)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def schema_text(schema: dict[str, Any]) -> str:
    """A schema as a file."""
    return json.dumps(schema, indent=2, sort_keys=True) + "\n"
