"""Meet every mutant with the scenarios that should notice it, and write seen.yaml.

Takes root (one node with a kubelet), Go, and about 20 minutes for all; with names only these are
met and what was written of the others stays. With --check nothing is written. Exit code 1: a
mutant was not noticed, or the scheduler without a defect does not pass.
"""

from __future__ import annotations

import argparse
import datetime as dt
import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from localkube.binaries.versions import KUBERNETES
from tests.mutants.real import record
from tests.mutants.real.build import mutant_scheduler
from tests.mutants.real.change import Wrong
from tests.mutants.real.running import Schedulers, Seen, schedulers, tier
from tests.mutants.real.wrong import ALL

SHORT, LONG = 8.0, 25.0
"""Seconds that scenarios wait where a verdict shows what is wrong, and where only a failure can."""

_say = partial(print, file=sys.stderr, flush=True)


def noticed(wrong: Wrong, seen: Seen) -> bool:
    """Whether what was seen shows the defect, and not only a slow machine."""
    return seen.reached and bool(seen.verdicts if wrong.judged else seen.failed)


def main(names: Sequence[str], *, check: bool) -> int:
    """Meet these mutants, by default all; returns the exit code."""
    known = {wrong.name: wrong for wrong in ALL}
    wrongs = [known[name] for name in names or known]
    wanted = {name for wrong in wrongs for name in wrong.scenarios}
    nodes = int(any(tier(name) != "allocation" for name in wanted))
    program = mutant_scheduler(_say)
    entries = record.read()
    bad = []
    with schedulers(program, "mutants", nodes=nodes, progress=_say) as running:
        bad += _control(running, wanted)
        for wrong in wrongs:
            running.become(wrong.name)
            seen = _meet(running, wrong.scenarios, SHORT if wrong.judged else LONG)
            if noticed(wrong, seen) == (wrong.name in record.NOT_SEEN):
                bad.append(wrong.name)
                _say(seen.told)
            _say(f"{wrong.name}: {_summary(wrong, seen)}")
            today = dt.datetime.now(dt.UTC).date().isoformat()
            entries[wrong.name] = record.entry(seen, KUBERNETES, today)
            if not check:
                record.write(entries)
        bad += _control(running, wanted)
    if bad:
        _say(f"not as it should be: {', '.join(bad)}")
    return int(bool(bad))


def _control(running: Schedulers, scenarios: set[str]) -> list[str]:
    """The same program without a defect passes everything."""
    running.become("")
    seen = _meet(running, sorted(scenarios), 0)
    wrong = sorted({*seen.failed, *seen.unclear, *seen.verdicts})
    if wrong or seen.reached:
        _say(seen.told)
    _say(f"the scheduler without a defect: {len(seen.outcomes)} scenarios, not passed: {wrong}")
    return [f"{name} without a defect" for name in wrong]


def _meet(running: Schedulers, scenarios: Sequence[str], seconds: float) -> Seen:
    with tempfile.TemporaryDirectory() as folder:
        return running.meet(scenarios, Path(folder), seconds)


def _summary(wrong: Wrong, seen: Seen) -> str:
    if not seen.reached:
        return "NOT REACHED: nothing made the scheduler do what is wrong"
    what = "noticed" if noticed(wrong, seen) else "NOT NOTICED"
    return f"{what}: failed {seen.failed}, verdicts {dict(seen.verdicts)}, {seen.unclear or ''}"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.mutants.real",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", metavar="MUTANT", help="only this one (repeatable)")
    parser.add_argument("--check", action="store_true", help="write nothing")
    given = parser.parse_args()
    if unknown := set(given.names) - {wrong.name for wrong in ALL}:
        parser.error(f"no such mutants: {', '.join(sorted(unknown))}")
    return given


if __name__ == "__main__":
    given = _arguments()
    sys.exit(main(given.names, check=given.check))
