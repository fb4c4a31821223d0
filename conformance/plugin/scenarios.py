"""Scenarios as pytest items, in a session that names a target.

Items are custom ones (not one parametrized function) so that each scenario has a stable id and a
history of its own in Allure and other reports.

With pytest-xdist the controller opens a cluster once and the workers connect to it; the in-process
reference is opened by each worker for itself. Scenarios that use a cluster's devices run one at a
time over all workers, because processes cannot share the engine's count of free devices.
"""

from __future__ import annotations

import os
import sys
import tempfile
import uuid
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from conformance.clusters.base import ClusterAccess
from conformance.engine.awaiting import Divergence
from conformance.engine.classes import ensure_classes
from conformance.engine.events import Diagnostics, Event, Outcome, ScenarioFinished
from conformance.engine.ledger import Ledger
from conformance.engine.options import RunOptions
from conformance.engine.scenario_run import Setup, run_scenario
from conformance.engine.verdicts import ScenarioCompared
from conformance.errors import ConformanceError, InfrastructureError, UsageError
from conformance.locks import file_lock
from conformance.options import from_given
from conformance.plugin import given
from conformance.plugin.results import SessionResults, carried
from conformance.redaction import redact
from conformance.report.allure_pytest import apply_to_current_test
from conformance.scenario.loader import LoadedScenario, load_file
from conformance.scenario.selection import Selection
from conformance.scenario.yamlfile import YAML
from conformance.signals import interrupted_by_signals
from conformance.targets.base import RUN_LABEL
from conformance.targets.checks import check_options
from conformance.targets.opening import connect, open_reference
from conformance.targets.options import TargetOptions
from conformance.targets.sources import open_cluster
from conformance.text import counted


@dataclass
class Session:
    """What the items of one process share: the options, and the target once it is open."""

    options: TargetOptions
    selection: Selection
    run: str
    worker: str = ""
    access: ClusterAccess | None = None
    about: RunOptions = field(default_factory=RunOptions)
    stack: ExitStack = field(default_factory=ExitStack)
    setup: Setup | None = None
    results: SessionResults | None = None


SESSION = pytest.StashKey[Session]()


def pytest_configure(config: pytest.Config) -> None:
    """Note the options; the controller also opens the cluster, the workers learn of it."""
    try:
        options = from_given(TargetOptions, given(config, TargetOptions))
        about = from_given(RunOptions, given(config, RunOptions))
        selection = from_given(Selection, given(config, Selection))
        options = replace(options, record=about.compare)
        if about.compare and options.target == "reference":
            raise UsageError("--dra-compare judges a cluster; use --dra-target cluster")
        check_options(options)
    except ConformanceError as error:
        raise pytest.UsageError(str(error)) from None
    worker: dict[str, Any] | None = getattr(config, "workerinput", None)
    if worker is not None:
        access = ClusterAccess.from_json(worker["dra_access"]) if worker.get("dra_access") else None
        config.stash[SESSION] = Session(
            options, selection, worker["dra_run"], worker["workerid"], access, about
        )
        return
    session = Session(options, selection, about.run_id or uuid.uuid4().hex[:8], about=about)
    config.stash[SESSION] = session
    session.stack.enter_context(interrupted_by_signals())
    config.pluginmanager.register(_Receiver(session), "dra-conformance-results")
    if config.getoption("--collect-only"):
        return
    try:
        if options.target == "cluster":
            session.access, session.options = session.stack.enter_context(
                open_cluster(options, print)
            )
            # The driver's DeviceClasses stay for as long as the session lasts.
            opened = session.stack.enter_context(connect(session.access, session.options))
            session.stack.enter_context(_classes(Setup(session.run, opened)))
        if about.output is not None:
            session.results = SessionResults(about.output, _setup(session))
    except ConformanceError as error:
        session.stack.close()
        raise pytest.UsageError(str(error)) from None


def pytest_collection_finish(session: pytest.Session) -> None:
    """Note what is going to run; with xdist the controller has no items."""
    found = session.config.stash[SESSION]
    if found.results is not None and session.items:
        loaded = [item.loaded for item in session.items if isinstance(item, ScenarioItem)]
        found.results.plan(loaded, _filters(session.config))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_node_collection_finished(node: Any, ids: Sequence[str]) -> None:
    """The first worker that has collected tells the controller what is going to run."""
    found = node.config.stash[SESSION]
    if found.results is not None:
        files = [node.config.rootpath / name.partition("::")[0] for name in ids]
        loaded = [_load(node.config, file) for file in files if file.suffix in YAML]
        found.results.plan([item for item in loaded if item is not None], _filters(node.config))


def _filters(config: pytest.Config) -> dict[str, Any]:
    workers = getattr(config.option, "numprocesses", None) or 1
    return {"workers": workers, **given(config, Selection)}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Give a scenario's report the events of its run."""
    report = yield
    if isinstance(item, ScenarioItem) and call.when == "call":
        report.dra_events = carried(item.events)  # type: ignore[attr-defined]
    return report


class _Receiver:
    """Takes the events from the reports of all tests, in the process that writes the file."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        lines: list[str] | None = getattr(report, "dra_events", None)
        if self._session.results is not None and lines:
            self._session.results.take(lines)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Complete the result file, once what the run made is removed."""
    found = session.config.stash[SESSION]
    if found.results is None:
        return
    found.setup = None
    left: tuple[str, ...] = ()
    try:
        found.stack.close()
    except InfrastructureError as error:  # what the classes' cleanup did not remove
        left = (str(error),)
    interrupted = exitstatus == pytest.ExitCode.INTERRUPTED
    try:
        found.results.finish(interrupted=interrupted, left=left)
    except ConformanceError as error:
        session.exitstatus = pytest.ExitCode.INTERNAL_ERROR
        print(f"error: {error}", file=sys.stderr)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Close the target and the cluster."""
    session = config.stash.get(SESSION, None)
    if session is not None:
        session.stack.close()
        if not hasattr(config, "workerinput"):
            _lock_file(session.run).unlink(missing_ok=True)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell an xdist worker how to reach the cluster."""
    session = node.config.stash.get(SESSION, None)
    if session is not None:
        node.workerinput["dra_run"] = session.run
        node.workerinput["dra_access"] = session.access.to_json() if session.access else None


def pytest_report_header(config: pytest.Config) -> str | None:
    """Say what the scenarios run against."""
    session = config.stash.get(SESSION, None)
    if session is None:
        return None
    where = f" ({session.options.cluster})" if session.options.cluster else ""
    return f"dra-conformance: target {session.options.target}{where}, run {session.run}"


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """A YAML file below a scenario folder that holds a Scenario is a test file."""
    if SESSION not in parent.config.stash or file_path.suffix not in YAML:
        return None
    return ScenarioFile.from_parent(parent, path=file_path)


class ScenarioFile(pytest.File):
    """One scenario file; files of other kinds below the same folder have no items."""

    def collect(self) -> Iterable[pytest.Item]:
        """The scenario in the file, if it is one."""
        try:
            loaded = _load(self.config, self.path)
        except ConformanceError as error:
            raise self.CollectError(str(error)) from None
        if loaded is not None and self.config.stash[SESSION].selection.fits(loaded):
            yield ScenarioItem.from_parent(self, name=loaded.scenario.metadata.name, loaded=loaded)


def _load(config: pytest.Config, file: Path) -> LoadedScenario | None:
    given = [config.invocation_params.dir / argument.partition("::")[0] for argument in config.args]
    # The id depends on the folder by which pytest found the file.
    below = next((path for path in given if file.is_relative_to(path)), file)
    return load_file(file, below if below != file else None)


class ScenarioItem(pytest.Item):
    """One scenario as a test."""

    def __init__(self, *, loaded: LoadedScenario, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.loaded = loaded
        self.events: list[Event] = []
        spec = loaded.scenario.spec
        self.add_marker(
            pytest.mark.xdist_group("devices" if spec.tier != "allocation" else loaded.id)
        )

    def runtest(self) -> None:
        """Run the scenario through the engine; its outcome becomes the test's."""
        session = self.config.stash[SESSION]
        setup = _setup(session)
        if session.about.compare:
            setup = replace(setup, compare=self._compare)
        alone = session.access is not None and self.loaded.scenario.spec.tier != "allocation"
        with file_lock(_lock_file(setup.run)) if alone else ExitStack():
            finished = run_scenario(self.loaded, setup, self.events.append)
        found = [event.items for event in self.events if isinstance(event, Diagnostics)]
        diagnostics = {name: text for items in found for name, text in items.items()}
        for step in finished.steps:
            self.add_report_section("call", "steps", f"{step.outcome}: {step.title}")
        if diagnostics and self.config.get_verbosity() > 0:
            for name, text in diagnostics.items():
                self.add_report_section("call", name, redact(text))
        elif diagnostics:
            text = f"{counted(len(diagnostics), 'file')}; see them with -v"
            self.add_report_section("call", "diagnostics", text)
        apply_to_current_test(finished, diagnostics)
        _raise(finished)
        for event in self.events:
            if isinstance(event, ScenarioCompared) and not event.conformant:
                raise ScenarioFailed(f"{finished.where}: {'; '.join(event.notes)}")

    def _compare(self, finished: ScenarioFinished) -> ScenarioCompared:
        """Judge what the cluster did, beside the same scenario on the reference."""
        from conformance.compare.compare import compare_scenario
        from conformance.compare.reference import on_reference

        setup = _setup(self.config.stash[SESSION])
        [reference] = on_reference([self.loaded], setup.opened, setup.run)
        return compare_scenario(finished, reference)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """A finding is shown as what it says, without the suite's own stack."""
        if isinstance(excinfo.value, Divergence | InfrastructureError | ScenarioFailed):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """File, line and name for pytest's reports."""
        return self.path, 0, self.loaded.id


class ScenarioFailed(AssertionError):  # noqa: N818 -- a finding about the target, not an error
    """The outcome of a scenario that failed, with its place."""


def _raise(finished: ScenarioFinished) -> None:
    text = f"{finished.where}: {finished.message}"
    match finished.outcome:
        case Outcome.SKIPPED:
            pytest.skip(finished.message)
        case Outcome.KNOWN:
            pytest.xfail(f"{'; '.join(map(str, finished.known_issues))}: {text}")
        case Outcome.FAILED:
            raise ScenarioFailed(text)
        case Outcome.ERROR | Outcome.LOST:
            raise InfrastructureError(text)
        case _:
            pass


def _setup(session: Session) -> Setup:
    """Open this process's target when the first scenario needs it."""
    if session.setup is None:
        with ExitStack() as stack:
            if session.access is not None:
                opened = stack.enter_context(connect(session.access, session.options))
            else:
                opened = stack.enter_context(open_reference(session.options))
            setup = Setup(session.run, opened, worker=session.worker)
            if session.access is None:  # otherwise the controller has provided them
                stack.enter_context(_classes(setup))
            session.stack.enter_context(stack.pop_all())
        session.setup = setup
    return session.setup


@contextmanager
def _classes(setup: Setup) -> Iterator[None]:
    scope = setup.opened.target.scope(f"dra-{setup.run}")
    ledger = Ledger(scope, {RUN_LABEL: setup.run})
    try:
        if setup.opened.profile is not None:
            ensure_classes(setup.opened.profile, scope, ledger)
        yield
    finally:
        left = ledger.cleanup(60.0)
        scope.close()
        if left:
            raise InfrastructureError("; ".join(left))


def _lock_file(run: str) -> Path:
    """The same for the controller of a run and its workers."""
    return Path(tempfile.gettempdir()) / f"dra-conformance-{os.getuid()}-{run}"
