"""The JSON Schemas: what the models say, in words that every validator and editor knows."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any, get_args

import pytest
from jsonschema import Draft202012Validator

from conformance.cli.commands.schema import SchemaName, make_schema, render_schema
from conformance.scenario.registry import load_registry
from tests.scenario.shipped import ROOT, shipped

VOCABULARY = {
    *("$defs", "$id", "$ref", "$schema", "additionalProperties", "allOf", "anyOf", "const"),
    *("default", "description", "enum", "exclusiveMaximum", "exclusiveMinimum", "items"),
    *("maxItems", "maxLength", "maximum", "minItems", "minLength", "minimum", "oneOf"),
    *("pattern", "patternProperties", "prefixItems", "properties", "propertyNames"),
    *("required", "type", "uniqueItems", "maxProperties", "minProperties", "format"),
}
"""Words of JSON Schema 2020-12 that are in use; a validator that is strict refuses any other."""


_MAPS = ("$defs", "properties", "patternProperties")
_LISTS = ("allOf", "anyOf", "oneOf", "prefixItems")
_SINGLE = ("additionalProperties", "contains", "items", "not", "propertyNames")


def subschemas(schema: Any) -> Iterator[dict[str, Any]]:
    """A schema and every schema in it."""
    if not isinstance(schema, dict):
        return
    yield schema
    for word in _MAPS:
        for inner in schema.get(word, {}).values():
            yield from subschemas(inner)
    for word in _LISTS:
        for inner in schema.get(word, ()):
            yield from subschemas(inner)
    for word in _SINGLE:
        yield from subschemas(schema.get(word))


def shipped_schema(which: SchemaName) -> dict[str, Any]:
    schema: dict[str, Any] = json.loads((ROOT / f"schemas/{which}.schema.json").read_text())
    return schema


@pytest.mark.parametrize("which", get_args(SchemaName))
def test_the_shipped_schema_is_generated_from_the_model(which: SchemaName) -> None:
    file = ROOT / f"schemas/{which}.schema.json"
    assert file.read_text() == render_schema(make_schema(which)), (
        f"run: dra-conformance schema {which} > scenarios/schemas/{file.name}"
    )


@pytest.mark.parametrize("which", get_args(SchemaName))
def test_a_schema_has_only_words_of_json_schema_and_an_id(which: SchemaName) -> None:
    schema = shipped_schema(which)
    Draft202012Validator.check_schema(schema)
    assert {word for one in subschemas(schema) for word in one} <= VOCABULARY
    assert schema["$id"] == f"https://dra-conformance.dev/v1/{which}.schema.json"


@pytest.mark.parametrize("which", get_args(SchemaName))
def test_a_description_is_for_the_author_of_a_document(which: SchemaName) -> None:
    texts = [one.get("description", "") for one in subschemas(shipped_schema(which))]
    assert [text for text in texts if "``" in text or ":class:" in text or "\n" in text] == []


def test_a_default_fits_its_schema() -> None:
    schema = shipped_schema("scenario")
    for one in subschemas(schema):
        if "default" in one:
            alone = {**one, "$defs": schema["$defs"]}
            assert list(Draft202012Validator(alone).iter_errors(one["default"])) == [], one


def test_the_features_are_those_of_the_registry() -> None:
    feature = shipped_schema("scenario")["$defs"]["Spec"]["properties"]["feature"]
    assert feature["enum"] == sorted(load_registry().features)


def test_the_schema_refuses_what_the_model_refuses() -> None:
    document = copy.deepcopy(shipped()[0].document.data)
    document["spec"] |= {"tier": "cloud", "unknown": 1, "timeouts": {"cleanup": "soon"}}
    validator = Draft202012Validator(shipped_schema("scenario"))
    assert len(list(validator.iter_errors(document))) == 3
