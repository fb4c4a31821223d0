from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from conformance import __version__
from conformance.certify.build import build_believed_report, build_report
from conformance.certify.contradictions import EvidenceError
from conformance.certify.model import ConformanceReport
from conformance.certify.profiles import CORE, Profile, empty_parts, find_foundations, load_profiles
from conformance.certify.values import Implementation, Result, build_implementation
from conformance.cli.commands.schema import make_schema
from conformance.compare.compare_scenarios import compare_scenario
from conformance.compare.conclude import conclude_run
from conformance.digest import document_digest
from conformance.engine.setup import planned as planned_of
from conformance.results.events.scenario import Attempt, Outcome, PlannedScenario, ScenarioFinished
from conformance.results.knownissues import with_known_issues
from conformance.results.read import RecordedRun, load_results
from conformance.results.write import ResultFile
from conformance.scenario.documents.validate import load_document
from conformance.scenario.documents.yamlfile import read_documents
from conformance.scenario.driver.variables import make_suffix, name_namespace
from conformance.scenario.registry import load_registry
from conformance.scenario.selection import select
from conformance.seam.overlaps import Overlap
from kube.base.errors import ExitCode, UsageError
from tests.compare.cluster import allocation, claim, decision
from tests.report.builders import HOSTILE, all_of, finished, planned, play, sample, stream
from tests.report.golden import check

GOLDEN = Path(__file__).parent / "golden"
IMPLEMENTATION = Implementation(
    organization="Example",
    project="example-driver",
    url="https://example.com/driver",
    version="1.2.3",
    contact=("@example/team",),
)
PROFILES = load_profiles().select(["dra-core-cluster", "dra-extended"])
REAL = {"suite_version": __version__, "simulated": (), "target": "cluster"}
"""The header of a run that can certify something."""


def recorded(
    folder: Path, scenarios: list[PlannedScenario], events: list[ScenarioFinished], **changes: Any
) -> RecordedRun:
    path = folder / "results.jsonl"
    # A scenario that is skipped has no steps.
    ran = [replace(e, steps=()) if e.outcome is Outcome.SKIPPED else e for e in events]
    judged = [compare_scenario(event) for event in ran]
    play(ResultFile(path), stream(scenarios, ran, **{"start": REAL, "compared": judged, **changes}))
    return load_results(path)


def built(
    result: RecordedRun,
    profiles: Sequence[Profile] = PROFILES,
    catalogue: Sequence[PlannedScenario] | None = None,
    about: Implementation = IMPLEMENTATION,
) -> ConformanceReport:
    """The report on a run of all that the suite ships, unless it ships something else."""
    shipped = result.run.planned if catalogue is None else catalogue
    return build_report(result, about, profiles, shipped)


def core(folder: Path, events: list[ScenarioFinished], **changes: Any) -> Result:
    scenarios = changes.pop("scenarios", None) or [event.scenario for event in events]
    catalogue = changes.pop("catalogue", None)
    result = recorded(folder, scenarios, events, **changes)
    return built(result, load_profiles().select(["dra-core-cluster"]), catalogue).profiles[0].result


def test_a_report_says_what_the_result_file_says(tmp_path: Path) -> None:
    play(ResultFile(tmp_path / "r"), stream(*sample()[:2]))
    catalogue = sample()[0] + [planned("core/new")]
    report = build_believed_report(
        load_results(tmp_path / "r"), IMPLEMENTATION, PROFILES, catalogue
    )
    check("report.yaml", report.to_yaml(), GOLDEN)


def test_a_report_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    report = built(recorded(tmp_path, *sample()[:2]))
    path = tmp_path / "report.yaml"
    path.write_text(report.to_yaml(), encoding="utf-8")
    assert load_document(ConformanceReport, path, "report") == report
    assert load_document(ConformanceReport, path, "report").to_yaml() == report.to_yaml()


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> ConformanceReport:
    return built(recorded(tmp_path_factory.mktemp("r"), [A], [finished(A)]))


@given(text=st.text(min_size=1, max_size=50))
def test_any_text_survives_the_round_trip(
    text: str, report: ConformanceReport, tmp_path_factory: pytest.TempPathFactory
) -> None:
    build_implementation = IMPLEMENTATION.model_copy(update={"project": text})
    report = report.model_copy(update={"implementation": build_implementation, "target": text})
    path = tmp_path_factory.getbasetemp() / "any.yaml"
    path.write_text(report.to_yaml(), encoding="utf-8")
    assert load_document(ConformanceReport, path, "report") == report


def test_hostile_texts_stay_data(tmp_path: Path) -> None:
    event = finished(outcome=Outcome.SKIPPED, message=f"{HOSTILE}\n---\n!!python/object:os.x {{}}")
    report = built(recorded(tmp_path, [event.scenario], [event]))
    documents = list(yaml.safe_load_all(report.to_yaml()))
    assert len(documents) == 1
    assert documents[0]["profiles"][0]["skipped"][0]["reason"].endswith("!!python/object:os.x {}")


def test_no_local_folder_is_in_a_report(tmp_path: Path) -> None:
    text = built(recorded(tmp_path, *sample()[:2])).to_yaml()
    assert "/home/somebody" not in text
    assert str(tmp_path) not in text


A, B = planned("core/a"), planned("core/b")


@pytest.mark.parametrize(
    ("outcomes", "result"),
    [
        ((Outcome.PASSED, Outcome.PASSED), Result.SUCCESS),
        ((Outcome.PASSED, Outcome.SKIPPED), Result.PARTIAL),
        ((Outcome.FAILED, Outcome.LOST), Result.FAILURE),
        ((Outcome.FAILED, Outcome.SKIPPED), Result.FAILURE),
        ((Outcome.PASSED, Outcome.ERROR), Result.INCONCLUSIVE),
        ((Outcome.PASSED, Outcome.LOST), Result.INCONCLUSIVE),
        ((), Result.INCONCLUSIVE),
    ],
)
def test_the_core_comes_to_the_worst_of_its_outcomes(
    tmp_path: Path, outcomes: tuple[Outcome, ...], result: Result
) -> None:
    pairs = zip((A, B), outcomes, strict=False)
    assert core(tmp_path, [finished(item, outcome, "why") for item, outcome in pairs]) is result


def test_an_extended_skip_does_not_count(tmp_path: Path) -> None:
    two = planned("extended/two")
    scenarios = [planned("extended/one"), two]
    events = [finished(scenarios[0]), finished(two, Outcome.SKIPPED, "no gate")]
    report = built(recorded(tmp_path, scenarios, events), load_profiles().select(["dra-extended"]))
    assert report.profiles[0].result is Result.SUCCESS
    assert report.profiles[0].skipped[0].reason == "no gate"


def test_a_selection_never_looks_like_the_whole_profile(tmp_path: Path) -> None:
    catalogue = [A, B, planned("extended/other")]
    assert core(tmp_path, [finished(A)], catalogue=catalogue) is Result.PARTIAL
    assert core(tmp_path, [finished(A), finished(B)], catalogue=catalogue) is Result.SUCCESS


def test_a_run_that_certifies_nothing_is_never_a_success(tmp_path: Path) -> None:
    for change in ({"start": {**REAL, "target": "reference"}}, {"compared": None}):
        result = recorded(tmp_path, [A], [finished(A)], **change)
        report = built(result, load_profiles().select(["dra-core-cluster"]))
        assert report.profiles[0].result is Result.UNCERTIFIED
        assert report.exit_code is ExitCode.PARTIAL
        assert len(report.uncertified) == 1
        failed = recorded(tmp_path, [A], [finished(A, Outcome.FAILED, "no")], **change)
        assert (
            built(failed, load_profiles().select(["dra-core-cluster"])).profiles[0].result
            is Result.FAILURE
        )


def test_scenarios_that_the_suite_does_not_ship_count_for_no_profile(tmp_path: Path) -> None:
    own = planned("vendor/own", level="core")
    events = [finished(A), finished(own, Outcome.FAILED, "no")]
    result = recorded(tmp_path, [A, own], events)
    report = built(result, load_profiles().select(["dra-core-cluster"]), [A])
    assert report.profiles[0].result is Result.SUCCESS
    assert report.profiles[0].failed == ()
    changed = replace(A, digest="sha256:" + "1" * 64)
    with pytest.raises(EvidenceError, match="is not the scenario that the suite ships"):
        built(result, load_profiles().select(["dra-core-cluster"]), [changed])


def test_a_report_says_what_was_tested(tmp_path: Path) -> None:
    profile = {"metadata": {"name": "gpu.acme.example"}, "spec": {"driver": "acme"}}
    digest = document_digest(profile)
    start = {
        **REAL,
        "driver_profile": profile,
        "driver_profile_digest": digest,
        "feature_gates": {"DRADeviceTaints": False},
    }
    report = built(recorded(tmp_path, [A], [finished(A)], start=start))
    assert report.driver_profile is not None
    assert (report.driver_profile.name, report.driver_profile.digest) == (
        "gpu.acme.example",
        digest,
    )
    assert report.feature_gates == {"DRADeviceTaints": False}


def test_an_inadmissible_allocation_fails_the_profile_though_all_passed(tmp_path: Path) -> None:
    event = finished(A, decisions=(decision([claim()], [allocation("gpu-7")]),))
    profile = built(recorded(tmp_path, [A], [event])).profiles[0]
    assert profile.result is Result.FAILURE
    assert profile.comparison is not None
    assert profile.comparison.not_conformant == ("core/a",)
    assert profile.comparison.verdicts["inadmissible"] == 1


def ended_as(scenario: PlannedScenario, outcome: Outcome) -> ScenarioFinished:
    if outcome is Outcome.FLAKY:
        return finished(scenario, outcome, "no", attempts=(Attempt(Outcome.FAILED, "no", "", 1.0),))
    if outcome is not Outcome.KNOWN:
        return finished(scenario, outcome, "no")
    ns = name_namespace(make_suffix("r1", scenario.id))
    overlap = Overlap("d", "p", "gpu-0", f"{ns}/b", f"{ns}/a", 7, ns)
    failed = finished(scenario, Outcome.FAILED, "no", overlaps=(overlap,), namespace=ns)
    return with_known_issues(failed, "cluster", all_of("1.37.1"))


def test_a_known_issue_is_in_the_report_and_is_not_held_against_the_driver(tmp_path: Path) -> None:
    events = [ended_as(A, Outcome.KNOWN), ended_as(B, Outcome.PASSED)]
    profile = built(recorded(tmp_path, [A, B], events)).profiles[0]
    assert profile.result in (Result.SUCCESS, Result.UNCERTIFIED)
    assert (profile.statistics.known, profile.failed) == (1, ())
    [known] = profile.known
    assert (known.scenario, known.link) == ("core/a", "docs/found/double-allocation.md")


def test_a_failure_that_only_claims_to_be_a_known_issue_is_no_evidence(tmp_path: Path) -> None:
    known = ended_as(A, Outcome.KNOWN)
    for forged in (replace(known, overlaps=()), replace(known, known_issues=())):
        with pytest.raises(EvidenceError, match="is not a known issue of Kubernetes"):
            built(recorded(tmp_path, [A], [forged]))


@pytest.mark.parametrize("outcomes", [(a, b) for a in Outcome for b in Outcome])
def test_the_core_result_and_the_exit_code_of_the_run_agree(
    tmp_path: Path, outcomes: tuple[Outcome, Outcome]
) -> None:
    events = [ended_as(A, outcomes[0]), ended_as(B, outcomes[1])]
    result = recorded(tmp_path, [A, B], events)
    report = built(result, load_profiles().select(["dra-core-cluster"]))
    assert report.exit_code is conclude_run(result).code


def test_a_truncated_run_cannot_be_certified(tmp_path: Path) -> None:
    result = replace(recorded(tmp_path, [A], [finished(A)]), footer=None)
    with pytest.raises(UsageError, match="no footer"):
        built(result)


def test_a_problem_of_the_comparison_is_inconclusive(tmp_path: Path) -> None:
    judged = [compare_scenario(finished(A), finished(A, Outcome.ERROR, "boom"))]
    profile = built(recorded(tmp_path, [A], [finished(A)], compared=judged)).profiles[0]
    assert profile.result is Result.INCONCLUSIVE
    assert profile.comparison is not None
    assert profile.comparison.not_judged == ("core/a",)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        pytest.param(("kind: Conf", "kind: Unconf"), r":2: \$\.kind", id="kind"),
        pytest.param(("version: 1.2.3", "version: ''"), r"\$\.implementation\.version", id="empty"),
        pytest.param(("url: https", "url: javascript"), r"\$\.implementation\.url", id="address"),
        pytest.param(("passed: 1", "passed: -1"), r"\$\.profiles\[0\]\.statistics", id="negative"),
        pytest.param(("target:", "colour:"), r"\$\.colour: unknown field", id="unknown field"),
        pytest.param(("kind:", "kind: ["), r":3: is not YAML", id="no YAML"),
        pytest.param(
            ("target:", "target: !!python/name:os.system x\ntarget2:"), "not allowed", id="tag"
        ),
    ],
)
def test_a_malformed_report_is_reported_with_its_place(
    tmp_path: Path, change: tuple[str, str], message: str
) -> None:
    report = built(recorded(tmp_path, *sample()[:2]))
    path = tmp_path / "report.yaml"
    assert change[0] in report.to_yaml()
    path.write_text(report.to_yaml().replace(*change, 1))
    with pytest.raises(UsageError, match=message) as caught:
        load_document(ConformanceReport, path, "report")
    assert caught.value.exit_code is ExitCode.USAGE


def test_several_documents_are_no_report(tmp_path: Path) -> None:
    path = tmp_path / "report.yaml"
    path.write_text("a: 1\n---\nb: 2\n")
    with pytest.raises(UsageError, match="2 documents"):
        load_document(ConformanceReport, path, "report")


def test_the_schema_has_every_field_of_a_report(tmp_path: Path) -> None:
    report = built(recorded(tmp_path, *sample()[:2]))
    assert set(make_schema("report")["properties"]) == set(report.to_json())
    assert json.loads(json.dumps(report.to_json())) == report.to_json()
    assert ConformanceReport.model_validate(report.to_json()) == report


def test_the_shipped_profiles_cover_both_levels() -> None:
    by_name = {profile.name: profile for profile in load_profiles().profiles}
    assert by_name["dra-core-cluster"].includes(planned("core/x"))
    assert not by_name["dra-core-cluster"].includes(planned("extended/x"))
    assert by_name["dra-extended"].includes(planned("extended/x"))
    assert by_name["dra-core-cluster"].skips == "partial"
    assert not by_name["dra-beta-apis"].includes(planned("extended/x"))
    assert by_name["dra-beta-apis"].includes(planned("extended/x", feature="BetaAPIVersions"))
    assert by_name["dra-beta-apis"].skips == "partial"


def test_a_profile_of_features_takes_those_alone() -> None:
    profile = Profile(
        name="taints", summary="Only taints of devices.", levels=("extended",), features=("Taints",)
    )
    assert profile.includes(planned("extended/x", feature="Taints"))
    assert not profile.includes(planned("extended/x"))


def test_a_profile_may_name_its_scenarios() -> None:
    profile = Profile(
        name="guide", summary="Those of a guide.", levels=("core",), scenarios=("core/a",)
    )
    assert profile.includes(A)
    assert not profile.includes(B)


PROFILE = """apiVersion: dra-conformance/v1
kind: ProfileSet
profiles:
- name: dra-core
  summary: A long enough summary.
  levels: [core]
"""


@pytest.mark.parametrize(
    ("change", "message"),
    [
        pytest.param(("[core]", "[kernel]"), r":6: \$\.profiles\[0\]\.levels\[0\]", id="level"),
        pytest.param(("levels:", "level:"), r"unknown field 'level'", id="unknown field"),
        pytest.param(("ProfileSet", "Profiles"), r":2: \$\.kind", id="kind"),
        pytest.param(
            ("name: dra-core", "name: DRA core"), r":4: \$\.profiles\[0\]\.name", id="name"
        ),
        pytest.param(("kind:", "kind: {"), "is not YAML", id="no YAML"),
    ],
)
def test_a_malformed_profile_file_is_reported_with_its_place(
    tmp_path: Path, change: tuple[str, str], message: str
) -> None:
    path = tmp_path / "profiles.yaml"
    path.write_text(PROFILE.replace(*change))
    with pytest.raises(UsageError, match=message):
        load_profiles(path)


@pytest.mark.parametrize(
    ("part", "message"),
    [
        pytest.param("", "", id="all"),
        pytest.param("scenarios: [core/a]", "", id="a scenario"),
        pytest.param("features: [DeviceHealth]", "no scenario belongs to it", id="feature"),
        pytest.param(
            "features: [Sharing, DeviceHealth]", "features[1]: no scenario", id="one of two"
        ),
        pytest.param("scenarios: [core/a, core/c]", "scenarios[1]: core/c is no", id="id"),
        pytest.param("scenarios: [extended/a]", "no scenario belongs to it", id="level"),
    ],
)
def test_a_profile_that_names_no_scenario_is_refused(
    tmp_path: Path, part: str, message: str
) -> None:
    path = tmp_path / "profiles.yaml"
    path.write_text(f"{PROFILE}  {part}\n")
    [document] = read_documents(path)
    shipped = [planned("core/a", feature="Sharing"), planned("core/b"), planned("extended/a")]
    found = [document.tell(item) for item in empty_parts(load_profiles(path), shipped)]
    assert [message in text for text in found] == ([True] if message else [])


def test_the_shipped_profiles_name_scenarios_and_are_in_the_docs() -> None:
    profiles = load_profiles()
    assert list(empty_parts(profiles, [planned_of(item) for item in select()])) == []
    page = (Path(__file__).parents[2] / "docs/certifying.md").read_text(encoding="utf-8")
    assert [item.name for item in profiles.profiles if f"`{item.name}`" not in page] == []


@pytest.mark.parametrize(
    ("name", "foundations"),
    [
        ("dra-core-cluster", ()),
        ("dra-core-driver", ()),
        ("dra-core-scheduler", ()),
        ("dra-derived-attributes", CORE[:1]),  # synthetic devices alone
        ("dra-extended", CORE),
        ("dra-ai-driver-runtime-management", CORE),  # of the tiers allocation and device
        ("dra-ai-secure-accelerator-access", CORE),  # some scenarios of the core
    ],
)
def test_what_a_profile_stands_on(name: str, foundations: tuple[str, ...]) -> None:
    [profile] = load_profiles().select([name])
    shipped = [planned_of(item) for item in select()]
    assert find_foundations(profile, shipped) == foundations


def test_two_profiles_of_one_name_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "profiles.yaml"
    path.write_text(PROFILE + PROFILE.split("profiles:\n")[1])
    with pytest.raises(UsageError, match="same name: dra-core"):
        load_profiles(path)


def test_an_unknown_profile_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="unknown profile dra-cor; known are dra-core"):
        load_profiles().select(["dra-cor"])


def test_the_shipped_profiles_name_features_that_exist() -> None:
    known = load_registry().features
    assert {name for profile in load_profiles().profiles for name in profile.features} <= set(known)


@pytest.mark.parametrize(
    ("change", "option"), [({"url": "example.com"}, "--url"), ({"version": ""}, "--version")]
)
def test_particulars_of_a_wrong_form_are_a_usage_error(change: dict[str, str], option: str) -> None:
    given = {"organization": "E", "project": "p", "url": "https://e.example", "version": "1"}
    assert build_implementation(**given).project == "p"
    with pytest.raises(UsageError, match=option):
        build_implementation(**{**given, **change})


@pytest.mark.parametrize(
    ("outcomes", "expected"),
    [
        ((Outcome.PASSED, Outcome.PASSED), ExitCode.CONFORMANT),
        ((Outcome.SKIPPED, Outcome.PASSED), ExitCode.PARTIAL),
        ((Outcome.SKIPPED, Outcome.ERROR), ExitCode.INCONCLUSIVE),
        ((Outcome.SKIPPED, Outcome.FAILED), ExitCode.NOT_CONFORMANT),
        ((Outcome.LOST, Outcome.FAILED), ExitCode.NOT_CONFORMANT),
    ],
)
def test_the_worst_profile_decides_on_the_exit_code_of_a_report(
    tmp_path: Path, outcomes: tuple[Outcome, Outcome], expected: ExitCode
) -> None:
    events = [finished(A, outcomes[0]), finished("extended/d", outcomes[1])]
    result = recorded(tmp_path, [event.scenario for event in events], events)
    assert built(result).exit_code is expected
