"""The JSON Schemas of the documents that people write, generated from their models."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from conformance.scenario.model import Scenario
from conformance.scenario.profile import DriverProfile

_MODELS: dict[str, type[BaseModel]] = {"scenario": Scenario, "profile": DriverProfile}


def json_schema(which: str) -> dict[str, Any]:
    """The schema of ``scenario`` or ``profile`` documents (JSON Schema 2020-12)."""
    schema = _MODELS[which].model_json_schema(by_alias=True)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
