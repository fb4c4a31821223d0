"""A pytest session that names a target: options, the cluster, collection, the result file.

With pytest-xdist the controller opens a cluster and writes the result file, the workers run.
"""

from __future__ import annotations

import sys
import uuid
from collections.abc import Generator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from conformance.debuglog import DEBUG_LOG, debug_log
from conformance.engine.options import RunOptions
from conformance.engine.plan import header, shard_of
from conformance.engine.setup import Setup
from conformance.plugin import read_options
from conformance.plugin.items import ScenarioFile, ScenarioItem, load_scenario
from conformance.plugin.session import (
    SESSION,
    Session,
    SessionResults,
    lock_file,
    open_setup,
    provide_classes,
    serialize_events,
)
from conformance.report.allure_run import write_run
from conformance.results.events.run import ShardPlan
from conformance.results.merge import only_failed
from conformance.scenario.documents.yamlfile import YAML
from conformance.scenario.loader import LoadedScenario
from conformance.scenario.selection import Selection
from conformance.targets.opening.checks import check_options
from conformance.targets.opening.options import TargetOptions
from conformance.targets.opening.sources import open_cluster
from conformance.targets.opening.target import attach_target
from kube.base.errors import ConformanceError, InfrastructureError, UsageError
from kube.base.files import write_whole
from kube.base.options import build_options
from kube.base.signals import interrupted_by_signals
from kube.base.text import visible
from localkube.base import ClusterAccess

SHARD = TypeAdapter(ShardPlan)
RUNS_AGAIN = "rerun"


def pytest_configure(config: pytest.Config) -> None:
    """Note the options; the controller also opens the cluster, the workers learn of it."""
    # pytest-xdist's own words, for sessions without it (`-p no:xdist`) and with --strict-markers.
    config.addinivalue_line("markers", "xdist_group(name): tests that run in one worker")
    try:
        options = build_options(TargetOptions, read_options(config, TargetOptions))
        run_options = build_options(RunOptions, read_options(config, RunOptions))
        selection = only_failed(build_options(Selection, read_options(config, Selection)))
        selection.check_names()
        options = replace(options, record=run_options.compare)
        if run_options.compare and options.target == "reference":
            raise UsageError("--dra-compare judges a cluster; use --dra-target cluster")
        if run_options.debug and run_options.output is None:
            raise UsageError("--dra-debug writes into the output folder; give --dra-output")
        check_options(options)
        if config.getoption("dist", "no") == "each":
            raise UsageError(
                "--dist each runs each scenario in every worker, and a result has it once; use"
                " --dist load"
            )
    except ConformanceError as error:
        raise pytest.UsageError(str(error)) from None
    worker: dict[str, Any] | None = getattr(config, "workerinput", None)
    if worker is not None:
        access = ClusterAccess.from_json(worker["dra_access"]) if worker.get("dra_access") else None
        config.stash[SESSION] = Session(
            options, selection, worker["dra_run"], worker["workerid"], access, run_options
        )
        _log_debug(config.stash[SESSION])
        return
    session = Session(
        options, selection, run_options.run_id or uuid.uuid4().hex[:8], run_options=run_options
    )
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
            opened = session.stack.enter_context(attach_target(session.access, session.options))
            session.stack.enter_context(provide_classes(Setup(session.run, opened)))
        if run_options.output is not None:
            session.results = SessionResults(run_options.output, open_setup(session))
            _log_debug(session)
    except ConformanceError as error:
        session.stack.close()
        raise pytest.UsageError(str(error)) from None


def _log_debug(session: Session) -> None:
    """Write the debug log of this process for as long as the session lasts, if asked for."""
    if session.run_options.debug and session.run_options.output is not None:
        session.stack.enter_context(debug_log(session.run_options.output / DEBUG_LOG))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect what other shards run, once pytest's own filters have left the rest."""
    session = config.stash[SESSION]
    scenarios = {item: item.loaded for item in items if isinstance(item, ScenarioItem)}
    try:
        own_scenarios, session.shard = shard_of(list(scenarios.values()), session.run_options.shard)
    except ConformanceError as error:
        raise pytest.UsageError(str(error)) from None
    if session.shard is None:
        return
    if session.worker:  # the controller has no items
        write_whole(_plan_file(session.run), SHARD.dump_json(session.shard))
    shard_ids = {loaded.id for loaded in own_scenarios}
    deselected = [item for item, loaded in scenarios.items() if loaded.id not in shard_ids]
    config.hook.pytest_deselected(items=deselected)
    items[:] = [item for item in items if item not in deselected]


def pytest_collection_finish(session: pytest.Session) -> None:
    """Note what is going to run; with xdist the controller has no items."""
    if session.items:
        loaded = [item.loaded for item in session.items if isinstance(item, ScenarioItem)]
        _begin_results(session.config, loaded)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_node_collection_finished(node: Any, ids: Sequence[str]) -> None:
    """Tell the controller what is going to run, once the first worker has collected."""
    session = node.config.stash[SESSION]
    if session.run_options.shard is not None:
        session.shard = SHARD.validate_json(_plan_file(session.run).read_bytes())
    files = [_find_file(node.config, name.partition("::")[0]) for name in ids]
    loaded = [load_scenario(node.config, file) for file in files if file.suffix in YAML]
    _begin_results(node.config, [item for item in loaded if item is not None])


def _find_file(config: pytest.Config, name: str) -> Path:
    """Return the file of an item's id: below the root folder, or as an argument names it."""
    start = config.invocation_params.dir
    arguments = [start / argument.partition("::")[0] for argument in config.args]
    folders = [config.rootpath, start, *arguments, *(path.parent for path in arguments)]
    return next((path / name for path in folders if (path / name).is_file()), start / name)


def _begin_results(config: pytest.Config, loaded: Sequence[LoadedScenario]) -> None:
    """Begin the result file, and tell Allure (``--alluredir``) what the run is about."""
    session = config.stash[SESSION]
    if hasattr(config, "workerinput") or config.getoption("--collect-only"):
        return
    if session.results is not None:
        session.results.begin(loaded, _list_filters(config), session.shard)
    folder = config.getoption("allure_report_dir", None)
    if folder is not None:
        write_run(Path(folder), header(loaded, open_setup(session), _list_filters(config)))


def _plan_file(run: str) -> Path:
    """Return where a worker writes the shard of this run: xdist gives the controller ids alone."""
    return lock_file(run).with_suffix(".shard")


def _list_filters(config: pytest.Config) -> dict[str, Any]:
    workers = getattr(config.option, "numprocesses", None) or 1
    run_options = config.stash[SESSION].run_options
    options = {
        "workers": workers,
        "retries": run_options.retries,
        **read_options(config, Selection),
    }
    return {name: value for name, value in options.items() if value}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Give a scenario's report the events of its run."""
    report = yield
    if isinstance(item, ScenarioItem) and call.when == "call":
        report.dra_events = serialize_events(item.events)  # type: ignore[attr-defined]
    return report


class _Receiver:
    """Takes the events from the reports of all tests, in the process that writes the file."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        lines: list[str] | None = getattr(report, "dra_events", None)
        if self._session.results is not None and lines:
            # so pytest-rerunfailures calls the outcome of a test that it has run again
            self._session.results.take_lines(lines, runs_again=report.outcome == RUNS_AGAIN)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Complete the result file, once what the run made is removed."""
    suite_session = session.config.stash[SESSION]
    if suite_session.results is None:
        return
    suite_session.setup = None
    leftovers: tuple[str, ...] = ()
    try:
        suite_session.stack.close()
    except InfrastructureError as error:  # what the classes' cleanup did not remove
        leftovers = (str(error),)
    interrupted = exitstatus == pytest.ExitCode.INTERRUPTED
    try:
        suite_session.results.finish(interrupted=interrupted, left=leftovers)
    except ConformanceError as error:
        session.exitstatus = pytest.ExitCode.INTERNAL_ERROR
        print(visible(f"error: {error}"), file=sys.stderr)


def pytest_unconfigure(config: pytest.Config) -> None:
    session = config.stash.get(SESSION, None)
    if session is not None:
        session.stack.close()
        if not hasattr(config, "workerinput"):
            lock_file(session.run).unlink(missing_ok=True)
            _plan_file(session.run).unlink(missing_ok=True)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    session = node.config.stash.get(SESSION, None)
    if session is not None:
        node.workerinput["dra_run"] = session.run
        node.workerinput["dra_access"] = session.access.to_json() if session.access else None


def pytest_report_header(config: pytest.Config) -> str | None:
    session = config.stash.get(SESSION, None)
    if session is None:
        return None
    where = f" ({session.options.cluster})" if session.options.cluster else ""
    return f"dra-conformance: target {session.options.target}{where}, run {session.run}"


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Take a YAML file below a scenario folder for a test file; it may hold a Scenario."""
    if SESSION not in parent.config.stash or file_path.suffix not in YAML:
        return None
    return ScenarioFile.from_parent(parent, path=file_path)
