"""Give the Allure result of the current pytest item what a scenario's result has.

allure-pytest writes the result of every item itself; for a custom item it knows a name and an
outcome only. :func:`apply_to_current_test` adds the rest. Call it inside the item's ``runtest``,
after the scenario has ended and before its failure is raised, in the thread that pytest runs in.

Without ``--alluredir`` nothing listens, and the call does nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import allure_commons
from allure_commons.model2 import TestResult

from conformance.engine.events import ScenarioFinished
from conformance.engine.verdicts import ScenarioCompared
from conformance.report.allure import attachments_of, complete, describe


def apply_to_current_test(
    finished: ScenarioFinished,
    diagnostics: Mapping[str, str] | None = None,
    compared: ScenarioCompared | None = None,
) -> None:
    """Add labels, links, steps and attachments to the Allure result of the running item.

    The status is left to allure-pytest: an ``AssertionError`` raised by the item is ``failed``, any
    other exception ``broken``, ``pytest.skip`` ``skipped``.
    """
    result = _current_result()
    if result is None:
        return
    # The listener computes historyId from fullName when the item is torn down.
    describe(result, finished.scenario)
    complete(result, finished, compared)
    attach = allure_commons.plugin_manager.hook.attach_data
    for name, body, kind in attachments_of(finished, diagnostics or {}, compared):
        attach(body=body, name=name, attachment_type=kind, extension=kind.extension)


def _current_result() -> Any:
    """The result that allure-pytest's listener is filling in, None without ``--alluredir``."""
    for plugin in allure_commons.plugin_manager.get_plugins():
        reporter = getattr(plugin, "allure_logger", None)
        if reporter is not None:
            result = reporter.get_test(None)
            return result if isinstance(result, TestResult) else None
    return None
