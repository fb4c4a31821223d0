"""A plugin that runs tests again as pytest-rerunfailures does, and one that only repeats them."""

from __future__ import annotations

import pytest
from _pytest.runner import runtestprotocol


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--again", choices=["failed", "all"], default="failed")


@pytest.hookimpl
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool:
    repeats_all = item.config.getoption("--again") == "all"
    for is_last in (False, False, True):
        reports = runtestprotocol(item, nextitem=nextitem, log=False)
        failed = any(report.failed for report in reports)
        for report in reports:
            if failed and not is_last and not repeats_all and report.when == "call":
                report.outcome = "rerun"  # type: ignore[assignment]
            item.ihook.pytest_runtest_logreport(report=report)
        if not failed and not repeats_all:
            break
    return True
