"""Meets the driver with each defect with scenarios, for real, and writes what noticed it.

Starts one local cluster (root; minutes), gives its driver one defect after the other, and runs the
scenarios that should notice: on the cluster as if it were anybody's, through its kubeconfig alone,
and where nothing is noticed so, as on our own. With names of defects only these are met, and what
was found of the others is kept. The answers are kept in noticed.yaml. With --check nothing
is written. Exit code 1: a defect was not noticed, or the driver without one was.
"""

from __future__ import annotations

import argparse
import shlex
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import yaml

from conformance.scenario.selection import Selection, select
from localkube import LocalCluster, LocalOptions
from tests.cli.simulated_nodes import call, records, running_cluster
from tests.mutants.real_driver.faults import FAULTS

COMMAND: Final = "python -m tests.mutants.real_driver.measure"
ROOT: Final = Path(__file__).resolve().parents[3]
NOTICED: Final = Path(__file__).with_name("noticed.yaml")
NAME: Final = "drvfault"
MET: Final = {name: fault for name, fault in FAULTS.items() if fault.met_with}
OURS, ANYBODYS = "ours", "anybody's"
_REGISTERED_SECONDS: Final = 180.0

Noticed = dict[str, dict[str, list[str]]]
"""Defect -> whose cluster -> ids of the scenarios that failed."""


@dataclass
class FaultyCluster:
    """A local cluster whose driver gets one defect after the other.

    Attributes:
        timeouts: of its scenarios; short, for what is waited for will mostly not come.
    """

    name: str
    folder: Path
    timeouts: str = "{eventually: 30s, podRunning: 45s}"
    _number: int = field(default=0, init=False)

    @property
    def file(self) -> Path:
        """What the driver has is written here."""
        return self.folder / "fault"

    @property
    def _cluster(self) -> LocalCluster:
        return LocalCluster(LocalOptions(name=self.name))

    def give(self, fault: str) -> None:
        """Another defect; returns when the kubelet has answered to the new driver."""
        self._number += 1
        wanted = f"{fault} {self._number}"
        self.file.write_text(wanted, encoding="utf-8")
        log = self._cluster.layout.log("node-1/driver")
        since, deadline = "", time.monotonic() + _REGISTERED_SECONDS
        while time.monotonic() < deadline:
            _, _, since = log.read_text(errors="replace").rpartition(f"now with {wanted}\n")
            # The kubelet has registered the driver, or refused it.
            if "the kubelet re" in since and "are published" in since:
                return
            time.sleep(0.1)
        raise AssertionError(f"with {wanted}, the driver does not serve: {since[-2000:]}")

    def run(self, fault: str, whose: str, scenarios: Sequence[str] = ()) -> dict[str, str]:
        """Run scenarios with a defect: those that failed, and why.

        Args:
            fault: what the driver has from now on.
            whose: whether the suite knows that the cluster is its own.
            scenarios: last parts of their ids; by default those that should notice.
        """
        self.give(fault)
        out = self.folder / f"{fault}-{self._number}"
        kubeconfig = ("--kubeconfig", str(self._cluster.layout.kubeconfig))
        context = self._cluster.access().context
        where = {
            OURS: ("--cluster", "local", "--name", self.name),
            ANYBODYS: (
                *("--cluster", "kubeconfig", *kubeconfig, "--context", context),
                "--double-allocation",
            ),
        }
        image = self._cluster.access().image
        done = call(
            *("run", "--target", "cluster", *where[whose], "--image", image),
            *("--driver", "nvml-dra-driver", "-n", "4", "-o", str(out)),
            *(str(path) for path in self._impatient(scenarios or FAULTS[fault].met_with)),
            cwd=ROOT,
        )
        ids = {one.id.rpartition("/")[2]: one.id for one in select((), Selection())}
        found = {
            ids[one["scenario"].rpartition("/")[2]]: one["message"].splitlines()[0]
            for one in records(out, "scenario")
            if one["outcome"] in ("failed", "error")
        }
        out_of = [one for one in records(out, "scenario") if "devices" in (one["message"] or "")]
        if all(one["outcome"] == "skipped" for one in records(out, "scenario")):
            return {}  # for want of an ability
        if (out_of and not found) or bool(found) != (done.returncode in (1, 3)):
            raise AssertionError(f"exit code {done.returncode} and {found}: {done.stderr}")
        if found:  # what hangs because of the defect comes loose with the driver as it should be
            self.give("none")
            call("cleanup", "--cluster", "kubeconfig", *kubeconfig, "--context", context, cwd=ROOT)
        return found

    def _impatient(self, names: Sequence[str]) -> Iterator[Path]:
        """Copies of scenarios, by the last parts of their ids, that do not wait as long."""
        found = {item.id.rpartition("/")[2]: item.document.file for item in select((), Selection())}
        for name in names:
            text = found[name].read_text(encoding="utf-8")
            copy = self.folder / f"{name}.yaml"
            shorter = f"\nspec:\n  timeouts: {self.timeouts}\n"
            copy.write_text(text.replace("\nspec:\n", shorter, 1), encoding="utf-8")
            yield copy


@contextmanager
def faulty_cluster(name: str, folder: Path) -> Iterator[FaultyCluster]:
    """A cluster with the driver as it should be, removed at the end."""
    found = FaultyCluster(name, folder)
    found.file.write_text("none 0", encoding="utf-8")
    command = (sys.executable, "-m", "tests.mutants.real_driver.following", str(found.file))
    started = ("--driver", "nvml-dra-driver", "--driver-command", shlex.join(command))
    with running_cluster(name, ROOT, *started):
        yield found


_HEAD: Final = f"""\
# The driver with defects, for real

Our own driver is given one deliberate defect and runs beside a real kubelet; the scenarios that
should notice are run on that cluster as if it were anybody's (`--cluster kubeconfig
--double-allocation`), and where nothing is noticed so, as on the suite's own (`--cluster local`),
where it can look into the node and restart what runs there.

Measured by `{COMMAND}`, which needs root and takes minutes. The defects are in
`tests/mutants/real_driver`; the driver knows nothing of them.

| defect | what goes wrong | noticed on anybody's cluster by | noticed on our cluster by |
|---|---|---|---|
"""


def page(noticed: Mapping[str, Mapping[str, Sequence[str]]]) -> str:
    """The page real-mutants-driver.md."""
    lines = [_HEAD]
    for name, fault in MET.items():
        if name in noticed:
            cells = (
                _cell(noticed[name].get(ANYBODYS), fault.hidden),
                _cell(noticed[name].get(OURS)),
            )
            lines.append(f"| {name} | {fault.wrong} | {' | '.join(cells)} |\n")
    return "".join(lines)


def _cell(found: Sequence[str] | None, hidden: str = "") -> str:
    if found is None:
        return "the same"
    links = (f"[{one.rpartition('/')[2]}](../scenarios/{one}.yaml)" for one in sorted(found))
    return ", ".join(links) or ": ".join(["nothing", hidden][: 1 + bool(hidden)])


def read_noticed() -> Noticed:
    """What was found when they were met last."""
    found: Noticed = yaml.safe_load(NOTICED.read_text(encoding="utf-8")) if NOTICED.exists() else {}
    return found


def main(named: Set[str], *, check: bool) -> int:
    """Meet these defects, by default all; returns the exit code."""
    noticed = read_noticed()
    bad = []
    with (
        tempfile.TemporaryDirectory(prefix="sg-", dir="/tmp") as folder,
        faulty_cluster(NAME, Path(folder)) as cluster,
    ):
        for fault in MET if not named else sorted(named):
            noticed[fault] = {}
            for whose in (ANYBODYS, OURS):
                began = time.monotonic()
                found = cluster.run(fault, whose)
                noticed[fault][whose] = sorted(found)
                print(f"{fault} ({whose}, {time.monotonic() - began:.0f} s): {found}", flush=True)
                if found:
                    break
            if bool(found) == (fault == "none"):
                bad.append(fault)
            if not check:
                text = yaml.safe_dump(noticed, sort_keys=False, width=100)
                NOTICED.write_text(f"# Written by {COMMAND}\n{text}", encoding="utf-8")
    if bad:
        print(f"not as it should be: {', '.join(bad)}", file=sys.stderr)
    return int(bool(bad))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog=COMMAND, description=__doc__)
    parser.add_argument("names", nargs="*", metavar="DEFECT", help="only this one (repeatable)")
    parser.add_argument("--check", action="store_true", help="write nothing")
    given = parser.parse_args()
    if unknown := set(given.names) - MET.keys():
        parser.error(f"no such defect: {', '.join(sorted(unknown))}")
    return given


if __name__ == "__main__":
    given = _arguments()
    sys.exit(main(set(given.names), check=given.check))
