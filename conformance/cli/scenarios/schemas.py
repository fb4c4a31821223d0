"""``dra-conformance schema``: JSON Schemas and examples of the documents of the suite.

The schemas are generated from the models. They are shipped as files below ``scenarios/schemas``,
too, for editors; a test sees that these are what the models say.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal, get_args

import typer
from pydantic import BaseModel

from conformance.data import scenarios_dir
from conformance.scenario.documents.yamlfile import walk
from conformance.scenario.driver.profile import DriverProfile
from conformance.scenario.model import Scenario
from conformance.scenario.registry import (
    FeatureRegistry,
    KnownIssues,
    ManifestSet,
    load_manifests,
    load_registry,
)
from conformance.scenario.scheduler import SchedulerProfile
from conformance.scenario.shape import ClusterShape
from conformance.scenario.short.foreach import MOST
from kube.base.errors import UsageError

SchemaName = Literal[
    "driver-check",
    "features",
    "known-issues",
    "manifests",
    "profile",
    "report",
    "results",
    "scenario",
    "scheduler",
    "shape",
    "summary",
]


def schema(
    which: Annotated[
        SchemaName,
        typer.Argument(metavar="KIND", help=f"One of {', '.join(get_args(SchemaName))}."),
    ] = "scenario",
    example: Annotated[
        bool, typer.Option("--example", help="Print a shipped document of that kind instead.")
    ] = False,
) -> None:
    """Print the JSON Schema of a kind of document, generated from its model."""
    if example:
        typer.echo(_example(which).read_text(encoding="utf-8"), nl=False)
    else:
        typer.echo(schema_text(schema_of(which)), nl=False)


def _example(which: SchemaName) -> Path:
    files = {
        "features": "features.yaml",
        "known-issues": "known-issues.yaml",
        "manifests": "manifests.yaml",
        "profile": "drivers/gpu.example.com.yaml",
        "scenario": "core/two-requests-two-devices.yaml",
        "scheduler": "schedulers/volcano.yaml",
        "shape": "shapes/one-gpu-held.yaml",
    }
    if which not in files:
        raise UsageError(f"there is no example of {which}; examples exist for {', '.join(files)}")
    return scenarios_dir() / files[which]


def schema_of(which: SchemaName) -> dict[str, Any]:
    """The schema by its name."""
    from conformance.certify.model import ConformanceReport
    from conformance.results.write import result_schema

    match which:
        case "driver-check":
            from conformance.drivercheck.result import DriverCheckResult

            schema = DriverCheckResult.model_json_schema(by_alias=True, mode="serialization")
            return published(which, schema)
        case "report":
            return published(which, ConformanceReport.model_json_schema(by_alias=True))
        case "results":
            return published(which, result_schema())
        case "summary":
            from conformance.report.jsonsummary import summary_schema

            return published(which, summary_schema())
        case _:
            return json_schema(which)


MODELS: Final[dict[str, type[BaseModel]]] = {
    "features": FeatureRegistry,
    "known-issues": KnownIssues,
    "manifests": ManifestSet,
    "profile": DriverProfile,
    "scenario": Scenario,
    "scheduler": SchedulerProfile,
    "shape": ClusterShape,
}
_ID: Final = "https://dra-conformance.dev/v1/{which}.schema.json"


def json_schema(which: str) -> dict[str, Any]:
    """The schema of the documents in :data:`MODELS`."""
    schema = MODELS[which].model_json_schema(by_alias=True)
    if which == "scenario":
        properties = schema["$defs"]["Spec"]["properties"]
        properties["feature"]["enum"] = sorted(load_registry().features)
        _add_short(schema["$defs"])
    return published(which, schema)


def _add_short(defs: dict[str, Any]) -> None:
    """What may be written, and is carried out before the model sees it: see ``scenario.short``."""
    manifests = load_manifests().manifests
    text = {"type": "string"}
    defs["ForEach"] = {
        "type": "object",
        "description": "makes one of this for each value, which ${each.NAME} reads",
        "minProperties": 1,
        "maxProperties": 1,
        "additionalProperties": {
            "anyOf": [
                {**text, "pattern": r"^(\d+\.\.\d+|\$\{each\..*\})$"},
                {"type": "array", "minItems": 1, "maxItems": MOST},
            ]
        },
    }
    defs["Manifest"] |= {
        "description": "a Kubernetes object, as one would apply it; or in short, by its name",
        "anyOf": [{"required": ["apiVersion", "kind"]}]
        + [{"required": [name]} for name in manifests],
        "properties": {
            **{name: {"description": item.summary} for name, item in manifests.items()},
            "like": {**text, "description": "name of an earlier one in short: all that it says"},
            "on": {**text, "description": "of a pod in short: name of the node that it must be on"},
        },
    }
    for name, one in defs.items():
        if name.endswith("Expectation") or name in {"Manifest", "Step", "Delete", "Operation"}:
            one["properties"]["forEach"] = {"$ref": "#/$defs/ForEach"}
    operation = defs["Operation"]["properties"]
    operation["op"] = {"anyOf": [operation["op"], {**text, "pattern": r"^\$\{each\."}]}
    operation["path"]["pattern"] += r"|^\$\{each\."
    for _, one in walk({name: one for name, one in defs.items() if name != "ForEach"}):
        if not isinstance(one, dict):
            continue
        is_map = one.get("type") == "object" and "additionalProperties" in one
        if one.get("type") in ("integer", "number") or (is_map and "properties" not in one):
            one |= {"type": [one["type"], "string"], "pattern": r"^\$\{each\."}


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
    return json.dumps(schema, indent=2, sort_keys=True) + "\n"
