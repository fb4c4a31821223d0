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
from allure_commons.types import LinkType

from conformance.engine.events import ScenarioFinished
from conformance.report.allure import (
    attachments_of,
    case_id,
    full_name,
    labels_of,
    links_of,
    steps_of,
    title_path,
)
from conformance.text import visible


def apply_to_current_test(
    finished: ScenarioFinished, diagnostics: Mapping[str, str] | None = None
) -> None:
    """Add labels, links, steps and attachments to the Allure result of the running item.

    Args:
        finished: the scenario that the item runs.
        diagnostics: name -> text, attached beside the decisions and observations.

    The status is left to allure-pytest: an ``AssertionError`` raised by the item is ``failed``, any
    other exception ``broken``, ``pytest.skip`` ``skipped``.
    """
    hook = allure_commons.plugin_manager.hook
    scenario = finished.scenario
    hook.add_title(test_title=visible(scenario.name))
    hook.add_description(test_description=visible(scenario.summary))
    for name, value in labels_of(scenario):
        hook.add_label(label_type=name, labels=(visible(value),))
    for url in links_of(scenario):
        hook.add_link(url=url, link_type=LinkType.LINK, name=url)
    result = _current_result()
    if result is None:
        return
    # The hooks for steps take the time of the call; these have happened already.
    result.steps.extend(steps_of(finished, result.start))
    # Where the item was collected from (a checkout, an installed wheel) must not change its
    # history; the listener computes historyId from fullName when the item is torn down.
    result.fullName = full_name(scenario)
    result.titlePath = title_path(scenario)
    result.testCaseId = case_id(scenario)
    for name, body, kind in attachments_of(finished, diagnostics or {}):
        hook.attach_data(body=body, name=name, attachment_type=kind, extension=kind.extension)


def _current_result() -> Any:
    """The result that allure-pytest's listener is filling in, None without ``--alluredir``."""
    for plugin in allure_commons.plugin_manager.get_plugins():
        reporter = getattr(plugin, "allure_logger", None)
        if reporter is not None:
            result = reporter.get_test(None)
            return result if isinstance(result, TestResult) else None
    return None
