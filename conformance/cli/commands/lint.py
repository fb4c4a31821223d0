"""``dra-conformance lint``: checks files before anything runs."""

from __future__ import annotations

import gc
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Annotated

import typer
from pydantic import BaseModel

from conformance.cli.lines import parse_minor
from conformance.cli.output import printable
from conformance.data import scenarios_dir
from conformance.scenario.documents.validate import is_own, validate_document
from conformance.scenario.documents.yamlfile import (
    MAX_BYTES,
    YAML,
    Document,
    Problem,
    decode_documents,
    read_documents,
    yaml_files,
)
from conformance.scenario.driver.profile import DriverProfile, load_profile
from conformance.scenario.lint.charts import (
    find_chart,
    has_variables,
    is_template,
    render_chart,
)
from conformance.scenario.lint.files import (
    OWN_CHECKS,
    OWN_KINDS,
    Check,
    LintLine,
    lint_documents,
    list_lint_lines,
)
from conformance.scenario.lint.given_objects import GivenObjects
from conformance.scenario.lint.shipped import (
    file_problems,
    find_checkout,
    length_problems,
    profile_problems,
    scenario_problems,
)
from conformance.scenario.loader import check_path, load_scenarios
from kube.base.errors import ConformanceError, ExitCode, UsageError
from kube.base.text import counted
from reference_allocator.gates import LATEST, MINORS

_STDIN = Path("-")


def lint_command(
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="PATH",
            help="Scenarios, driver profiles, manifests: files, folders, or - for stdin.",
        ),
    ] = None,
    driver: Annotated[
        str,
        typer.Option(
            metavar="PROFILE",
            help="Check scenarios for this driver profile: a shipped name or a file.",
        ),
    ] = "",
    exclude: Annotated[
        list[str] | None,
        typer.Option(
            metavar="GLOB", help="Skip files in folders whose path or name matches (repeatable)."
        ),
    ] = None,
    shipped: Annotated[
        bool,
        typer.Option(
            "--shipped",
            help="Also hold files to the rules for what lies below scenarios/ of this project's"
            " repository; without PATH, all of them.",
        ),
    ] = False,
    kubernetes: Annotated[
        str,
        typer.Option(
            metavar="MINOR",
            help=f"Minor of the API server that manifests are for: {', '.join(MINORS)}. If given,"
            f" what it treats otherwise than the minor before is warned of. [default: {LATEST}]",
        ),
    ] = "",
    helm: Annotated[
        bool, typer.Option("--helm", help="Also check what `helm template` makes of charts.")
    ] = False,
) -> None:
    """Check scenarios and profiles against their schema, manifests as the API server does.

    Manifests of DRA, and what pods ask for, are held against the API server's own rules and against
    one another; what DRA retired is explained. Reports file, line, path and a correction; exits
    with 2 if there are errors. In folders, hidden folders and documents of other tools are skipped.
    """
    from conformance.certify.model import ConformanceReport
    from conformance.certify.profiles import ProfileSet, empty_parts
    from conformance.engine.setup import planned
    from conformance.scenario.selection import select

    def check_profile_set(document: ProfileSet) -> Iterable[Problem]:
        return empty_parts(document, list(map(planned, select())))

    if shipped:
        find_checkout()
    elif not files:
        raise UsageError("missing argument PATH: give files, folders, or - for stdin")
    profile = load_profile(driver, scenarios_dir() / "drivers") if driver else None
    linter = _Linter(
        {**OWN_KINDS, "ConformanceReport": ConformanceReport, "ProfileSet": ProfileSet},
        profile,
        {**OWN_CHECKS, "ProfileSet": check_profile_set},
        shipped,
        parse_minor(kubernetes or LATEST),
    )
    with _without_collector():
        for path in files or [scenarios_dir()]:
            linter.check_path(path, exclude or ())
        if helm:
            for chart in linter.charts:
                linter.check_rendered(chart)
        if not files:
            linter.check_lengths()
        linter.check_references()
        if kubernetes and (position := MINORS.index(linter.kubernetes)):
            linter.check_changes(MINORS[position - 1])
    if not linter.checked and not linter.skipped:
        raise UsageError(f"no YAML or JSON files below {', '.join(map(str, files or ()))}")
    for line in linter.lines:
        typer.echo(printable(line.text))
    for chart, skipped in () if helm else linter.charts.items():
        text = f"{counted(skipped, 'file')} of a Helm chart not checked; --helm renders it"
        typer.echo(printable(f"{chart}: note: {text}"))
    errors = sum(line.error for line in linter.lines)
    typer.echo(
        f"{counted(linter.checked, 'file')} checked, {counted(errors, 'error')}, "
        f"{counted(len(linter.lines) - errors, 'warning')}"
        + (f"; {counted(linter.skipped, 'file')} of other tools skipped" if linter.skipped else "")
    )
    if errors:
        raise typer.Exit(ExitCode.USAGE)


@contextmanager
def _without_collector() -> Iterator[None]:
    """Let Python look for no cycles: documents have none, and it takes a third of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()  # nor at the end of the process
        if was_enabled:
            gc.enable()


class _Linter:
    """Counts what was checked, and keeps the lines to print of it."""

    def __init__(
        self,
        models: Mapping[str, type[BaseModel]],
        driver: DriverProfile | None,
        checks: Mapping[str, Check],
        shipped: bool,
        kubernetes: str,
    ) -> None:
        self.models = models
        self.driver = driver
        self.checks = checks
        self.shipped = shipped
        self.kubernetes = kubernetes
        self.lines: list[LintLine] = []
        self.checked = 0
        self.skipped = 0
        self.charts: Counter[Path] = Counter()
        self._given = GivenObjects()
        self._manifests: list[tuple[Document, bool]] = []

    def check_path(self, path: Path, exclude: Sequence[str]) -> None:
        """Check a file, all files below a folder, or standard input."""
        try:
            if path == _STDIN:
                stdin = Path("<stdin>")
                data = sys.stdin.buffer.read(MAX_BYTES + 1)
                self._check(stdin, decode_documents(data, stdin))
                return
            check_path(path)
            is_folder = path.is_dir()
        except ConformanceError as error:
            self._refuse(error)
            return
        suffixes = (*YAML, ".json")
        files = yaml_files(path, suffixes, exclude, self._refuse) if is_folder else [path]
        for file in files:
            self._check_file(file, is_folder)

    def _check_file(self, file: Path, in_folder: bool) -> None:
        chart = find_chart(file)
        if chart is not None:
            self.skipped += 1
            self.charts[chart] += 1
            return
        try:
            documents = read_documents(file)
        except ConformanceError as error:
            if in_folder and (is_template(file) or has_variables(file)):
                text = "is a template and is not checked; check its output with `lint -`"
                self.lines.append(LintLine(f"{file}: warning: {text}", error=False))
                self.skipped += 1
            else:
                self._refuse(error)
            return
        if in_folder and _is_empty(documents):  # `run` refuses it; others may keep such a file
            self.checked += 1
            self.lines.append(LintLine(f"{file}:1: warning: is empty", error=False))
        elif in_folder and not any(map(_is_object, documents)):
            self.skipped += 1
        else:
            self._check(file, documents)

    def check_rendered(self, chart: Path) -> None:
        """Check what Helm makes of a chart."""
        try:
            for documents in render_chart(chart):
                if not _is_empty(documents):
                    self._check(documents[0].file, documents)
        except ConformanceError as error:
            self._refuse(error)

    def check_references(self) -> None:
        """Check what manifests say of one another."""
        for document, problem in self._given.list_problems():
            self.lines += list_lint_lines(document, [problem])

    def check_changes(self, before: str) -> None:
        """Check manifests for what their minor treats otherwise than the minor ``before``."""
        from conformance.scenario.lint.minor_changes import list_changes

        for document, problem in list_changes(self._manifests, before, self.kubernetes, self._warn):
            self.lines += list_lint_lines(document, [problem])

    def _check(self, file: Path, documents: Sequence[Document]) -> None:
        self.checked += 1
        if _is_empty(documents):
            self.lines.append(LintLine(f"{file}:1: is empty; nothing was checked"))
        lines = lint_documents(documents, self.models, self.driver, self.checks, self.kubernetes)
        valid = not any(line.error for line in lines)
        for document in documents:
            if not is_own(document):
                self._given.add(document, valid=valid)
                self._manifests.append((document, valid))
        if self.shipped:
            lines = [LintLine(line.text) for line in lines]  # here a warning is one thing to mend
            lines += map(LintLine, list_shipped_problems(file, documents, loads=not lines))
        self.lines += lines

    def check_lengths(self) -> None:
        """Check what all shipped scenarios keep together."""
        files = [scenario.document.file for scenario in load_scenarios()]
        texts = [file.read_text(encoding="utf-8") for file in files]
        self.lines += map(LintLine, length_problems(scenarios_dir(), texts))

    def _warn(self, text: str) -> None:
        self.lines.append(LintLine(f"warning: {text}", error=False))

    def _refuse(self, error: ConformanceError) -> None:
        self.checked += 1
        self.lines += map(LintLine, str(error).splitlines())


def list_shipped_problems(
    file: Path, documents: Sequence[Document], *, loads: bool = True
) -> Iterator[str]:
    """List what a file must mend to be shipped, as ``file:line: ...``.

    Args:
        file: below ``scenarios/``.
        documents: what was read from it.
        loads: nothing else is wrong with it, so that its scenario or profile can be looked at.
    """
    yield from file_problems(file, documents)
    for document in documents if loads else ():
        kind = document.data.get("kind") if is_own(document) else None
        if kind == "Scenario":
            yield from chain.from_iterable(map(scenario_problems, load_scenarios([file])))
        elif kind == "DriverProfile":
            yield from profile_problems(validate_document(DriverProfile, document), document)


def _is_empty(documents: Sequence[Document]) -> bool:
    return all(document.data is None for document in documents)


def _is_object(document: Document) -> bool:
    """Tell whether a document is a Kubernetes object or one of ours, rightly written or not."""
    data = document.data
    fields = {key.lower() for key in data} if isinstance(data, dict) else set()
    return is_own(document) or (
        "apiversion" in fields and not fields.isdisjoint({"kind", "metadata"})
    )
