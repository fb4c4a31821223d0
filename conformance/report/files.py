"""Which files a run leaves for other programs, with the diagnostics of failed scenarios."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Iterable
from pathlib import Path

from conformance.report.allure import AllureResults
from conformance.report.ci import JUnitFile
from conformance.report.folder import ALLURE, JUNIT, OURS
from conformance.results.events.dispatch import Event, Reporter
from conformance.results.events.scenario import Diagnostics
from kube.base.redaction import redact

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


class DiagnosticsFolder:
    """A reporter that writes ``<root>/<scenario id>/<name>``, redacted.

    Names are made safe: whatever an item is called, its file lies below ``root``.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self._folders: dict[str, Path] = {}

    def __str__(self) -> str:
        return f"the diagnostics in {self.root}"

    def handle(self, event: Event) -> None:
        if not isinstance(event, Diagnostics) or not event.items:
            return
        folder = self.root / diagnostics_folder(event.scenario)
        folder.mkdir(parents=True, exist_ok=True)
        (self.root / OURS).touch()
        for name, file in file_names(event.items).items():
            (folder / file).write_text(redact(event.items[name]), encoding="utf-8")
        self._folders[event.scenario] = folder

    def folder_of(self, scenario_id: str) -> Path | None:
        return self._folders.get(scenario_id)


def diagnostics_folder(scenario_id: str) -> str:
    """Return the folder of a scenario's diagnostics, below the root of all."""
    return "/".join(safe_name(folder_name) for folder_name in scenario_id.split("/"))


def file_names(items: Iterable[str]) -> dict[str, str]:
    """Return the name of an item -> that of its file, in the order of the names."""
    names_taken: set[str] = set()
    return {name: make_unique(file_name(name), names_taken) for name in sorted(items)}


def safe_name(name: str) -> str:
    """Return a name without separators, leading dots or characters that need quoting."""
    return _UNSAFE.sub("_", name).lstrip(".")[:100] or "unnamed"


def file_name(name: str) -> str:
    """Return a safe name that has a suffix."""
    safe = safe_name(name)
    return safe if "." in safe else f"{safe}.txt"


def make_unique(name: str, taken: set[str]) -> str:
    """Return the name, with a number where ``taken`` has it already; add it to ``taken``."""
    candidate, number = name, 2
    while candidate.lower() in taken:
        stem, _, suffix = name.rpartition(".")
        candidate, number = f"{stem}-{number}.{suffix}", number + 1
    taken.add(candidate.lower())
    return candidate


FORMATS = ("junit", "allure")


def file_reporters(
    output: Path,
    diagnostics: DiagnosticsFolder,
    clock: Callable[[], float] = time.time,
    formats: Collection[str] = FORMATS,
) -> list[Reporter]:
    """Return what writes diagnostics, JUnit XML and Allure results, beside the result file."""
    reporters: list[Reporter] = [diagnostics]
    if "junit" in formats:
        reporters.append(JUnitFile(output / JUNIT, diagnostics.folder_of))
    if "allure" in formats:
        reporters.append(AllureResults(output / ALLURE, clock))
    return reporters
