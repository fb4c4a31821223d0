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

from conformance.allocators.contract import AllocationAnswer, AllocationQuestion
from conformance.allocators.questions import Vector
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
    "allocation-answer",
    "allocation-question",
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
    "vector",
]


def schema_command(
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
        typer.echo(_find_example(which).read_text(encoding="utf-8"), nl=False)
    else:
        typer.echo(render_schema(make_schema(which)), nl=False)


def _find_example(which: SchemaName) -> Path:
    """Return the file of a shipped document of a kind. Raises UsageError: there is none."""
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


def make_schema(which: SchemaName) -> dict[str, Any]:
    """Make the schema of a kind of document."""
    from conformance.certify.model import ConformanceReport
    from conformance.results.write import result_schema

    match which:
        case "driver-check":
            from conformance.drivercheck.result import DriverCheckResult

            schema = DriverCheckResult.model_json_schema(by_alias=True, mode="serialization")
            return publish_schema(which, schema)
        case "report":
            return publish_schema(which, ConformanceReport.model_json_schema(by_alias=True))
        case "results":
            return publish_schema(which, result_schema())
        case "summary":
            from conformance.report.jsonsummary import summary_schema

            return publish_schema(which, summary_schema())
        case _:
            return make_model_schema(which)


MODELS: Final[dict[str, type[BaseModel]]] = {
    "allocation-answer": AllocationAnswer,
    "allocation-question": AllocationQuestion,
    "features": FeatureRegistry,
    "known-issues": KnownIssues,
    "manifests": ManifestSet,
    "profile": DriverProfile,
    "scenario": Scenario,
    "scheduler": SchedulerProfile,
    "shape": ClusterShape,
    "vector": Vector,
}
_ID: Final = "https://dra-conformance.dev/v1/{which}.schema.json"


def make_model_schema(which: str) -> dict[str, Any]:
    """Make the schema of the documents in :data:`MODELS`."""
    schema = MODELS[which].model_json_schema(by_alias=True)
    if which == "scenario":
        properties = schema["$defs"]["Spec"]["properties"]
        properties["feature"]["enum"] = sorted(load_registry().features)
        _add_short(schema["$defs"])
    return publish_schema(which, schema)


def _add_short(defs: dict[str, Any]) -> None:
    """Add what may be written, and is carried out before the model sees it: ``scenario.short``."""
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
    for name, definition in defs.items():
        if name.endswith("Expectation") or name in {"Manifest", "Step", "Delete", "Operation"}:
            definition["properties"]["forEach"] = {"$ref": "#/$defs/ForEach"}
    operation = defs["Operation"]["properties"]
    operation["op"] = {"anyOf": [operation["op"], {**text, "pattern": r"^\$\{each\."}]}
    operation["path"]["pattern"] += r"|^\$\{each\."
    for _, node in walk({name: body for name, body in defs.items() if name != "ForEach"}):
        if not isinstance(node, dict):
            continue
        is_map = node.get("type") == "object" and "additionalProperties" in node
        if node.get("type") in ("integer", "number") or (is_map and "properties" not in node):
            node |= {"type": [node["type"], "string"], "pattern": r"^\$\{each\."}


def publish_schema(which: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """Put a schema from pydantic in the words of JSON Schema 2020-12, for readers in editors.

    OpenAPI's ``discriminator`` goes, and so do titles that are made of the names of fields.
    """
    for _, node in walk(schema):
        if not isinstance(node, dict):
            continue
        node.pop("discriminator", None)
        if isinstance(node.get("title"), str):  # and not a property of that name
            del node["title"]
        if isinstance(node.get("description"), str):
            node["description"] = node["description"].replace("``", "`").replace("\n", " ")
    return {
        **schema,
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": _ID.format(which=which),
    }


def render_schema(schema: Mapping[str, Any]) -> str:
    """Write a schema as it is shipped."""
    return json.dumps(schema, indent=2, sort_keys=True) + "\n"
