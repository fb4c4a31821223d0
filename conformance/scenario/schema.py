"""The JSON Schemas of the documents that people write, generated from their models.

They are shipped as files below ``scenarios/schemas`` too, for editors; a test sees that these are
what the models say.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from pydantic import BaseModel

from conformance.scenario.behaviours import BehaviourList, load_behaviours
from conformance.scenario.knownissues import KnownIssues
from conformance.scenario.model import Scenario
from conformance.scenario.profile import DriverProfile
from conformance.scenario.registry import FeatureRegistry, load_registry
from conformance.scenario.shape import ClusterShape
from conformance.scenario.yamlfile import walk

MODELS: Final[dict[str, type[BaseModel]]] = {
    "behaviours": BehaviourList,
    "features": FeatureRegistry,
    "known-issues": KnownIssues,
    "profile": DriverProfile,
    "scenario": Scenario,
    "shape": ClusterShape,
}
_ID: Final = "https://dra-conformance.dev/v1/{which}.schema.json"


def json_schema(which: str) -> dict[str, Any]:
    """The schema of the documents in :data:`MODELS`."""
    schema = MODELS[which].model_json_schema(by_alias=True)
    if which == "scenario":
        properties = schema["$defs"]["Spec"]["properties"]
        properties["feature"]["enum"] = sorted(load_registry().features)
        properties["covers"]["items"]["enum"] = sorted(load_behaviours().behaviours)
    return published(which, schema)


def published(which: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """A schema from pydantic in the words of JSON Schema 2020-12, to be read by people in editors.

    OpenAPI's ``discriminator`` goes, and so do titles that are made of the names of fields.
    """
    for _, one in walk(schema):
        if not isinstance(one, dict):
            continue
        one.pop("discriminator", None)
        if isinstance(one.get("title"), str):  # and not a property of that name
            del one["title"]
        if isinstance(one.get("description"), str):
            one["description"] = one["description"].replace("``", "`").replace("\n", " ")
    return {
        **schema,
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": _ID.format(which=which),
    }


def schema_text(schema: Mapping[str, Any]) -> str:
    """A schema as a file."""
    return json.dumps(schema, indent=2, sort_keys=True) + "\n"
