"""Which files a run leaves for other programs: one list for every way to a report."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from pathlib import Path

from conformance.engine.events import Reporter
from conformance.report.allure import AllureResults
from conformance.report.diagnostics import DiagnosticsFolder
from conformance.report.folder import ALLURE, JUNIT
from conformance.report.junit import JUnitFile

FORMATS = ("junit", "allure")


def file_reporters(
    output: Path,
    diagnostics: DiagnosticsFolder,
    clock: Callable[[], float] = time.time,
    formats: Collection[str] = FORMATS,
) -> list[Reporter]:
    """Diagnostics, JUnit XML and Allure results; beside them are the result file and the pages."""
    made: list[Reporter] = [diagnostics]
    if "junit" in formats:
        made.append(JUnitFile(output / JUNIT, diagnostics.place))
    if "allure" in formats:
        made.append(AllureResults(output / ALLURE, clock))
    return made
