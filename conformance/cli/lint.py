"""The command that checks files before anything runs."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer
from pydantic import BaseModel

from conformance.cli.printable import printable
from conformance.data import scenarios_dir
from conformance.errors import ConformanceError, ExitCode, UsageError
from conformance.scenario.lint.files import OWN_CHECKS, OWN_KINDS, Check, LintLine, lint_documents
from conformance.scenario.loader import check_path
from conformance.scenario.profile import DriverProfile, load_profile
from conformance.scenario.validate import is_own
from conformance.scenario.yamlfile import (
    MAX_BYTES,
    YAML,
    Document,
    Problem,
    decoded,
    read_documents,
    yaml_files,
)
from conformance.text import counted

_STDIN = Path("-")


def lint(
    files: Annotated[
        list[Path],
        typer.Argument(
            help="Scenarios, driver profiles, Kubernetes manifests: files, folders, - for stdin."
        ),
    ],
    driver: Annotated[
        str,
        typer.Option(help="Driver profile that scenarios are for: a shipped name or a file."),
    ] = "",
    exclude: Annotated[
        list[str] | None,
        typer.Option(help="Glob over paths below a folder, or names in it (repeatable)."),
    ] = None,
) -> None:
    """Check files: scenarios and profiles against their model, manifests for what DRA retired.

    Says file, line, path and what to write instead. Exit code 2 if there is something to mend. In a
    folder hidden folders and documents of other tools are left out, and counted.
    """
    from conformance.certify.model import ConformanceReport
    from conformance.certify.profiles import ProfileSet, empty_parts
    from conformance.engine.setup import planned
    from conformance.scenario.selection import select

    def profile_set(document: ProfileSet) -> Iterable[Problem]:
        return empty_parts(document, list(map(planned, select())))

    profile = load_profile(driver, scenarios_dir() / "drivers") if driver else None
    linter = _Linter(
        {**OWN_KINDS, "ConformanceReport": ConformanceReport, "ProfileSet": ProfileSet},
        profile,
        {**OWN_CHECKS, "ProfileSet": profile_set},
    )
    for given in files:
        linter.take(given, exclude or ())
    if not linter.checked and not linter.skipped:
        raise UsageError(f"no YAML or JSON files below {', '.join(map(str, files))}")
    for line in linter.found:
        typer.echo(printable(line.text))
    errors = sum(line.error for line in linter.found)
    typer.echo(
        f"{counted(linter.checked, 'file')} checked, {counted(errors, 'error')}, "
        f"{counted(len(linter.found) - errors, 'warning')}"
        + (f"; {counted(linter.skipped, 'file')} of other tools left out" if linter.skipped else "")
    )
    if errors:
        raise typer.Exit(ExitCode.USAGE)


class _Linter:
    """What was checked so far, and what was found."""

    def __init__(
        self,
        models: Mapping[str, type[BaseModel]],
        driver: DriverProfile | None,
        checks: Mapping[str, Check],
    ) -> None:
        self.models = models
        self.driver = driver
        self.checks = checks
        self.found: list[LintLine] = []
        self.checked = 0
        self.skipped = 0

    def take(self, given: Path, exclude: Sequence[str]) -> None:
        """Check a file, all files below a folder, or standard input."""
        try:
            if given == _STDIN:
                data = sys.stdin.buffer.read(MAX_BYTES + 1)
                self._check(decoded(data, Path("<stdin>")))
                return
            check_path(given)
            folder = given.is_dir()
            inside = yaml_files(given, (*YAML, ".json"), exclude) if folder else [given]
        except ConformanceError as error:
            self._refuse(error)
            return
        for file in inside:
            try:
                documents = read_documents(file)
            except ConformanceError as error:
                if folder and _is_template(file):
                    text = "is a template, which is not checked; check what it renders (`lint -`)"
                    self.found.append(LintLine(f"{file}: warning: {text}", error=False))
                    self.skipped += 1
                else:
                    self._refuse(error)
                continue
            if folder and not any(map(_is_object, documents)):
                self.skipped += 1
            else:
                self._check(documents)

    def _check(self, documents: Sequence[Document]) -> None:
        self.checked += 1
        self.found += lint_documents(documents, self.models, self.driver, self.checks)

    def _refuse(self, error: ConformanceError) -> None:
        self.checked += 1
        self.found += map(LintLine, str(error).splitlines())


def _is_object(document: Document) -> bool:
    """Whether a document is a Kubernetes object or one of ours, rightly written or not."""
    data = document.data
    return is_own(document) or (isinstance(data, dict) and "apiVersion" in data)


def _is_template(file: Path) -> bool:
    return b"{{" in file.read_bytes()
