"""What people and CI read of a driver check."""

from __future__ import annotations

import json
from xml.etree import ElementTree as ET

import pytest
from jsonschema import Draft202012Validator
from typer.testing import CliRunner

from conformance.cli.app import app
from conformance.cli.commands.schema import make_schema
from conformance.drivercheck.check import Level
from conformance.drivercheck.result import (
    CheckResult,
    DriverCheckResult,
    Outcome,
    judge_checks,
    junit_xml,
    lines_of,
    summarize_result,
)
from kube.base.text import WIDTH


def of(outcome: Outcome, level: Level = Level.REQUIRED) -> CheckResult:
    return CheckResult(
        name=f"prepare/{outcome.replace(' ', '-')}-{level}",
        level=level,
        outcome=outcome,
        summary="A rule of some length that every driver must keep, whoever wrote it.",
        source="k8s.io/some/file.go",
        message=""
        if outcome is Outcome.PASSED
        else "expected that & <this>; found a\x1b[31mb " * 5,
        seconds=1.25,
    )


def run_of(*checks: CheckResult) -> DriverCheckResult:
    return DriverCheckResult(
        suite_version="1",
        started_at="2026-01-01T00:00:00+00:00",
        driver="gpu.example.com",
        supported_versions=(
            "v1.DRAPlugin",
            "v1beta1.DRAPlugin",
            "v1alpha1.DRAResourceHealth",
            "v9",
        ),
        devices=4,
        verdict=judge_checks(checks),
        checks=checks,
    )


EVERY = tuple(of(outcome, level) for outcome in Outcome for level in Level)


@pytest.mark.parametrize(
    ("checks", "expected", "code"),
    [
        ((of(Outcome.PASSED),), "conformant", 0),
        ((of(Outcome.PASSED), of(Outcome.NOT_OFFERED)), "conformant", 0),
        ((of(Outcome.PASSED), of(Outcome.FAILED, Level.RECOMMENDED)), "conformant", 0),
        ((of(Outcome.PASSED), of(Outcome.SKIPPED)), "partial", 4),
        ((of(Outcome.PASSED), of(Outcome.NOT_RUN)), "partial", 4),
        ((of(Outcome.SKIPPED), of(Outcome.ERROR)), "inconclusive", 3),
        ((of(Outcome.ERROR), of(Outcome.FAILED)), "not conformant", 1),
        ((), "partial", 4),
    ],
)
def test_nobody_is_conformant_by_skipping(
    checks: tuple[CheckResult, ...], expected: str, code: int
) -> None:
    result = run_of(*checks)
    assert (result.verdict, int(result.exit_code)) == (expected, code)


def test_lines_fit_a_terminal_and_the_verdict_is_last() -> None:
    result = run_of(*EVERY)
    lines = [line for one in EVERY for line in lines_of(one)]
    assert max(map(len, lines)) <= WIDTH
    assert "advised       1.25 s  prepare/failed-recommended" in lines
    assert "    source: k8s.io/some/file.go" in lines
    last = list(summarize_result(result, 3.0))
    assert max(map(len, last)) <= WIDTH
    assert any("not run: expected that" in line for line in last)
    assert last[-1] == "not conformant in 3.0 s (exit code 1)"
    assert "  failed prepare/failed-recommended (recommended)" in last


def test_the_list_of_checks_fits_a_terminal() -> None:
    done = CliRunner().invoke(app, ["driver-check", "--list"])
    long = [line for line in done.stdout.splitlines() if len(line) > WIDTH]
    assert [line for line in long if len(line.split()) > 1] == []


def test_the_json_is_what_its_schema_says() -> None:
    document = json.loads(run_of(*EVERY).model_dump_json(by_alias=True))
    Draft202012Validator(make_schema("driver-check")).validate(document)
    assert document["kind"] == "DriverCheck"


def test_ci_sees_as_failure_only_what_is_required() -> None:
    suite = ET.fromstring(junit_xml(run_of(*EVERY)))[0]
    assert {key: suite.get(key) for key in ("tests", "failures", "errors", "skipped")} == {
        "tests": str(len(EVERY)),
        "failures": "1",
        "errors": str(len(suite.findall("*/error"))),
        "skipped": str(len(suite.findall("*/skipped"))),
    }
    [failure] = suite.findall("testcase/failure")
    assert "expected that & <this>; found a\\x1b[31mb" in str(failure.get("message"))
