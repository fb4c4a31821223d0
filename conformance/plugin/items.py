"""Scenarios as pytest items.

Items are custom ones (not one parametrized function) so that each scenario has a stable id and a
history of its own in Allure and other reports. Scenarios that use a cluster's devices run one at a
time over all workers, because processes cannot share the engine's count of free devices.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from conformance.engine.run.ending import Divergence, may_be_chance, new_attempt
from conformance.engine.run.scenario_run import run_scenario
from conformance.plugin.session import FINAL, SESSION, lock_file, open_setup
from conformance.results.events.comparison import ScenarioCompared
from conformance.results.events.dispatch import Event
from conformance.results.events.scenario import Attempt, Diagnostics, Outcome, ScenarioFinished
from conformance.scenario.loader import LoadedScenario, load_file
from kube.base.errors import ConformanceError, InfrastructureError
from kube.base.locks import file_lock
from kube.base.redaction import redact
from kube.base.text import counted, visible


class ScenarioFile(pytest.File):
    """One scenario file; files of other kinds below the same folder have no items."""

    def collect(self) -> Iterable[pytest.Item]:
        try:
            loaded = load_scenario(self.config, self.path)
        except ConformanceError as error:
            raise self.CollectError(str(error)) from None
        if loaded is not None and self.config.stash[SESSION].selection.matches(loaded):
            yield ScenarioItem.from_parent(self, name=loaded.scenario.metadata.name, loaded=loaded)


def load_scenario(config: pytest.Config, file: Path) -> LoadedScenario | None:
    """Load the scenario in a file; None: another document. Raises ConformanceError: malformed."""
    arguments = [
        config.invocation_params.dir / argument.partition("::")[0] for argument in config.args
    ]
    # The id depends on the folder by which pytest found the file.
    folder = next((path for path in arguments if file.is_relative_to(path)), file)
    return load_file(file, folder if folder != file else None)


class ScenarioItem(pytest.Item):
    """One scenario as a test."""

    def __init__(self, *, loaded: LoadedScenario, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.loaded = loaded
        self.events: list[Event] = []
        self._attempts: list[Attempt] = []
        self._settled: ScenarioFinished | None = None
        spec = loaded.scenario.spec
        self.add_marker(
            pytest.mark.xdist_group("devices" if spec.tier != "allocation" else loaded.id)
        )

    def runtest(self) -> None:
        """Run the scenario through the engine; its outcome becomes the test's.

        Plugins call this again for a test that failed (pytest-rerunfailures). That is one more
        attempt, as ``--dra-retries`` makes them; what may not be retried ends as it did.
        """
        if self._settled is not None:
            self.events = [item for item in self.events if isinstance(item, FINAL)]
            _raise_outcome(self._settled)
            return
        self.events.clear()
        session = self.config.stash[SESSION]
        setup = open_setup(session)
        if session.run_options.compare:
            setup = replace(setup, compare=self._compare)
        alone = session.access is not None and self.loaded.scenario.spec.tier != "allocation"
        with file_lock(lock_file(setup.run)) if alone else ExitStack():
            finished = run_scenario(self.loaded, setup, self.events.append, earlier=self._attempts)
        if may_be_chance(finished, setup):
            self._attempts = [*finished.attempts, new_attempt(finished)]
        else:
            self._settled = finished
        diagnostic_items = [event.items for event in self.events if isinstance(event, Diagnostics)]
        diagnostics = {name: text for items in diagnostic_items for name, text in items.items()}
        for step in finished.steps:
            self.add_report_section("call", "steps", _make_safe(f"{step.outcome}: {step.title}"))
        if diagnostics and self.config.get_verbosity() > 0:
            for name, text in diagnostics.items():
                self.add_report_section("call", _make_safe(name), _make_safe(text))
        elif diagnostics:
            text = f"{counted(len(diagnostics), 'file')}; see them with -v"
            self.add_report_section("call", "diagnostics", text)
        compared = [event for event in self.events if isinstance(event, ScenarioCompared)]
        if self.config.getoption("allure_report_dir", None) is not None:
            from conformance.report.allure import apply_to_current_test

            apply_to_current_test(finished, diagnostics, compared[-1] if compared else None)
        _raise_outcome(finished)
        for event in compared:
            if not event.conformant:
                raise ScenarioFailed(f"{finished.where}: {'; '.join(event.notes)}")

    def _compare(self, finished: ScenarioFinished) -> ScenarioCompared:
        """Judge what the cluster did, beside the same scenario on the reference."""
        from conformance.compare.compare_scenarios import compare_scenario
        from conformance.compare.reference import run_on_reference

        setup = open_setup(self.config.stash[SESSION])
        [reference] = run_on_reference([self.loaded], setup.opened, setup.run)
        return compare_scenario(finished, reference)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Show a finding as what it says, without the suite's own stack."""
        if isinstance(excinfo.value, Divergence | InfrastructureError | ScenarioFailed):
            return _make_safe(str(excinfo.value))
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        return self.path, 0, self.loaded.id


class ScenarioFailed(AssertionError):  # noqa: N818 -- a finding about the target, not an error
    """The outcome of a scenario that failed, with its place."""


def _make_safe(text: str) -> str:
    """Make text from a target safe for pytest's terminal and a CI job's log."""
    return visible(redact(text))


def _raise_outcome(finished: ScenarioFinished) -> None:
    """Raise what makes the scenario's outcome the test's; nothing if it passed."""
    text = f"{finished.where}: {finished.message}"
    match finished.outcome:
        case Outcome.SKIPPED:
            pytest.skip(_make_safe(finished.message))
        case Outcome.KNOWN:
            issues = "; ".join(map(str, finished.known_issues))
            pytest.xfail(_make_safe(f"{issues}: {text}"))
        case Outcome.FAILED:
            raise ScenarioFailed(text)
        case Outcome.ERROR | Outcome.LOST | Outcome.FLAKY:
            raise InfrastructureError(text)
        case _:
            pass
