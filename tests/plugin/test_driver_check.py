"""The checks of a driver as tests of its own repository."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.plugin.conftest import Session

TESTS = """
import sys
import pytest

@pytest.fixture(scope="module")
def dra_driver_command():
    return [sys.executable, "-m", "nvml_driver", "run", "--simulate", "t4x4", *{options}]

def test_contract(dra_driver_check):
    dra_driver_check()
"""


@pytest.fixture
def run(session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """What a session says of a file of tests."""

    # A file of this name may have been imported by an earlier test.
    monkeypatch.delitem(sys.modules, "test_it", raising=False)

    def said(tests: str, *arguments: str) -> str:
        (tmp_path / "test_it.py").write_text(tests)
        return session("-rA", *arguments).out

    return said


def test_each_check_is_a_test(run: Callable[..., str]) -> None:
    chosen = "answers-exactly-the-claim or no-dns or dns-subdomain"
    said = run(TESTS.format(options=[]), "-k", chosen)
    assert "PASSED test_it.py::test_contract[registration/name-is-a-dns-subdomain]" in said
    assert "PASSED test_it.py::test_contract[prepare/answers-exactly-the-claim]" in said
    assert "3 passed" in said


def test_a_driver_that_does_not_start_fails_with_its_last_words(run: Callable[..., str]) -> None:
    said = run(TESTS.format(options=["--no-such-option"]), "-k", "socket-appears")
    assert "the driver has ended: its log ends: " in said
    assert "1 failed" in said


OPTIONS = """
@pytest.fixture(scope="module")
def dra_driver_options():
    return {options}
"""


def test_what_the_vendors_roles_refuse_fails(run: Callable[..., str], tmp_path: Path) -> None:
    roles = tmp_path / "rbac.yaml"
    rule = "{apiGroups: [resource.k8s.io], resources: [resourceclaims], verbs: [get]}"
    roles.write_text(
        "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole,"
        f" metadata: {{name: r}}, rules: [{rule}]}}"
    )
    tests = TESTS.format(options=[]) + OPTIONS.format(options={"rbac": str(roles)})
    said = run(tests, "-k", "socket-appears or roles-allow")
    assert f"expected {roles} to allow it; refused were: " in said


@pytest.mark.parametrize(
    ("options", "says"),
    [({"rback": 1}, "rback: unknown; known are rbac"), ({"rbac": "/none"}, "/none: ")],
)
def test_options_are_checked(run: Callable[..., str], options: object, says: str) -> None:
    tests = TESTS.format(options=[]) + OPTIONS.format(options=options)
    said = run(tests, "-k", "socket-appears")
    assert f"dra_driver_options: {says}" in said
    assert "Traceback" not in said


def test_the_command_must_be_said(run: Callable[..., str]) -> None:
    tests = "def test_contract(dra_driver_check):\n    dra_driver_check()\n"
    said = run(tests, "-k", "socket-appears")
    assert "define a fixture dra_driver_command" in said
