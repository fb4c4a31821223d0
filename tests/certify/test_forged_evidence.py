"""What a careful liar does: every digest and count computed again, the report made to fit."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest

from conformance.certify.build import OtherSuiteError, build_believed_report, build_report
from conformance.certify.codes import Code
from conformance.certify.contradictions import EvidenceError
from conformance.compare.compare_scenarios import compare_scenario
from conformance.compare.conclude import conclude_run
from conformance.compare.demands import WantedClaim, demand_of, list_unrecorded
from conformance.digest import set_digest
from conformance.results.events.scenario import Outcome, PlannedScenario, ScenarioFinished
from conformance.results.read import ResultFileError, load_results
from conformance.scenario.selection import select
from conformance.targets.opening.options import DEFAULT_VERSION
from kube.base.errors import ExitCode, UsageError
from tests.certify.evidence import (
    CORE,
    IMPLEMENTATION,
    JOB,
    PROFILES,
    REJECTED,
    SHARED,
    WAITS,
    Forgery,
    run_reference,
)
from tests.scenario.sampling import SAMPLE, sample


def report_of(forgery: Forgery) -> Any:
    result = load_results(forgery.results)
    return build_report(result, IMPLEMENTATION, PROFILES.select([CORE]), forgery.catalogue)


def test_genuine_evidence_is_reported_and_verified(forgery: Forgery) -> None:
    forgery.write()
    assert report_of(forgery).profiles[0].result == "uncertified"
    assert forgery.claim() == "uncertified"
    assert forgery.verify().discrepancies == ()
    counts = {name: len(forgery.compared(name)["judgements"]) for name in (WAITS, SHARED, JOB)}
    assert counts == {WAITS: 3, SHARED: 1, JOB: 4}


def a_step_failed(it: Forgery) -> None:
    it.scenario(SHARED)["steps"][-1]["outcome"] = "failed"


def no_steps(it: Forgery) -> None:
    it.scenario(SHARED)["steps"] = []


def something_was_left(it: Forgery) -> None:
    it.scenario(SHARED)["left"] = ["Pod x"]


def another_version(it: Forgery) -> None:
    it.header["kubernetesVersion"] = it.header["versions"]["kubernetes"] = "1.38.0"


def another_scheduler(it: Forgery) -> None:
    it.header["versions"]["scheduler"] = "1.38.0"


def nothing_was_simulated(it: Forgery) -> None:
    it.header["simulated"] = []
    it.header["target"] = "cluster"
    it.header["versions"] = {"kubernetes": DEFAULT_VERSION}


def the_reference_was_real(it: Forgery) -> None:
    it.header["simulated"] = []
    it.header["versions"] = {}


def another_driver(it: Forgery) -> None:
    it.header["driver"] = "gpu.acme.com"


def another_driver_profile(it: Forgery) -> None:
    it.header["driverProfile"]["spec"]["probe"] = {"env": "(?P<device>.*)"}


def another_set(it: Forgery) -> None:
    it.header["scenarioSetDigest"] = "sha256:" + "0" * 64


def no_comparison(it: Forgery) -> None:
    it.records = [record for record in it.records if record["record"] != "compared"]


def no_comparison_was_asked_for(it: Forgery) -> None:
    no_comparison(it)
    it.header["compared"] = False


def a_comparison_that_nobody_asked_for(it: Forgery) -> None:
    it.header["compared"] = False


def no_decisions(it: Forgery) -> None:
    for name in (WAITS, SHARED, JOB):
        it.forget_decisions(name)
        it.scenario(name)["undecided"] = []


def one_decision_less(it: Forgery) -> None:
    it.forget_decisions(WAITS, lambda index: index != 2)


def one_decision_of_a_job_less(it: Forgery) -> None:
    it.forget_decisions(JOB, lambda index: index != 2)


def no_waiting_pod(it: Forgery) -> None:
    it.scenario(WAITS)["undecided"] = []


def a_waiting_pod_without_claims(it: Forgery) -> None:
    it.scenario(WAITS)["undecided"][0]["snapshot"]["claims"] = []


def another_device(it: Forgery) -> None:
    [allocation] = it.scenario(SHARED)["decisions"][0]["allocations"]
    allocation["devices"]["results"][0]["device"] = "gpu-none"


def another_scenario(it: Forgery) -> None:
    it.header["planned"][0]["digest"] = "sha256:" + "0" * 64


def another_level(it: Forgery) -> None:
    it.header["planned"][0]["level"] = "extended"


def not_compared(it: Forgery) -> None:
    it.records.remove(it.compared(SHARED))


@pytest.mark.parametrize(
    ("change", "code", "message"),
    [
        (a_step_failed, "passed-with-failed-step", "passed, and the outcome of its step 1 is fail"),
        (no_steps, "passed-without-step", "passed without a step"),
        (something_was_left, "passed-with-remains", "passed, and its cleanup left Pod x"),
        (
            another_scheduler,
            "kubernetes-version",
            rf"a snapshot is of Kubernetes {re.escape(DEFAULT_VERSION)}, the header says 1.38.0",
        ),
        (
            another_version,
            "kubernetes-version",
            rf"a snapshot is of Kubernetes {re.escape(DEFAULT_VERSION)}, the header",
        ),
        (nothing_was_simulated, "simulated", "devices of gpu.nvidia.com are simulated in the"),
        (the_reference_was_real, "simulated", "the devices of gpu.nvidia.com are simulated in the"),
        (
            another_driver,
            "driver",
            "gpu.nvidia.com were allocated, the header says that the driver",
        ),
        (another_driver_profile, "driver-profile-digest", "the header's driver-profile digest is"),
        (another_set, "scenario-set-digest", "the header's scenario-set digest is sha256:000"),
        (another_scenario, "scenario-differs", "is not the scenario that the suite ships"),
        (another_level, "scenario-differs", "is core .* in the suite, the header says extended"),
        (no_comparison, "not-compared", "was not compared, but the header has a comparison"),
        (no_comparison_was_asked_for, "not-asked-to-compare", "has decisions or verdicts, but the"),
        (a_comparison_that_nobody_asked_for, "not-asked-to-compare", "has decisions or verdicts"),
        (no_decisions, "not-judged", "claim shared-gpu of pod0 was allocated, and no decision"),
        (one_decision_less, "not-judged", "claim all of pod-all was allocated, and no decision"),
        (one_decision_of_a_job_less, "not-judged", r"of example-dra-job .* recorded \(3 of 4\)"),
        (no_waiting_pod, "not-judged", "pod pod-all was left waiting for devices, and no snapsho"),
        (a_waiting_pod_without_claims, "not-judged", "pod pod-all was left waiting for devices"),
        (another_device, "verdicts", "the verdicts are 1 identical, judged again 1 inadmissible"),
        (not_compared, "not-compared", "was not compared, but the header has a comparison"),
    ],
)
def test_evidence_that_contradicts_itself_is_refused_with_its_place(
    forgery: Forgery, change: Callable[[Forgery], None], code: str, message: str
) -> None:
    change(forgery)
    forgery.write()
    # Whoever believes the file finds nothing wrong.
    assert forgery.claim() == ("success" if change is nothing_was_simulated else "uncertified")
    with pytest.raises(EvidenceError) as caught:
        report_of(forgery)
    assert caught.value.exit_code is ExitCode.NOT_CONFORMANT
    lines = str(caught.value).splitlines()
    wanted = rf"{forgery.results}(:\d+)?: .*{message}.* \[{code}\]"
    assert [line for line in lines if re.fullmatch(wanted, line)]
    assert all(line.startswith(f"{forgery.results}:") for line in lines)
    verification = forgery.verify()
    assert verification.exit_code is ExitCode.NOT_CONFORMANT
    assert set(caught.value.found) <= set(verification.discrepancies)


def test_every_code_is_in_the_docs() -> None:
    page = (Path(__file__).parents[2] / "docs/certifying.md").read_text(encoding="utf-8")
    assert [code for code in get_args(Code) if f"`{code}`" not in page] == []


def test_the_place_is_the_line_of_the_scenario(forgery: Forgery) -> None:
    something_was_left(forgery)
    forgery.write()
    with pytest.raises(EvidenceError, match=rf"results\.ndjson:{forgery.line(SHARED)}: {SHARED}"):
        report_of(forgery)


def test_a_long_list_of_contradictions_is_cut(forgery: Forgery) -> None:
    for record in forgery.scenarios:
        record["steps"] = record["steps"] * 9
        record["steps"] = [
            step | {"outcome": "failed", "index": index}
            for index, step in enumerate(record["steps"])
        ]
    forgery.write()
    with pytest.raises(EvidenceError, match=r"and \d+ more contradictions") as caught:
        report_of(forgery)
    assert len(str(caught.value).splitlines()) == 21


def test_a_skipped_scenario_that_ran_is_refused(forgery: Forgery) -> None:
    forgery.scenario(SHARED)["outcome"] = "skipped"
    forgery.write()
    with pytest.raises(EvidenceError, match=f"{SHARED}: was skipped, and has steps or decisions"):
        report_of(forgery)


@pytest.mark.parametrize(
    "garbage",
    [
        {"allocations": 7},
        {"snapshot": {"kind": "Snapshot", "slices": [1, 2]}, "claims": [[[[]]]], "pod": None},
        {"claims": [{"metadata": 3}], "allocations": [{"devices": 1}], "snapshot": {"slices": 5}},
    ],
)
def test_malformed_decisions_are_refused_and_break_nothing(forgery: Forgery, garbage: Any) -> None:
    forgery.scenario(SHARED)["decisions"] = [garbage]
    forgery.scenario(WAITS)["undecided"] = [garbage, {}]
    forgery.write()
    with pytest.raises(EvidenceError, match=f"{SHARED}: cannot be judged again: decision 0"):
        report_of(forgery)


@pytest.mark.parametrize("change", [{"left": ["Namespace foo"]}, {"interrupted": True}])
def test_what_ended_badly_is_inconclusive_for_run_and_report(
    forgery: Forgery, change: dict[str, Any]
) -> None:
    forgery.write()
    assert forgery.claim() == "uncertified"
    claimed = forgery.report.read_text()
    forgery.footer.update(change)
    forgery.write()
    result = load_results(forgery.results)
    assert result.footer is not None
    report = report_of(forgery)
    assert report.exit_code is ExitCode.INCONCLUSIVE
    assert report.exit_code is conclude_run(result).code
    forgery.report.write_text(claimed.replace(claimed.split("digest: ")[1][:71], result.digest))
    paths = [item.path for item in forgery.verify().discrepancies]
    assert "$.profiles[0].result" in paths


def test_a_key_that_is_there_twice_is_refused(forgery: Forgery) -> None:
    forgery.write()
    forgery.claim()
    forgery.write(
        lambda text: text.replace('"outcome": "passed"', '"outcome": "failed", "outcome": "passed"')
    )
    with pytest.raises(ResultFileError, match=r":\d+: .*the key 'outcome' occurs twice"):
        load_results(forgery.results)
    verification = forgery.verify()
    assert verification.exit_code is ExitCode.NOT_CONFORMANT
    assert "occurs twice" in str(verification.discrepancies[0])


def narrowed(forgery: Forgery, version: str) -> None:
    """Keep two scenarios of four, as a run of an older suite that had no others."""
    keep = (SHARED, REJECTED)
    forgery.forget_decisions(WAITS)
    forgery.forget_decisions(JOB)
    forgery.records = [r for r in forgery.records if r.get("scenario", SHARED) in keep]
    forgery.header["planned"] = [p for p in forgery.header["planned"] if p["id"] in keep]
    forgery.header["suiteVersion"] = version
    planned = [item for item in forgery.catalogue if item.id in keep]
    forgery.header["scenarioSetDigest"] = set_digest(planned)
    forgery.write()


def test_another_suite_version_does_not_hide_what_was_not_selected(forgery: Forgery) -> None:
    narrowed(forgery, "0.9.9")
    shipped = forgery.catalogue
    forgery.catalogue = [item for item in shipped if item.id in (SHARED, REJECTED)]
    assert forgery.claim() == "uncertified"
    forgery.catalogue = shipped
    with pytest.raises(OtherSuiteError, match=r":1: .*'0\.9\.9'.*install dra-conformance 0\.9\.9"):
        forgery.verify()
    with pytest.raises(OtherSuiteError) as caught:
        report_of(forgery)
    assert caught.value.exit_code is ExitCode.INCONCLUSIVE


def test_a_selection_is_partial_whatever_the_report_says(forgery: Forgery) -> None:
    version = forgery.header["suiteVersion"]
    narrowed(forgery, version)
    assert report_of(forgery).profiles[0].result == "partial"
    shipped = forgery.catalogue
    forgery.catalogue = [item for item in shipped if item.id in (SHARED, REJECTED)]
    assert forgery.claim() == "uncertified"
    forgery.catalogue = shipped
    paths = [item.path for item in forgery.verify().discrepancies]
    assert {"$.profiles[0].result", "$.profiles[0].notSelected[0]"} <= set(paths)


def test_a_profile_that_is_named_twice_is_there_once(forgery: Forgery) -> None:
    forgery.write()
    result = load_results(forgery.results)
    twice = [*PROFILES.select([CORE, CORE]), *PROFILES.select([CORE])]
    report = build_report(result, IMPLEMENTATION, twice, forgery.catalogue)
    assert [item.name for item in report.profiles] == [CORE]


def test_a_folder_in_place_of_a_file_is_a_usage_error(forgery: Forgery) -> None:
    forgery.write()
    forgery.claim()
    with pytest.raises(UsageError, match="cannot be read: it is not a regular file") as caught:
        load_results(forgery.results.parent)
    assert caught.value.exit_code is ExitCode.USAGE
    forgery.results.unlink()
    forgery.results.mkdir()
    with pytest.raises(UsageError, match="cannot be read: it is not a regular file"):
        forgery.verify()


def test_a_comparison_that_judged_nothing_is_inconclusive_for_the_run_too(forgery: Forgery) -> None:
    no_decisions(forgery)
    forgery.write()
    result = load_results(forgery.results)
    compared = tuple(compare_scenario(event) for event in result.finished)
    assert all(item.conformant for item in compared)
    unjudged = tuple(sorted(item.scenario for item in compared if item.problems))
    assert unjudged == (WAITS, SHARED, JOB)
    result = replace(result, compared=compared)
    assert conclude_run(result).code is ExitCode.INCONCLUSIVE
    report = build_believed_report(
        result, IMPLEMENTATION, PROFILES.select([CORE]), forgery.catalogue
    )
    assert report.profiles[0].comparison is not None
    assert report.profiles[0].comparison.not_judged == unjudged
    assert report.exit_code is ExitCode.INCONCLUSIVE


@pytest.mark.parametrize("among", [100, pytest.param(10_000, marks=pytest.mark.everything)])
def test_no_shipped_scenario_demands_what_a_genuine_run_does_not_record(
    tmp_path: Path, among: int
) -> None:
    shipped = run_reference(sample(select(), among, "demands"), tmp_path / "results.ndjson")
    result = load_results(tmp_path / "results.ndjson")
    passed = [event for event in result.finished if event.outcome is Outcome.PASSED]
    assert len(passed) > 50
    assert {item.id for item in shipped} == {event.scenario.id for event in result.finished}
    assert {
        event.scenario.id: list_unrecorded(event) for event in passed if list_unrecorded(event)
    } == {}, SAMPLE
    assert sum(bool(claims_of(event)) for event in passed) > 20


def claims_of(event: ScenarioFinished) -> tuple[WantedClaim, ...]:
    demand = demand_of(event.scenario)
    assert demand is not None
    return demand.claims


def test_shipped_scenarios_that_cannot_be_read_are_a_problem_and_no_crash(
    forgery: Forgery, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: PlannedScenario) -> None:
        raise UsageError("core/x.yaml:3: is not YAML")

    forgery.write()
    event = load_results(forgery.results).finished[0]
    monkeypatch.setattr("conformance.compare.demands.demand_of", broken)
    [problem] = compare_scenario(event).problems
    assert "what it must have recorded is not known: core/x.yaml:3" in problem
