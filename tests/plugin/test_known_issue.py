"""A scenario that fails by a known issue is an expected failure of pytest."""

from __future__ import annotations

import pytest

from conformance.plugin import items
from conformance.results.events.scenario import KnownFailure, Outcome
from tests.report.builders import finished

ISSUE = KnownFailure("allocates-twice", "https://github.com/kubernetes/kubernetes/pull/136269")


def test_it_is_an_expected_failure_with_its_name_and_link() -> None:
    known = finished("core/one", Outcome.KNOWN, "gpu-0 went to two claims", known_issues=(ISSUE,))
    with pytest.raises(pytest.xfail.Exception) as raised:
        items._raise_outcome(known)
    assert str(ISSUE) in str(raised.value)
    assert "gpu-0 went to two claims" in str(raised.value)
