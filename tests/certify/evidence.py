"""Genuine evidence to forge: shipped scenarios on the reference, compared, as a run writes it."""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from conformance.certify.build import build_believed_report
from conformance.certify.driverchecked import DriverChecked
from conformance.certify.profiles import Profile, load_profiles
from conformance.certify.values import Implementation
from conformance.certify.verify import Verification, verify_report
from conformance.compare.compare_scenarios import compare_with
from conformance.engine.setup import Setup, planned
from conformance.engine.suite import run_suite
from conformance.results.events.scenario import PlannedScenario
from conformance.results.read import load_results
from conformance.results.write import ResultFile
from conformance.scenario.loader import LoadedScenario
from conformance.scenario.selection import select
from conformance.targets.opening.options import TargetOptions
from conformance.targets.opening.target import open_reference

Records = list[dict[str, Any]]
WAITS = "core/all-mode-waits-for-device-in-use"
"""Allocation tier: three decisions, one pod that is seen to wait."""
SHARED = "core/generated-claim-containers-share-device"
"""Node tier: one decision."""
REJECTED = "core/pod-claim-with-both-sources-rejected"
"""Allocates nothing."""
JOB = "core/job-separate-and-shared-claims"
"""Ten pods, each with a claim of its own."""
CORE = "core"
_SHIPPED = load_profiles()
PROFILES = _SHIPPED.model_copy(
    update={
        "profiles": (
            Profile(name=CORE, summary="All of the core, without driver-check.", levels=("core",)),
            *_SHIPPED.profiles,
        )
    }
)
"""Those of the suite, and one with scenarios of both tiers."""
IMPLEMENTATION = Implementation(
    organization="Example", project="driver", url="https://example.com/driver", version="1.2.3"
)


def genuine(path: Path) -> list[PlannedScenario]:
    """Write the result file of a compared run; returns the scenarios, as the suite ships them."""
    scenarios = [item for item in select() if item.id in (WAITS, SHARED, REJECTED, JOB)]
    options = TargetOptions(target="reference", record=True)
    with open_reference(options) as reference:
        comparer = compare_with(run_suite(scenarios, Setup("r1", reference), ()).finished)
    with open_reference(options) as opened, closing(ResultFile(path)) as file:
        run_suite(scenarios, Setup("r1", opened, comparer), [file])
    return [planned(item) for item in scenarios]


def run_reference(scenarios: list[LoadedScenario], path: Path) -> list[PlannedScenario]:
    """Write the result file of a run that records decisions and has nobody judge them."""
    options = TargetOptions(target="reference", record=True)
    with open_reference(options) as opened, closing(ResultFile(path)) as file:
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

    def scenario(self, name: str) -> dict[str, Any]:
        [found] = [record for record in self.scenarios if record["scenario"] == name]
        return found

    def compared(self, name: str) -> dict[str, Any]:
        compared = (record for record in self.records if record["record"] == "compared")
        [found] = [record for record in compared if record["scenario"] == name]
        return found

    def line(self, name: str) -> int:
        return self.records.index(self.scenario(name)) + 1

    def forget_decisions(self, name: str, kept: Callable[[int], bool] = lambda _: False) -> None:
        """Leave decisions out, and out of what the comparison says."""
        for record, field in (
            (self.scenario(name), "decisions"),
            (self.compared(name), "judgements"),
        ):
            record[field] = [item for index, item in enumerate(record[field]) if kept(index)]

    def write(self, edit: Callable[[str], str] = lambda text: text) -> None:
        """The file with every digest and count computed again, and the report that it gives."""
        records = copy.deepcopy(self.records)
        body = edit("".join(json.dumps(record) + "\n" for record in records[:-1]))
        footer = records[-1]
        footer["digest"] = f"sha256:{hashlib.sha256(body.encode()).hexdigest()}"
        counts = dict.fromkeys(footer["counts"], 0)
        for record in self.scenarios:
            counts[record["outcome"]] += 1
        counts["lost"] = len(records[0]["planned"]) - len(self.scenarios)
        footer["counts"] = counts
        self.results.write_text(body + json.dumps(footer) + "\n")

    def claim(self, checked: DriverChecked | None = None) -> str:
        """Write the report that believes the file; returns what the core profile comes to."""
        result, core = load_results(self.results), PROFILES.select([CORE])
        report = build_believed_report(result, IMPLEMENTATION, core, self.catalogue, checked)
        self.report.write_text(report.to_yaml())
        return str(report.profiles[0].result)

    def verify(self, checked: Path | None = None) -> Verification:
        return verify_report(self.report, self.results, PROFILES, self.catalogue, checked)
