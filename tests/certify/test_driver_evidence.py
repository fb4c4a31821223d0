"""What a certificate says of the driver: driver-check, what it cannot, and hardware."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from conformance import __version__
from conformance.certify.build import build_report
from conformance.certify.contradictions import EvidenceError
from conformance.certify.driverchecked import (
    DriverChecked,
    find_misfits,
    parse_driver_check,
    read_driver_check,
)
from conformance.certify.model import ConformanceReport
from conformance.certify.profiles import load_profiles
from conformance.certify.values import Hardware, Result
from conformance.compare.conclude import conclude_run
from conformance.digest import document_digest
from conformance.drivercheck.result import CheckResult, DriverCheckResult, judge_checks
from conformance.drivercheck.result import Outcome as CheckOutcome
from conformance.drivercheck.run import CHECKS
from conformance.results.events.scenario import Outcome, PlannedScenario
from conformance.results.read import RecordedRun
from kube.base.errors import ExitCode, UsageError
from tests.certify.evidence import IMPLEMENTATION, Forgery
from tests.certify.submitted import Submitted
from tests.certify.test_conformance_report import REAL, recorded
from tests.compare.cluster import decision
from tests.report.builders import finished, planned

DRIVER = load_profiles().select(["dra-core-driver"])
PASSED, FAILED, SKIPPED = Outcome.PASSED, Outcome.FAILED, Outcome.SKIPPED
Document = dict[str, Any]


def checked(edit: Callable[[Document], object] = lambda _: None) -> DriverChecked:
    """A result of driver-check of a driver that keeps every rule, edited, and read again."""
    checks = tuple(
        CheckResult(
            name=one.name,
            level=one.level,
            outcome=CheckOutcome.PASSED,
            summary=one.summary,
            source=one.source,
            message="",
        )
        for one in CHECKS
    )
    result = DriverCheckResult(
        suite_version=__version__,
        started_at="2026-11-21T09:00:00+00:00",
        driver="gpu.nvidia.com",
        verdict=judge_checks(checks),
        checks=checks,
    )
    document = json.loads(result.model_dump_json(by_alias=True))
    edit(document)
    return parse_driver_check("driver-check.json", json.dumps(document).encode())


def ended(outcome: str, place: int = 0) -> Callable[[Document], object]:
    def edit(document: Document) -> None:
        document["checks"][place]["outcome"] = outcome
        whole = DriverCheckResult.model_validate_json(json.dumps(document))
        document["verdict"] = judge_checks(whole.checks)

    return edit


A = planned("core/a", tier="node")
B = planned("core/b", tier="node", needs=("severalDevicesOnOneNode",))
T = planned("extended/t", tier="device")
CLUSTER = planned("core/c")


def run_of(folder: Path, ran: dict[PlannedScenario, Outcome], **spec: object) -> RecordedRun:
    events = [replace(finished(one, outcome, "why"), scenario=one) for one, outcome in ran.items()]
    profile = {"metadata": {"name": "own"}, "spec": spec}
    start = {**REAL, "driver_profile": profile, "driver_profile_digest": document_digest(profile)}
    return recorded(folder, list(ran), events, start=start)


def report_of(result: RecordedRun, with_check: DriverChecked | None = None) -> ConformanceReport:
    return build_report(result, IMPLEMENTATION, DRIVER, result.run.planned, with_check)


@pytest.mark.parametrize(
    ("outcome", "with_check", "result"),
    [
        (PASSED, checked(), Result.SUCCESS),
        (PASSED, None, Result.PARTIAL),
        (PASSED, checked(ended("failed")), Result.FAILURE),
        (PASSED, checked(ended("error")), Result.INCONCLUSIVE),
        (PASSED, checked(ended("skipped")), Result.PARTIAL),
        (PASSED, checked(ended("not offered")), Result.SUCCESS),
        (FAILED, checked(), Result.FAILURE),
        (FAILED, None, Result.FAILURE),
        (SKIPPED, checked(), Result.PARTIAL),
    ],
)
def test_a_driver_needs_its_scenarios_and_driver_check(
    tmp_path: Path, outcome: Outcome, with_check: DriverChecked | None, result: Result
) -> None:
    report = report_of(run_of(tmp_path, {A: outcome, B: PASSED, CLUSTER: FAILED}), with_check)
    [profile] = report.profiles
    assert profile.result is result
    assert profile.driver_check == ("missing" if with_check is None else report.driver_check.result)  # type: ignore[union-attr]


def without_one(it: Document) -> None:
    del it["checks"][3]


def one_twice(it: Document) -> None:
    it["checks"].append(it["checks"][3])


def one_is_no_more_required(it: Document) -> None:
    it["checks"][0]["level"] = "recommended"


def a_failed_one_counts_for_nothing(it: Document) -> None:
    it["checks"][0]["outcome"] = "failed"


LIES: list[tuple[Callable[[Document], object], str]] = [
    (without_one, "not all of driver-check's, each once: "),
    (one_twice, "not all of driver-check's, each once: "),
    (one_is_no_more_required, "not all of driver-check's, each once: registration/"),
    (a_failed_one_counts_for_nothing, "says conformant, its checks come to not conformant"),
    (lambda it: it.update(driver="gpu.acme.com"), "is of the driver gpu.acme.com, the run of gpu"),
    (lambda it: it.update(suiteVersion="0.0.1"), f"is of suite 0.0.1, the run is of {__version__}"),
]


@pytest.mark.parametrize(("lie", "said"), LIES)
def test_a_result_of_driver_check_that_does_not_fit_is_refused(
    tmp_path: Path, lie: Callable[[Document], object], said: str
) -> None:
    with pytest.raises(EvidenceError) as caught:
        report_of(run_of(tmp_path, {A: PASSED}), checked(lie))
    assert str(caught.value).startswith("driver-check.json: ")
    assert said in str(caught.value)
    assert str(caught.value).endswith("[driver-check]")


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (lambda it: it.update(startedAt="yesterday"), "startedAt: 'yesterday' is not a time like"),
        (lambda it: it.update(startedAt="2999-01-01T00:00:00Z"), "which is in the future"),
        (lambda it: it["checks"].append(it["checks"][0]), "has checks twice: "),
    ],
)
def test_a_result_of_another_suites_driver_check_must_make_sense_too(
    tmp_path: Path, edit: Callable[[Document], object], said: str
) -> None:
    run = run_of(tmp_path, {A: PASSED}).run
    assert any(said in text for _, text in find_misfits(checked(edit), run, ours=False))


@pytest.mark.parametrize(("lie", "said"), LIES)
def test_evidence_keeps_it_and_is_refused_when_it_is_changed(
    submitted: Submitted, lie: Callable[[Document], object], said: str
) -> None:
    submitted.checked = checked()
    submitted.write()
    found = submitted.check().verification
    assert found.discrepancies == ()
    assert found.report.driver_check is not None
    submitted.change(lambda it: it.update(driverCheck=checked(lie).text))
    again = submitted.check().verification
    assert any(item.code == "driver-check" and said in item.message for item in again.discrepancies)
    assert any(item.path == "$.driverCheck.digest" for item in again.discrepancies)


def test_a_report_is_verified_with_the_result_that_it_was_made_with(
    forgery: Forgery, tmp_path: Path
) -> None:
    file = tmp_path / "driver-check.json"
    file.write_text(checked().text)
    forgery.write()
    forgery.claim(read_driver_check(file))
    assert forgery.verify(file).discrepancies == ()
    assert forgery.verify().discrepancies != ()


@pytest.mark.parametrize("content", [b"", b"{}", b'{"kind": 1, "kind": 1}', b"\xff", b"[" * 9999])
def test_another_file_in_its_place_is_a_usage_error(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "driver-check.json"
    file.write_bytes(content)
    says = rf"^{file}: is not a result of driver-check \(.*\); `dra-"
    with pytest.raises(UsageError, match=says):
        read_driver_check(file)
    with pytest.raises(UsageError, match=r"cannot be read: .*; check the path"):
        read_driver_check(tmp_path)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b'{"checks": [' + b"[]," * 100_000 + b"[]]}", "it has more than 100000 values"),
        (b'"' + b"a" * (4 << 20) + b'"', "it is larger than 4 MiB"),
    ],
    ids=["values", "bytes"],
)
def test_a_result_in_evidence_is_bounded_as_its_file_is(content: bytes, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        parse_driver_check("evidence.json.xz: driverCheck", content)


ONE_CARD = {"cannot": {"severalDevicesOnOneNode": "a node has one network card"}}


def test_what_cannot_exist_for_a_driver_is_said_and_does_not_count(tmp_path: Path) -> None:
    result = run_of(tmp_path, {A: PASSED, B: SKIPPED}, **ONE_CARD)
    report = report_of(result, checked())
    [profile] = report.profiles
    assert (profile.result, profile.skipped) == (Result.SUCCESS, ())
    assert [(one.scenario, one.reason) for one in profile.without] == [
        (B.id, "severalDevicesOnOneNode: a node has one network card")
    ]
    assert conclude_run(result).code is ExitCode.CONFORMANT


@pytest.mark.parametrize(
    ("ran", "result"),
    [({A: FAILED, B: SKIPPED}, Result.FAILURE), ({A: SKIPPED, B: SKIPPED}, Result.PARTIAL)],
)
def test_nothing_else_is_excused(
    tmp_path: Path, ran: dict[PlannedScenario, Outcome], result: Result
) -> None:
    assert report_of(run_of(tmp_path, ran, **ONE_CARD), checked()).profiles[0].result is result


def test_a_profile_that_is_all_excuses_is_no_success(tmp_path: Path) -> None:
    report = report_of(run_of(tmp_path, {B: SKIPPED}, **ONE_CARD), checked())
    assert report.profiles[0].result is Result.INCONCLUSIVE


def test_a_driver_is_not_excused_from_what_its_slices_show(tmp_path: Path) -> None:
    event = replace(finished(CLUSTER), decisions=(decision([], []),))
    driver = event.decisions[0]["snapshot"]["slices"][0]["spec"]["driver"]
    profile = {"metadata": {"name": "own"}, "spec": ONE_CARD}
    start = {
        **REAL,
        "driver": driver,
        "driver_profile": profile,
        "driver_profile_digest": document_digest(profile),
    }
    result = recorded(tmp_path, [CLUSTER], [event], start=start)
    with pytest.raises(EvidenceError, match=r"has \d devices, and the .* \[cannot\]"):
        report_of(result)


@pytest.mark.parametrize("outcome", [PASSED, FAILED])
def test_what_a_driver_cannot_did_not_run(outcome: Outcome, tmp_path: Path) -> None:
    result = run_of(tmp_path, {A: PASSED, B: outcome}, **ONE_CARD)
    with pytest.raises(EvidenceError, match=r"ran, and the .* severalDevicesOnOneNode \[cannot\]"):
        report_of(result, checked())


@pytest.mark.parametrize(
    ("ran", "spec", "shown"),
    [
        ({T: PASSED}, {}, Hardware.SHOWN),
        ({T: PASSED, planned("extended/u", tier="device"): SKIPPED}, {}, Hardware.SHOWN),
        ({T: PASSED, planned("extended/u", tier="device"): FAILED}, {}, Hardware.NOT_SHOWN),
        ({T: SKIPPED}, {}, Hardware.NOT_SHOWN),
        ({A: PASSED}, {}, Hardware.NOT_SHOWN),
        ({T: PASSED}, {"syntheticDevices": True}, Hardware.SIMULATED),
    ],
)
def test_hardware_is_what_the_device_tier_shows(
    tmp_path: Path, ran: dict[PlannedScenario, Outcome], spec: Document, shown: Hardware
) -> None:
    assert report_of(run_of(tmp_path, ran, **spec)).hardware is shown


def test_scenarios_of_others_show_no_hardware(tmp_path: Path) -> None:
    result = run_of(tmp_path, {A: PASSED, T: PASSED})
    report = build_report(result, IMPLEMENTATION, DRIVER, [A])
    assert report.hardware is Hardware.NOT_SHOWN
