"""Every shipped scenario, profile and schema is what the models say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from conformance.cli.scenarios import SchemaName, catalogue, schema_of
from conformance.data import scenarios_dir
from conformance.scenario.loader import LoadedScenario, default_paths, load_scenarios
from conformance.scenario.profile import load_profile
from conformance.scenario.registry import load_registry
from conformance.scenario.schema import schema_text
from conformance.scenario.variables import Variables
from conformance.scenario.yamlfile import read_documents

ROOT = scenarios_dir()
PROFILES = sorted((ROOT / "drivers").glob("*.yaml"))


def shipped() -> list[LoadedScenario]:
    return load_scenarios(default_paths(ROOT), ROOT, load_registry(ROOT / "features.yaml"))


@pytest.fixture(scope="module")
def validator() -> Any:
    schema = json.loads((ROOT / "schemas/scenario.schema.json").read_text())
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


@pytest.mark.parametrize("which", list(SchemaName))
def test_the_shipped_schema_is_generated_from_the_model(which: SchemaName) -> None:
    file = ROOT / f"schemas/{which}.schema.json"
    assert file.read_text() == schema_text(schema_of(which)), (
        f"run: dra-conformance schema {which} > scenarios/schemas/{file.name}"
    )


@pytest.mark.parametrize("loaded", shipped(), ids=lambda loaded: loaded.id)
def test_a_shipped_scenario_fits_the_schema(loaded: LoadedScenario, validator: Any) -> None:
    assert [error.message for error in validator.iter_errors(loaded.document.data)] == []


@pytest.mark.parametrize("loaded", shipped(), ids=lambda loaded: loaded.id)
def test_a_shipped_scenario_resolves_with_every_shipped_profile(loaded: LoadedScenario) -> None:
    spec = loaded.scenario.spec
    for file in PROFILES:
        profile = load_profile(file.stem, ROOT / "drivers")
        if spec.tier == "allocation":
            loaded.bind(Variables(None, "0badcafe", "image"))
        elif all(name in profile.spec.config for name in spec.requires.config):
            loaded.bind(Variables(profile, "0badcafe", "image"))


def test_the_schema_refuses_what_the_model_refuses(validator: Any) -> None:
    document = json.loads(json.dumps(shipped()[0].document.data))
    document["spec"]["tier"] = "cloud"
    document["spec"]["unknown"] = 1
    assert len(list(validator.iter_errors(document))) == 2


@pytest.mark.parametrize("file", PROFILES, ids=lambda file: file.stem)
def test_a_shipped_profile_is_named_like_its_file(file: Path) -> None:
    assert load_profile(file.stem, ROOT / "drivers").metadata.name == file.stem


def test_every_scenario_says_why_it_matters_in_a_comment() -> None:
    assert [item.id for item in shipped() if not _text(item).startswith("# ")] == []


def test_every_shipped_yaml_file_is_one_document() -> None:
    for file in ROOT.rglob("*.yaml"):
        assert len(read_documents(file)) == 1, file


def test_the_catalogue_is_current() -> None:
    page = Path(__file__).resolve().parents[2] / "docs/scenarios.md"
    assert page.read_text() == catalogue(shipped()), (
        "run: dra-conformance list --markdown > docs/scenarios.md"
    )


def _text(loaded: LoadedScenario) -> str:
    return loaded.document.file.read_text()
