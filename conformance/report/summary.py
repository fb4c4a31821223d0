"""The end of a terminal report: what did not pass and why, totals, and the verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from rich.text import Text

from conformance.compare.conclude import conclude_run, explain_uncertified
from conformance.results.events.result import RunResult, ScenarioResult, summarize_accounts
from conformance.results.events.scenario import Outcome
from kube.base.errors import ExitCode
from kube.base.redaction import redact
from kube.base.text import counted, cut, shorten, visible

MAX_LINES = 40
MAX_CHARACTERS = 4_000  # The most that is printed of one message; the result file has all of it.

MAX_NOT_RUN = 5
"""Lost scenarios that are named; they differ in nothing, and the reports name them all."""

STYLES: Mapping[Outcome, str] = {
    Outcome.PASSED: "green",
    Outcome.FAILED: "bold red",
    Outcome.KNOWN: "yellow",
    Outcome.FLAKY: "bold yellow",
    Outcome.ERROR: "bold magenta",
    Outcome.SKIPPED: "yellow",
    Outcome.LOST: "bold magenta",
}

VERDICTS: Mapping[ExitCode, tuple[str, str]] = {
    ExitCode.CONFORMANT: ("conformant", "bold green"),
    ExitCode.NOT_CONFORMANT: ("not conformant", "bold red"),
    ExitCode.INCONCLUSIVE: ("inconclusive", "bold magenta"),
    ExitCode.PARTIAL: ("partial", "bold yellow"),
}
"""Exit code of a run -> its verdict in words, and their style."""


def one_line(message: str) -> str:
    """Return a message of several lines as one that is safe for a terminal."""
    return cut(visible(redact(message)).replace("\n", " "), 1_000)


def closing_lines(
    result: RunResult,
    diagnostics: Callable[[str], Path | None] = lambda _: None,
    durations: int = 0,
) -> Iterator[Text]:
    """Yield the last lines of a run's output, the most important at the end, where people look."""
    yield from _not_run(result)
    yield from _failures(result, diagnostics)
    yield from _compared(result)
    yield from _slowest(result, durations)
    yield Text()
    yield from _features(result)
    yield _totals(result)
    if result.compared:
        counts = [f"{number} {verdict}" for verdict, number in result.verdicts.items() if number]
        yield Text(f"allocations judged: {', '.join(counts) or 'none'}")
        if accounts := summarize_accounts(result.compared):
            yield Text(visible(accounts))
    if result.latency is not None:
        yield Text(str(result.latency))
    if result.left:
        yield Text(visible(f"left behind: {', '.join(result.left)}; run `dra-conformance cleanup`"))
    version, kubelet = result.run.kubernetes_version, result.run.versions.get("kubelet", "")
    if kubelet and kubelet != f"v{version}":
        version += f", kubelet {kubelet}"
    if result.run.scheduler_version:
        version += f", scheduler {result.run.scheduler_version}"
    for issue, names in result.known_issues.items():
        issue_text = (
            f"{issue} of Kubernetes {version}, not counted: {counted(len(names), 'scenario')}"
        )
        yield Text(visible(issue_text), style=STYLES[Outcome.KNOWN])
    conclusion = conclude_run(result)
    word, style = VERDICTS[conclusion.code]
    line = Text(word, style=style)
    if conclusion.reasons:
        line.append(f": {'; '.join(conclusion.reasons)}", style="")
    yield line.append(f" (exit code {int(conclusion.code)})", style="")
    if conclusion.code is ExitCode.CONFORMANT and explain_uncertified(result):
        yield Text(
            one_line(f"certifies nothing: {'; '.join(explain_uncertified(result))}"), style="dim"
        )


def _not_run(result: RunResult) -> Iterator[Text]:
    """Yield a line for each scenario that was skipped, and one for all that were lost."""
    skipped = [row for row in result.scenarios if row.outcome is Outcome.SKIPPED]
    lost = [row for row in result.scenarios if row.outcome is Outcome.LOST]
    if skipped or lost:
        yield Text()
    for row in (*skipped, *lost[:MAX_NOT_RUN]):
        yield _headline(row, one_line(row.message))
    if lost[MAX_NOT_RUN:]:
        yield Text(f"and {len(lost) - MAX_NOT_RUN} more lost; the reports name them all")


def _failures(result: RunResult, diagnostics: Callable[[str], Path | None]) -> Iterator[Text]:
    """Yield what, where and why of each scenario that did not pass, and its diagnostics."""
    for outcome in (Outcome.KNOWN, Outcome.FLAKY, Outcome.ERROR, Outcome.FAILED):
        for row in result.scenarios:
            event = row.finished
            if event is None or row.outcome is not outcome:
                continue
            yield Text()
            yield _headline(row, "")
            where = event.where or f"{event.scenario.file}:{event.scenario.line}"
            yield Text(f"  at {visible(where)}")
            text = shorten(visible(redact(event.message)), MAX_LINES, MAX_CHARACTERS)
            for line in text.split("\n") if text else []:
                yield Text(f"  {line}")
            for issue in event.known_issues:
                yield Text(f"  {visible(str(issue))}")
            if event.left:
                yield Text("  left behind: " + visible(", ".join(event.left)))
            diagnostics_folder = diagnostics(row.scenario.id)
            if diagnostics_folder is not None:
                yield Text(f"  diagnostics: {visible(str(diagnostics_folder))}")


def _compared(result: RunResult) -> Iterator[Text]:
    """Yield what the comparison found in each scenario, also in those that passed."""
    for compared in sorted(result.compared, key=lambda item: item.scenario):
        if compared.notes:
            yield Text()
            yield Text.assemble("compared ", (visible(compared.scenario), "bold"))
        for note in compared.notes:
            yield Text("  " + one_line(note))


def _slowest(result: RunResult, most: int) -> Iterator[Text]:
    """Yield the scenarios that took longest, with the step in which they spent most."""
    slowest = sorted(result.finished, key=lambda event: -event.seconds)[:most]
    if slowest:
        yield Text()
        yield Text(f"slowest of {counted(len(result.finished), 'scenario')}:")
    for event in slowest:
        yield Text(visible(f"  {event.seconds:8.2f} s  {event.scenario.id}"))
        step = max(event.steps, key=lambda step: step.seconds, default=None)
        if step is not None:
            yield Text(one_line(f"  {step.seconds:8.2f} s    {step.title}"))


def _features(result: RunResult) -> Iterator[Text]:
    """Yield which features have not passed in full; those that have are counted."""
    features = by_feature(result)
    whole = [name for name, counts in features.items() if set(counts) == {Outcome.PASSED}]
    for name, counts in features.items():
        if name not in whole:
            yield Text(visible(f"feature {name}: ")).append_text(_format_counts(counts))
    yield Text(f"{len(whole)} of {len(features)} features passed in full")


def by_feature(result: RunResult) -> dict[str, Counter[Outcome]]:
    """Return feature -> outcome -> scenarios, by feature, without outcomes that did not occur."""
    features: dict[str, Counter[Outcome]] = {}
    for row in sorted(result.scenarios, key=lambda row: row.scenario.feature):
        features.setdefault(row.scenario.feature, Counter())[row.outcome] += 1
    return features


def _totals(result: RunResult) -> Text:
    """Return ``12 passed, 1 failed in 3.20 s``; outcomes that did not occur are left out."""
    counts = {outcome: len(ids) for outcome, ids in result.outcomes.items() if ids}
    seconds = result.footer.seconds if result.footer else 0.0
    return (_format_counts(counts) if counts else Text("nothing ran")).append(
        f" in {seconds:.2f} s"
    )


def _format_counts(counts: Mapping[Outcome, int]) -> Text:
    counts_shown = [
        Text(f"{counts[item]} {item}", style=STYLES[item]) for item in Outcome if item in counts
    ]
    return Text(", ").join(counts_shown)


def _headline(row: ScenarioResult, rest: str) -> Text:
    line = Text(f"{row.outcome} ", style=STYLES[row.outcome])
    line.append(visible(row.scenario.id), style="bold")
    return line.append(f": {rest}" if rest else "", style="")
