"""One real cluster whose scheduler is exchanged for wrong ones, and what scenarios say of them.

Only the scheduler is started anew between mutants, which takes a second or two. A kubelet is needed
for scenarios of the node tier alone.
"""

from __future__ import annotations

import dataclasses
import json
import re
import subprocess
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from conformance.data import scenarios_dir
from conformance.scenario.documents.yamlfile import read_documents
from conformance.targets.opening.own_driver import Simulation, own_driver
from localkube import LocalCluster, LocalOptions
from localkube.base import Progress, silent
from localkube.component import STOP_SECONDS, Running
from localkube.components import Components
from localkube.processes.supervision import Processes

GATES = {"DRANodeAllocatableResources": True}
"""Beside the defaults: what scenarios about an alpha feature need."""

BROKEN = frozenset({"inadmissible", "impossible", "missed", "overlapping"})
"""Verdicts that no correct scheduler gets."""

_RULE = re.compile(r"(?:^|it breaks: )([a-z-]+): ")
"""Where the reason of a verdict names the rule; what follows has names of this run."""

_FAILED = ("failed", "known")
_SCHEDULER = "kube-scheduler"
_VARIABLE = "DRA_MUTANT"


@dataclass(frozen=True)
class Seen:
    """What scenarios said of one scheduler.

    Attributes:
        outcomes: scenario -> passed, failed, skipped, error or lost.
        verdicts: scenario -> the verdicts on its allocations that no correct scheduler gets.
        told: what was printed by those that did not pass.
        reached: whether the code that is wrong ran.
    """

    outcomes: Mapping[str, str]
    verdicts: Mapping[str, Sequence[str]]
    told: str
    reached: bool

    @property
    def failed(self) -> list[str]:
        """Scenarios that failed; a device in two claims is a known issue of 1.37.1, and counts."""
        return [name for name, outcome in self.outcomes.items() if outcome in _FAILED]

    @property
    def unclear(self) -> dict[str, str]:
        """Scenarios that neither passed nor failed."""
        return {k: v for k, v in self.outcomes.items() if v not in ("passed", *_FAILED)}


class Schedulers:
    """A running cluster, and the program that can be any of its schedulers."""

    def __init__(self, cluster: LocalCluster, program: Path) -> None:
        """Use the cluster, which runs."""
        self._cluster = cluster
        self._program = program
        self._processes = Processes(cluster.layout)

    def become(self, wrong: str) -> None:
        """Have the cluster scheduled by this mutant; "" is the one that is right.

        Raises:
            ClusterError: it did not start.
        """
        state = self._cluster.state()
        assert state is not None, "the cluster runs"
        spec = self._processes.records()[_SCHEDULER].spec
        spec = dataclasses.replace(
            spec,
            command=(str(self._program), *spec.command[1:]),
            env={_VARIABLE: wrong} if wrong else {},
        )
        self._processes.stop(_SCHEDULER, grace_seconds=STOP_SECONDS)
        spec.log.unlink(missing_ok=True)
        driver = self._cluster.options.driver
        running = Running(self._cluster.layout, state, self._processes, driver)
        Components(running).launch(spec)

    def meet(
        self, scenarios: Collection[str], folder: Path, seconds: float = 0, *options: str
    ) -> Seen:
        """Run scenarios against the scheduler of the moment.

        Args:
            scenarios: their ids.
            folder: where they and their results are written.
            seconds: how long they wait for what must come, instead of their own limits (0): most
                of what a wrong scheduler does is that nothing comes.
            options: more of ``run``.
        """
        files = {_impatient(name, folder, seconds): name for name in sorted(scenarios)}
        names = {file.stem: name for file, name in files.items()}
        assert len(names) == len(files), "scenarios are told apart by the last part of their id"
        done = subprocess.run(
            [
                *(sys.executable, "-m", "conformance", "run", "--target", "cluster"),
                *("--cluster", "local", "--name", self._cluster.layout.name, "--compare"),
                *("-n", "4", "-o", str(folder / "out"), *options, *map(str, files)),
            ],
            capture_output=True,
            text=True,
            check=False,
        )
        results = folder / "out/results.ndjson"
        assert results.is_file(), done.stdout + done.stderr
        records = [json.loads(line) for line in results.read_text().splitlines()]
        log = self._processes.records()[_SCHEDULER].spec.log.read_text(errors="replace")
        return Seen(
            outcomes={names[r["scenario"]]: r["outcome"] for r in _of(records, "scenario")},
            verdicts=_verdicts(records, names),
            told=done.stdout,
            reached=f"\n{_VARIABLE}=" in f"\n{log}",
        )


@contextmanager
def schedulers(
    program: Path, name: str, *, nodes: int, progress: Progress = silent
) -> Iterator[Schedulers]:
    """A cluster for mutants, removed at the end.

    Args:
        program: the mutant scheduler (build.py).
        name: the cluster's.
        nodes: with a kubelet; 0 needs no root and is enough for the allocation tier.
        progress: told what is started.

    Raises:
        ClusterError: the cluster did not start.
    """
    cluster = LocalCluster(
        LocalOptions(
            name=name,
            nodes=nodes,
            feature_gates=GATES,
            driver=own_driver(Simulation()) if nodes else None,
        )
    )
    try:
        cluster.up(progress)
        yield Schedulers(cluster, program)
    finally:
        cluster.down()


def tier(scenario: str) -> str:
    """The tier of a shipped scenario."""
    return str(_document(scenario)["spec"]["tier"])


def _document(scenario: str) -> dict[str, Any]:
    """As the suite reads it: to PyYAML alone the key ``on`` is true."""
    [document] = read_documents(scenarios_dir() / f"{scenario}.yaml")
    found: dict[str, Any] = document.data
    return found


def _impatient(scenario: str, folder: Path, seconds: float) -> Path:
    document = _document(scenario)
    if seconds:
        limits = {"eventually": f"{seconds:.0f}s", "podRunning": f"{seconds:.0f}s"}
        document["spec"]["timeouts"] = document["spec"].get("timeouts", {}) | limits
    path = folder / f"{scenario}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(document, sort_keys=False))
    return path


def _of(records: Sequence[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [record for record in records if record["record"] == kind]


def _verdicts(records: Sequence[dict[str, Any]], names: Mapping[str, str]) -> dict[str, list[str]]:
    found: dict[str, set[str]] = {}
    for record in _of(records, "compared"):
        for judgement in record["judgements"]:
            if judgement["verdict"] in BROKEN:
                rule = _RULE.search(judgement["reason"])
                text = judgement["verdict"] + (f": {rule[1]}" if rule else "")
                found.setdefault(names[record["scenario"]], set()).add(text)
    return {name: sorted(texts) for name, texts in found.items()}
