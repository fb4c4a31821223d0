"""The behaviour list, what scenarios say that they cover of it, and the page about both."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.cli.scenarios.listing import coverage
from conformance.scenario.documents.yamlfile import read_documents
from conformance.scenario.lint.files import lint_documents
from conformance.scenario.loader import LoadedScenario
from conformance.scenario.registry import BehaviourList, load_behaviours, load_registry
from tests.scenario.shipped import shipped

PAGE = Path(__file__).resolve().parents[2] / "docs/coverage.md"


def listed(**behaviours: object) -> BehaviourList:
    return BehaviourList.model_validate(
        {
            "apiVersion": "dra-conformance/v1",
            "kind": "BehaviourList",
            "version": "v1.99.1",
            "files": {"e2e": "test/e2e.go"},
            "behaviours": behaviours,
        }
    )


def scenario(name: str) -> LoadedScenario:
    return next(item for item in shipped() if item.id.endswith(f"/{name}"))


def rows(known: BehaviourList, *names: str) -> dict[str, list[str]]:
    """Id of a behaviour -> the cells after it."""
    page = coverage([scenario(name) for name in names], known, load_registry())
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in page.splitlines()]
    return {row[0].split("**")[1]: row[1:] for row in cells if row and "**" in row[0]}


def test_the_page_is_current() -> None:
    page = coverage(shipped(), load_behaviours(), load_registry())
    assert PAGE.read_text(encoding="utf-8") == page, (
        "run: dra-conformance list --coverage > docs/coverage.md"
    )


def test_every_scenario_says_what_it_shows() -> None:
    assert [item.id for item in shipped() if not item.scenario.spec.covers] == []


def test_every_behaviour_has_a_scenario_or_says_why_not() -> None:
    shown = {name for item in shipped() for name in item.scenario.spec.covers}
    known = load_behaviours().behaviours
    assert [name for name, one in known.items() if name not in shown and not one.missing] == []


def test_every_behaviour_is_of_a_known_feature_and_every_file_has_tests_of_one() -> None:
    known = load_behaviours()
    features = load_registry().features
    assert {one.feature for one in known.behaviours.values()} <= features.keys()
    assert {file for one in known.behaviours.values() for file in one.upstream} == set(known.files)


def test_no_test_of_upstream_counts_for_two_behaviours() -> None:
    all_of_them = [
        (file, line)
        for one in load_behaviours().behaviours.values()
        for file, lines in one.upstream.items()
        for line in lines
    ]
    assert len(all_of_them) == len(set(all_of_them))


def test_a_row_says_where_its_scenarios_run_and_what_is_missing() -> None:
    about = {"feature": "DeviceTaints", "summary": "Taints.", "missing": "the rest"}
    known = listed(
        **{
            "noschedule-taint": {**about, "upstream": {"e2e": [1, 7]}},
            "taint-rules": {**about, "missing": None},
            "cdi-specs-removed": about,
            "api-versions-convert": about,
            "preemption": about,
        }
    )
    found = rows(
        known,
        "noschedule-taint-keeps-pods-away",
        "noexecute-rule-evicts-pod",
        "cleanup-cdi-spec-removed",
        "api-version-v1beta1-manifests-allocated",
    )
    assert found["noschedule-taint"][1:] == ["2", "(1.34), (1.35), 1.36, 1.37", "API", "the rest"]
    assert found["taint-rules"][1:] == ["", "1.37", "API", ""]
    assert found["cdi-specs-removed"][1:] == ["", "1.34, 1.35, 1.36, 1.37", "local", "the rest"]
    assert found["api-versions-convert"][2] == "(1.34), (1.35), (1.36), (1.37)"
    assert found["preemption"] == ["", "the rest"]


def test_the_page_counts_what_is_covered_in_part() -> None:
    one = {"feature": "DeviceTaints", "summary": "Taints.", "upstream": {"e2e": [1, 7]}}
    known = listed(
        **{"noschedule-taint": one, "taint-rules": {**one, "missing": "a"}, "other-taints": one}
    )
    names = ("noschedule-taint-keeps-pods-away", "noexecute-rule-evicts-pod")
    page = coverage([scenario(name) for name in names], known, load_registry())
    assert "3 behaviours: 1 covered,\n1 in part, 1 without a scenario. 6 tests" in page


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("{e2e: [1]}", "{e2: [1]}", "x: unknown file 'e2'; did you mean e2e?"),
        ("{e2e: [1]}", "{e2e: [one]}", "upstream.e2e[0]: must be a whole number"),
        ("summary: S.", "sumary: S.", "unknown field 'sumary'"),
    ],
)
def test_a_mistake_in_the_list_is_told_with_its_line(
    old: str, new: str, says: str, tmp_path: Path
) -> None:
    file = tmp_path / "behaviours.yaml"
    text = (
        "apiVersion: dra-conformance/v1\nkind: BehaviourList\nversion: v1\nfiles: {e2e: a.go}\n"
        "behaviours:\n  x: {feature: DeviceTaints, summary: S., upstream: {e2e: [1]}}\n"
    )
    file.write_text(text.replace(old, new))
    lines = [line.text for line in lint_documents(read_documents(file))]
    assert any(line.startswith(f"{file}:") and says in line for line in lines), lines
