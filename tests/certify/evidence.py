"""Genuine evidence to forge: shipped scenarios on the reference, compared, as a run writes it."""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from conformance.certify.model import Implementation
from conformance.certify.profiles import CORE, load_profiles
from conformance.certify.report import told
from conformance.certify.verify import Verification, verify
from conformance.cli.selection import select
from conformance.compare.compare import Comparer
from conformance.engine.events import PlannedScenario
from conformance.engine.scenario_run import Setup, planned
from conformance.engine.suite import run_suite
from conformance.resultfile.read import load_results
from conformance.resultfile.write import ResultFile
from conformance.scenario.loader import LoadedScenario
from conformance.targets.opening import open_reference
from conformance.targets.options import TargetOptions

Records = list[dict[str, Any]]
WAITS = "core/all-mode-waits-for-device-in-use"
"""Allocation tier: two decisions, one pod that is seen to wait."""
SHARED = "core/generated-claim-containers-share-device"
"""Node tier: one decision."""
REJECTED = "core/retired-flat-request-refused-in-v1"
"""Allocates nothing."""
JOB = "core/job-separate-and-shared-claims"
"""Ten pods, each with a claim of its own."""
PROFILES = load_profiles()
IMPLEMENTATION = Implementation(
    organization="Example", project="driver", url="https://example.com/driver", version="1.2.3"
)


def genuine(path: Path) -> list[PlannedScenario]:
    """Write the result file of a compared run; returns the scenarios, as the suite ships them."""
    scenarios = [item for item in select([]) if item.id in (WAITS, SHARED, REJECTED, JOB)]
    options = TargetOptions(target="reference", record=True)
    with open_reference(options) as reference:
        comparer = Comparer(run_suite(scenarios, Setup("r1", reference), ()).finished)
    with (
        open_reference(options) as opened,
        ResultFile(path, lambda: comparer.comparison().to_json()) as file,
    ):
        run_suite(scenarios, Setup("r1", opened), [comparer, file], options={"compare": True})
    return [planned(item) for item in scenarios]


def run_reference(scenarios: list[LoadedScenario], path: Path) -> list[PlannedScenario]:
    """Write the result file of a run that records decisions and has nobody judge them."""
    with (
        open_reference(TargetOptions(target="reference", record=True)) as opened,
        ResultFile(path) as file,
    ):
        run_suite(scenarios, Setup("r1", opened), [file])
    return [planned(item) for item in scenarios]


class Forgery:
    """Genuine evidence, to be changed, with a report that fits it.

    Attributes:
        records: the lines of the result file; change them.
    """

    def __init__(self, source: Path, folder: Path, catalogue: list[PlannedScenario]) -> None:
        self.records: Records = [json.loads(line) for line in source.read_text().splitlines()]
        self.results = folder / "results.ndjson"
        self.report = folder / "report.yaml"
        self.catalogue = catalogue

    @property
    def header(self) -> dict[str, Any]:
        return self.records[0]

    @property
    def footer(self) -> dict[str, Any]:
        return self.records[-1]

    @property
    def scenarios(self) -> Records:
        return [record for record in self.records if record["record"] == "scenario"]

    @property
    def comparison(self) -> dict[str, Any]:
        [found] = [item["comparison"] for item in self.records if item["record"] == "comparison"]
        return dict(found)

    def scenario(self, name: str) -> dict[str, Any]:
        [found] = [record for record in self.scenarios if record["id"] == name]
        return found

    def compared(self, name: str) -> dict[str, Any]:
        [found] = [item for item in self.comparison["scenarios"] if item["id"] == name]
        return dict(found)

    def line(self, name: str) -> int:
        return self.records.index(self.scenario(name)) + 1

    def forget_decisions(self, name: str, kept: Callable[[int], bool] = lambda _: False) -> None:
        """Leave decisions out, and out of the comparison's counts."""
        record = self.scenario(name)
        before = len(record["decisions"])
        record["decisions"] = [d for i, d in enumerate(record["decisions"]) if kept(i)]
        left = len(record["decisions"])
        for item in self.records:
            if item["record"] == "comparison":
                item["comparison"]["counts"]["identical"] -= before - left
                for one in item["comparison"]["scenarios"]:
                    if one["id"] == name:
                        one["counts"]["identical"] = left
                        one["verdict"] = "identical" if left else None

    def write(self, edit: Callable[[str], str] = lambda text: text) -> None:
        """The file with every digest and count computed again, and the report that it gives."""
        records = copy.deepcopy(self.records)
        body = edit("".join(json.dumps(record) + "\n" for record in records[:-1]))
        footer = records[-1]
        footer["planned"] = len(records[0]["planned"])
        footer["digest"] = f"sha256:{hashlib.sha256(body.encode()).hexdigest()}"
        counts = dict.fromkeys(footer["counts"], 0)
        for record in self.scenarios:
            counts[record["outcome"]] += 1
        counts["lost"] = footer["planned"] - len(self.scenarios)
        footer["counts"] = counts
        self.results.write_text(body + json.dumps(footer) + "\n")

    def claim(self) -> str:
        """Write the report that believes the file; returns what the core profile comes to."""
        report = told(
            load_results(self.results),
            IMPLEMENTATION,
            PROFILES.named([CORE]),
            self.catalogue,
        )
        self.report.write_text(report.to_yaml())
        return str(report.profiles[0].result)

    def verify(self) -> Verification:
        return verify(self.report, self.results, PROFILES, self.catalogue)
