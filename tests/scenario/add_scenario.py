"""`make scenario FILE=...`: see what a scenario is good for, and write its row in kills.yaml.

The file is linted as a shipped one, must pass on the reference, and then meets every defect: one
scenario does so in less than half a minute. A defect that no scenario noticed before meets all the
others, too, so that it is known whether this one alone notices it.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Final

import typer

from conformance.cli.commands.lint import lint_command
from conformance.results.events.scenario import Outcome
from conformance.scenario.loader import LoadedScenario, load_scenarios
from kube.base.errors import ConformanceError, UsageError
from kube.base.text import counted
from tests.mutants import DEFECTS
from tests.scenario.kill_matrix import (
    KILLS,
    Kills,
    failing,
    noticing,
    own,
    read_kills,
    read_not_alone,
    run_on_reference,
    write_kills,
)
from tests.scenario.shipped import ROOT, on_reference, shipped
from tests.statements import wrongs

CHUNK: Final = 8
"""Defects that a process takes at a time."""


RAREST: Final = 5
"""Defects that are named where a scenario alone notices none: those that fewest others notice."""


def add_scenario(file: Path, reason: str) -> str:
    """Write the row of a shipped scenario, and return in words what it notices.

    Args:
        file: below ``scenarios/``.
        reason: why it is there although others notice all that it notices; empty: it has one
            already, or needs none.

    Raises:
        UsageError: it cannot be shipped as it is; nothing was written.
    """
    loaded = _load_shipped(file)
    if loaded not in on_reference():
        return f"{loaded.id} needs what the reference has not: there is no row to write"
    _check_that_it_passes(loaded)
    noticed = _find_noticed(loaded)
    unlisted = [title for title in noticed if title not in read_kills()]
    if unexplained := [title for title in unlisted if title not in wrongs()]:
        raise UsageError(
            f"{', '.join(unexplained)}: no statement in tests/statements names this defect; add it"
            " to the one that it breaks, with what goes wrong"
        )
    kills = with_row(read_kills(), loaded.id, noticed)
    with ProcessPoolExecutor() as pool:
        every = [{*names} for names in pool.map(partial(noticing, among=on_reference()), unlisted)]
    kills |= {title: sorted(names) for title, names in zip(unlisted, every, strict=True)}
    reasons = dict(read_not_alone())
    if reason:
        reasons[loaded.id] = reason
    if problems := list(find_problems(loaded.id, read_kills(), kills, reasons)):
        raise UsageError("\n".join((*problems, "nothing was written")))
    write_kills(kills, reasons)
    alone = ", ".join(own(kills).get(loaded.id, ())) or "none"
    return (
        f"{loaded.id} notices {counted(len(noticed), 'defect')}, alone: {alone}; its row is in"
        f" {KILLS.relative_to(ROOT.parent)}"
    )


def with_row(kills: Kills, scenario: str, noticed: Sequence[str]) -> dict[str, list[str]]:
    """The table, in which a scenario notices these defects and no others."""
    titles = sorted({*kills, *noticed})
    return {
        title: sorted(
            {*kills.get(title, ())} - {scenario} | ({scenario} if title in noticed else set())
        )
        for title in titles
    }


def find_problems(
    scenario: str, before: Kills, after: Kills, reasons: Mapping[str, str]
) -> Iterator[str]:
    """What the table would lack with the new row of a scenario, and what to do."""
    for title, names in after.items():
        if not names:
            yield (
                f"{title} was noticed by {scenario} alone, and is not any more: let the scenario"
                " see it again, or remove the defect"
            )
    alone = own({title: names for title, names in after.items() if names})
    if scenario not in alone and scenario not in reasons:
        yield _ask_for_reason(scenario, after)
    if scenario in alone and scenario in reasons:
        yield (
            f"{scenario} alone notices {', '.join(alone[scenario])}, and needs no reason: leave out"
            f" REASON, or remove `not alone` from its row in {KILLS.name}"
        )
    for name, titles in own(before).items():
        if name != scenario and name not in alone and name not in reasons:
            yield (
                f"{name} alone noticed {', '.join(titles)}, which {scenario} notices, too: make one"
                f" scenario of both, or give {name} a defect of its own, or say in {KILLS.name} at"
                f" `not alone` of {name} why it is there"
            )


def _ask_for_reason(scenario: str, kills: Kills) -> str:
    noticed = {title for title, names in kills.items() if scenario in names}
    text = f"{scenario} notices {counted(len(noticed), 'defect')}, and none alone"
    names = {name for title in noticed for name in kills[title]} - {scenario}
    as_good = [name for name in sorted(names) if all(name in kills[title] for title in noticed)]
    if as_good:
        text += f"; all of these {_list_names(as_good)} too"
    for title in sorted(noticed, key=lambda title: len(kills[title]))[:RAREST]:
        others = [name for name in kills[title] if name != scenario]
        text += f"\n  {title}: also {_list_names(others)}"
    return (
        f"{text}\nAdd a defect that it alone notices to tests/mutants and to the statement that it"
        " breaks (docs/writing-scenarios.md), or say what it is there for:"
        f" make scenario FILE=scenarios/{scenario}.yaml REASON='...'"
    )


def _list_names(names: Sequence[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 4 else ""
    return ", ".join(names[: 3 if more else 4]) + more


def _load_shipped(file: Path) -> LoadedScenario:
    if not file.is_file():
        raise UsageError(
            f"{file} is no file; name one: make scenario FILE=scenarios/core/NAME.yaml"
        )
    try:
        lint_command([file], shipped=True)
    except typer.Exit:
        raise UsageError(f"{file} cannot be shipped as it is; nothing was run") from None
    place = file.resolve()
    for loaded in shipped():
        if loaded.document.file.resolve() == place:
            return loaded
    if place.is_relative_to(ROOT):
        raise UsageError(f"{file} is no scenario")
    [elsewhere] = load_scenarios([file])
    raise UsageError(f"{file} is not below {ROOT}; move it to {ROOT / elsewhere.id}.yaml")


def _check_that_it_passes(loaded: LoadedScenario) -> None:
    [finished] = run_on_reference([loaded]).values()
    if finished.outcome is not Outcome.PASSED:
        raise UsageError(
            f"{loaded.locate(())}: must pass on the reference, and {finished.outcome}:"
            f" {finished.message}"
        )


def _find_noticed(loaded: LoadedScenario) -> list[str]:
    with ProcessPoolExecutor() as pool:
        titles = sorted(DEFECTS)
        results = pool.map(partial(_notices, loaded), titles, chunksize=CHUNK)
        return [title for title, noticed in zip(titles, results, strict=True) if noticed]


def _notices(loaded: LoadedScenario, title: str) -> bool:
    try:
        return bool(failing([loaded], title))
    except AssertionError as error:
        raise UsageError(f"{loaded.locate(())}: {error}; let an expectation fail") from None


def main() -> None:
    parser = argparse.ArgumentParser(prog="make scenario", description=__doc__)
    parser.add_argument("file", type=Path, help="a scenario below scenarios/")
    parser.add_argument("--reason", default="", help="why it is there, if it alone notices none")
    arguments = parser.parse_args()
    started = time.monotonic()
    try:
        print(add_scenario(arguments.file, arguments.reason))
    except ConformanceError as error:
        sys.exit(f"error: {error}")
    print(f"took {time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    main()
