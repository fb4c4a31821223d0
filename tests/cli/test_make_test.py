"""ci/test, which is `make test`: its stages, with stand-ins for the programs that they call."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
STAND_IN = """#!/bin/sh
echo "$(basename "$0") $1" >> calls
case " $FAILS " in *" $(basename "$0") "*) exit 1;; esac
"""
KIND_STAND_IN = """#!/bin/sh
[ "$1" != --missing ] || { echo "$KIND_LACKS"; exit; }
echo "kind-test $1" >> calls
case " $FAILS " in *" kind-test$1 "*) exit 1;; esac
"""
ALLURE_STAND_IN = """#!/bin/sh
[ "$1" != --missing ] || { printf "$ALLURE_LACKS"; exit 0; }
echo allure-test >> calls
"""
WHAT_IS_LACKING = '#!/bin/sh\necho "$LACKS"\n'
PROGRAMS = ("ruff", "lint-imports", "mypy", "pytest", "dra-conformance")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with nothing in it but ci/test and stand-ins that write down their calls."""
    (tmp_path / "ci").mkdir()
    (tmp_path / ".venv/bin").mkdir(parents=True)
    shutil.copy(ROOT / "ci/test", tmp_path / "ci")
    for path in (*(f".venv/bin/{name}" for name in (*PROGRAMS, "go")), "ci/fuzz", "ci/fuzz-cel"):
        (tmp_path / path).write_text(STAND_IN)
        (tmp_path / path).chmod(0o755)
    (tmp_path / "ci/kind").mkdir()
    (tmp_path / "ci/kind/test").write_text(KIND_STAND_IN)
    (tmp_path / "ci/kind/test").chmod(0o755)
    (tmp_path / "ci/allure").mkdir()
    (tmp_path / "ci/allure/test").write_text(ALLURE_STAND_IN)
    (tmp_path / "ci/allure/test").chmod(0o755)
    (tmp_path / ".venv/bin/python").write_text(WHAT_IS_LACKING)
    (tmp_path / ".venv/bin/python").chmod(0o755)
    return tmp_path


def run(checkout: Path, *stages: str, **settings: str) -> tuple[int, str, list[str]]:
    """Exit code, output and the calls of the stand-ins."""
    environment = {name: value for name, value in os.environ.items() if name != "CI"} | settings
    environment["PATH"] = f"{checkout / '.venv/bin'}:{environment['PATH']}"
    done = subprocess.run(
        [str(checkout / "ci/test"), *stages],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    calls = checkout / "calls"
    return done.returncode, done.stdout, calls.read_text().splitlines() if calls.exists() else []


def test_every_stage_runs_where_nothing_is_lacking(checkout: Path) -> None:
    code, output, calls = run(checkout)
    assert code == 0, output
    assert {call.split()[0] for call in calls} == {
        *PROGRAMS,
        *("fuzz", "fuzz-cel", "kind-test", "allure-test"),
    }
    assert [call for call in calls if call.startswith("kind")] == [
        "kind-test --prepare",
        "kind-test ",
    ]
    assert calls.count("dra-conformance cluster") == 1
    summary = output.partition("=== summary\n")[2].splitlines()
    assert len(summary) == 10
    assert all(line.startswith("passed") for line in summary)


def test_what_is_lacking_is_said_first_and_the_rest_runs(checkout: Path) -> None:
    code, output, calls = run(checkout, LACKS="root\nGo 1.26")
    assert code == 0, output
    assert output.splitlines()[:3] == [
        "left out  real: this machine lacks root; Go 1.26",
        "left out  oldest: this machine lacks root; Go 1.26",
        "left out  fuzz: this machine lacks root; Go 1.26",
    ]
    assert output.splitlines()[-1].startswith("left out  fuzz")
    assert "passed    unit tests" in output
    assert not [call for call in calls if call.startswith(("fuzz", "dra-conformance cluster"))]


def test_kind_and_allure_alone_may_be_left_out_with_ci(checkout: Path) -> None:
    code, output, calls = run(checkout, KIND_LACKS="apt-get", CI="true")
    assert code == 0, output
    assert output.splitlines()[0] == "left out  kind: this machine lacks apt-get"
    assert output.splitlines()[-1] == "left out  kind: this machine lacks apt-get"
    assert not [call for call in calls if call.startswith("kind")]
    assert run(checkout, ALLURE_LACKS="Chromium", CI="true")[0] == 0
    assert run(checkout, KIND_LACKS="apt-get", LACKS="root", CI="true")[0] == 1


def test_without_its_image_the_kind_cluster_is_not_tried(checkout: Path) -> None:
    code, output, calls = run(checkout, "kind", FAILS="kind-test--prepare")
    assert code == 1
    assert "FAILED    a kind cluster's node image" in output
    assert calls == ["kind-test --prepare"]


@pytest.mark.parametrize(
    ("asked", "settings", "runs"),
    [([], {}, False), (["oldest"], {}, True), ([], {"CI": "true"}, True)],
)
def test_the_oldest_kubernetes_is_built_where_somebody_asks_for_it_or_in_ci(
    checkout: Path, asked: list[str], settings: dict[str, str], runs: bool
) -> None:
    python = checkout / ".venv/bin/python"
    python.write_text('#!/bin/sh\ncase "$2" in *is_built*) exit 1;; esac\n')
    code, output, _ = run(checkout, *asked, **settings)
    assert code == 0, output
    left = "left out  oldest: this machine lacks the binaries of Kubernetes 1.34, which `ci/test"
    assert (left in output) != runs
    assert ("passed    core on the oldest Kubernetes" in output) == runs


def test_with_ci_what_is_lacking_is_a_failure_before_anything_runs(checkout: Path) -> None:
    code, output, calls = run(checkout, LACKS="root", CI="true")
    assert code == 1
    assert "this machine lacks root" in output
    assert "nothing may be left out" in output
    assert calls == []


def test_only_the_stages_that_are_asked_for_run_whatever_the_others_lack(checkout: Path) -> None:
    code, output, calls = run(checkout, "lint", LACKS="root", CI="true")
    assert code == 0, output
    assert calls == ["ruff check", "ruff format", "lint-imports ", "mypy "]


@pytest.mark.parametrize(
    ("program", "stage"),
    [("mypy", "lint, types, layers"), ("pytest", "unit tests"), ("fuzz-cel", "random problems")],
)
def test_a_stage_that_fails_is_named_and_the_others_run(
    checkout: Path, program: str, stage: str
) -> None:
    code, output, calls = run(checkout, FAILS=program)
    assert code == 1
    assert f"FAILED    {stage}" in output
    assert {call.split()[0] for call in calls} >= set(PROGRAMS)


def test_without_its_binaries_the_real_cluster_is_not_tried(checkout: Path) -> None:
    code, output, calls = run(checkout, "real", FAILS="dra-conformance")
    assert code == 1
    assert "FAILED    binaries of the real cluster" in output
    assert calls == ["dra-conformance cluster"]


def test_what_needs_root_go_or_kind_is_marked_in_the_file_where_it_stands() -> None:
    """ci/test gives pytest only the test files that name such a mark."""
    marks = re.compile(r"mark\.needs_(root|go|kind)")
    marking = {
        path.name for path in (ROOT / "tests").rglob("*.py") if marks.search(path.read_text())
    }
    assert [name for name in sorted(marking) if not name.startswith("test_")] == []
