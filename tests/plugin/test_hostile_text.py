"""What a target says reaches pytest's terminal without its control characters and commands."""

from __future__ import annotations

import pytest

from conformance.plugin import items
from conformance.results.events.scenario import Outcome
from kube.base.errors import InfrastructureError
from tests.report.builders import finished

HOSTILE = "it said\n::stop-commands::x \x1b[2J Bearer abcdef0123456789"


def check_shown(text: str) -> None:
    assert "it said\n\\x3a:stop-commands::x \\x1b[2J Bearer <redacted>" in text


@pytest.mark.parametrize("outcome", [Outcome.SKIPPED, Outcome.KNOWN])
def test_reasons(outcome: Outcome) -> None:
    with pytest.raises((pytest.skip.Exception, pytest.xfail.Exception)) as raised:
        items._raise_outcome(finished("core/one", outcome, HOSTILE))
    check_shown(str(raised.value))


@pytest.mark.parametrize("kind", [items.ScenarioFailed, InfrastructureError])
def test_failures(kind: type[Exception]) -> None:
    item = items.ScenarioItem.__new__(items.ScenarioItem)
    with pytest.raises(kind) as raised:
        raise kind(HOSTILE)
    check_shown(item.repr_failure(raised))
