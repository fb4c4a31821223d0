"""Events of a whole run: its header, its end, and of which runs it was put together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import Field

from conformance.results.events.comparison import Seconds, recorded
from conformance.results.events.scenario import PlannedScenario
from conformance.results.limits import MAX_SHARDS
from conformance.seam.values import SCHEDULER_VERSION
from kube.base.text import counted

SECOND_CLUSTER = "secondCluster"
"""Option of a header: ids of the scenarios that ran on a second cluster."""

ShardNumber = Annotated[int, Field(ge=1, le=MAX_SHARDS)]


@recorded
@dataclass(frozen=True, slots=True)
class ShardPlan:
    """Which shard of a plan a run is.

    Attributes:
        index: from 1.
        count: number of shards.
        others: what the other shards run, so that none can be lost unnoticed.
    """

    index: ShardNumber
    count: ShardNumber
    others: tuple[PlannedScenario, ...]


@recorded
@dataclass(frozen=True, slots=True)
class ResumedPart:
    """A run that was interrupted or killed, and what the run that resumed it keeps of it.

    Attributes:
        run: its id.
        digest: ``sha256:`` of the result file that it left.
        scenarios: sorted ids of those that it ended, and that were not run again.
        seconds: how long it ran, until its last result if it was killed.
        left: what it could not remove, and was gone when the next run began.
    """

    run: str
    digest: str
    scenarios: tuple[str, ...]
    seconds: Seconds
    left: tuple[str, ...] = ()


@recorded
@dataclass(frozen=True, slots=True)
class MergedPart:
    """The run of one shard in a merged result.

    Attributes:
        index: the shard's, from 1.
        run: its id.
        digest: ``sha256:`` of what its result file says of its scenarios, so that it can be
            worked out from the joined file (``resultfile.write.results_digest``).
        scenarios: sorted ids of those that it was to run.
        resumed: as in the header of its result file.
    """

    index: ShardNumber
    run: str
    digest: str
    scenarios: tuple[str, ...]
    resumed: tuple[ResumedPart, ...] = ()


@recorded
@dataclass(frozen=True, slots=True)
class Merged:
    """What a merged result is made of; a shard without a part is missing.

    Attributes:
        count: number of shards of the plan.
        parts: in the order of their indexes.
    """

    count: ShardNumber
    parts: tuple[MergedPart, ...]

    @property
    def missing(self) -> tuple[int, ...]:
        """The indexes of the shards that are missing."""
        present_indexes = {shard.index for shard in self.parts}
        return tuple(index for index in range(1, self.count + 1) if index not in present_indexes)


@recorded
@dataclass(frozen=True, slots=True)
class RunStarted:
    """The header: what was planned, against what.

    Attributes:
        simulated: what is simulated, in words; empty where nothing is.
        versions: component -> version.
        feature_gates: the gates of the target that are known to be on or off.
        driver_profile: as a document, without credentials; None without one.
        driver_profile_digest: ``sha256:`` of its canonical JSON.
        image: of scenario pods.
        compared: whether each scenario is compared with the reference.
        options: what else the user asked for: target, selection, simulated machine, workers, ...
        time_factor: by what the time limits were multiplied.
        shard: None where the run is its whole plan.
        merged: None unless it is the result of several shards.
        resumed: the runs that this one resumed, oldest first; it then started when the first did.
    """

    run: str
    target: str
    planned: tuple[PlannedScenario, ...]
    kubernetes_version: str
    driver: str | None
    simulated: tuple[str, ...]
    versions: Mapping[str, str]
    suite_version: str
    scenario_set_digest: str
    started_at: str
    feature_gates: Mapping[str, bool] = field(default_factory=dict)
    driver_profile: Mapping[str, Any] | None = None
    driver_profile_digest: str | None = None
    image: str = ""
    compared: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)
    time_factor: float = 1.0
    shard: ShardPlan | None = None
    merged: Merged | None = None
    resumed: tuple[ResumedPart, ...] = ()

    @property
    def scheduler_version(self) -> str:
        """The Kubernetes version of the scheduler; empty where it is that of the API server."""
        return self.versions.get(SCHEDULER_VERSION, "")

    @property
    def resumption(self) -> str:
        """How often and after which runs it was resumed, in words; empty if never."""
        if not self.resumed:
            return ""
        scenario_count = sum(len(earlier_run.scenarios) for earlier_run in self.resumed)
        runs = ", ".join(earlier_run.run for earlier_run in self.resumed)
        times = "once" if len(self.resumed) == 1 else f"{len(self.resumed)} times"
        return f"{times}, after {runs}; {counted(scenario_count, 'scenario')} ended before"

    @property
    def joined_runs(self) -> tuple[str, ...]:
        """Ids of the runs whose results were joined in this one; empty for a run that is one.

        Runs that were resumed come before the run that resumed them.
        """
        shards = self.merged.parts if self.merged else ()
        earlier = [resumed_run.run for resumed_run in self.resumed]
        runs = [
            run
            for shard in shards
            for run in (*(resumed_run.run for resumed_run in shard.resumed), shard.run)
        ]
        return (*earlier, *runs, *([self.run] if earlier else []))

    @property
    def whole_plan(self) -> tuple[PlannedScenario, ...]:
        """The plan, with what other shards run."""
        return (*self.planned, *(self.shard.others if self.shard else ()))

    @property
    def driver_profile_name(self) -> str:
        """``metadata.name`` of the driver profile, ``?`` if it has none."""
        metadata = (self.driver_profile or {}).get("metadata")
        name = metadata.get("name") if isinstance(metadata, Mapping) else None
        return name if isinstance(name, str) else "?"


@dataclass(frozen=True, slots=True)
class RunStopping:
    """The run ends early: no more scenarios start, those that run clean up.

    Attributes:
        reason: ``interrupted`` (by the user), or which reporter failed and why.
        running: ids of the scenarios that are waited for.
    """

    reason: str
    running: tuple[str, ...] = ()


@recorded
@dataclass(frozen=True, slots=True)
class RunFinished:
    """The footer: a result file without it was cut off.

    Attributes:
        left: what the run made and could not remove.
        terminating: empty namespaces that the cluster was still removing.
        memory: how many bytes of physical memory ``suite`` and ``cluster`` had at most; without
            ``cluster`` where its programs are not on this machine, and empty in older results.
    """

    run: str
    counts: Mapping[str, int]
    finished_at: str
    seconds: Seconds
    interrupted: bool
    left: tuple[str, ...]
    terminating: tuple[str, ...] = ()
    memory: Mapping[str, int] = field(default_factory=dict)
