"""The lines of a result file: one model for each, to and from the engine's events.

A result file is JSON, one document to a line (NDJSON), so that it can be written while the run
goes on and a crash leaves what had run by then: a ``header`` line, a ``scenario`` line for each
scenario that ended, a ``comparison`` line where a reference was asked, and a ``footer`` with counts
and the digest of all lines before it. :func:`result_schema` is the published schema of one line.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter
from pydantic.alias_generators import to_camel

from conformance.engine.events import (
    Outcome,
    PlannedScenario,
    RunFinished,
    RunStarted,
    ScenarioFinished,
    StepFinished,
)

API_VERSION: Literal["dra-conformance/v1"] = "dra-conformance/v1"
Json = dict[str, Any]
Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False, description="seconds of wall time")]


class Record(BaseModel):
    """Unknown fields are errors, names are camelCase in the file, values do not change."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, alias_generator=to_camel, populate_by_name=True
    )

    def to_json(self) -> Json:
        """The record as it stands in the file (tuples for lists, enumerations for their text)."""
        return self.model_dump(by_alias=True)


class PlannedRecord(Record):
    """One planned scenario, as the header lists it."""

    id: str
    name: str
    summary: str
    level: str
    feature: str
    tier: str
    references: tuple[str, ...]
    file: str = Field(description="path below the scenario root")
    line: int
    digest: str = Field(description="sha256 of the scenario's canonical JSON")

    @classmethod
    def of(cls, planned: PlannedScenario, file: str | None = None) -> PlannedRecord:
        """The record of a planned scenario; ``file`` replaces its path."""
        names = [name for name in cls.model_fields if name != "file"]
        fields = {name: getattr(planned, name) for name in names}
        return cls(file=planned.file if file is None else file, **fields)

    def to_event(self) -> PlannedScenario:
        """The value that this record was made of."""
        return PlannedScenario(**{name: getattr(self, name) for name in type(self).model_fields})


class HeaderRecord(Record):
    """The first line: what was planned, against what."""

    record: Literal["header"] = "header"
    api_version: Literal["dra-conformance/v1"] = API_VERSION
    kind: Literal["RunResult"] = "RunResult"
    run: str
    target: str
    kubernetes_version: str
    driver: str | None
    simulated: tuple[str, ...]
    versions: dict[str, str]
    suite_version: str
    scenario_set_digest: str
    started_at: str
    options: Json
    planned: tuple[PlannedRecord, ...]

    def to_event(self) -> RunStarted:
        """The event that this record was made of."""
        names = set(type(self).model_fields) - {"record", "api_version", "kind", "planned"}
        return RunStarted(
            planned=tuple(item.to_event() for item in self.planned),
            **{name: getattr(self, name) for name in names},
        )


class StepRecord(Record):
    """One step of a scenario, and what was observed in it."""

    index: int = Field(ge=0)
    title: str
    outcome: Outcome
    message: str
    seconds: Seconds
    observed: tuple[Json, ...] = ()


class ScenarioRecord(Record):
    """How one scenario ended, with the evidence: steps, decisions, diagnostics."""

    record: Literal["scenario"] = "scenario"
    id: str
    outcome: Outcome
    message: str
    where: str = Field(description="file:line of the step that decided")
    cleanup: Outcome
    left: tuple[str, ...] = Field(description="what the cleanup could not remove")
    seconds: Seconds
    steps: tuple[StepRecord, ...]
    decisions: tuple[Json, ...] = Field(description="allocations, each with its snapshot")
    undecided: tuple[Json, ...] = Field(description="snapshots of pods that stayed pending")
    diagnostics: dict[str, str] = Field(default_factory=dict, description="name -> text")

    @classmethod
    def of(
        cls, finished: ScenarioFinished, diagnostics: Mapping[str, str] | None = None
    ) -> ScenarioRecord:
        """The record of a scenario that ended; ``diagnostics``: name -> text."""
        return cls(
            id=finished.scenario.id,
            outcome=finished.outcome,
            message=finished.message,
            where=finished.where,
            cleanup=finished.cleanup,
            left=finished.left,
            seconds=_seconds(finished.seconds),
            steps=tuple(
                StepRecord(
                    index=step.index,
                    title=step.title,
                    outcome=step.outcome,
                    message=step.message,
                    seconds=_seconds(step.seconds),
                    observed=tuple(dict(item) for item in step.observed),
                )
                for step in finished.steps
            ),
            decisions=tuple(dict(item) for item in finished.decisions),
            undecided=tuple(dict(item) for item in finished.undecided),
            diagnostics=dict(diagnostics or {}),
        )

    def to_event(self, scenario: PlannedScenario) -> ScenarioFinished:
        """The event that this record was made of."""
        steps = tuple(
            StepFinished(
                scenario=self.id,
                **{name: getattr(step, name) for name in type(step).model_fields},
            )
            for step in self.steps
        )
        names = set(type(self).model_fields) - {"record", "id", "steps", "diagnostics"}
        return ScenarioFinished(
            scenario=scenario, steps=steps, **{name: getattr(self, name) for name in names}
        )


class ComparisonRecord(Record):
    """What the comparison with the reference came to (``Comparison.to_json``)."""

    record: Literal["comparison"] = "comparison"
    comparison: Json


class FooterRecord(Record):
    """The last line: without it the file was cut off."""

    record: Literal["footer"] = "footer"
    run: str
    finished_at: str
    seconds: Seconds
    interrupted: bool
    left: tuple[str, ...]
    terminating: tuple[str, ...] = Field(
        default=(), description="empty namespaces that the cluster itself was still removing"
    )
    planned: int = Field(ge=0)
    counts: dict[Outcome, int] = Field(description="outcome -> scenarios; lost ones included")
    digest: str = Field(description="sha256: of every byte before this line")

    def to_event(self) -> RunFinished:
        """The event that this record was made of."""
        return RunFinished(
            run=self.run,
            counts={str(outcome): number for outcome, number in self.counts.items()},
            finished_at=self.finished_at,
            seconds=self.seconds,
            interrupted=self.interrupted,
            left=self.left,
            terminating=self.terminating,
        )


Line = Annotated[
    HeaderRecord | ScenarioRecord | ComparisonRecord | FooterRecord, Field(discriminator="record")
]
LINE: TypeAdapter[HeaderRecord | ScenarioRecord | ComparisonRecord | FooterRecord] = TypeAdapter(
    Line
)


def result_schema() -> Json:
    """JSON Schema (2020-12) of one line of a result file."""
    schema = LINE.json_schema(by_alias=True)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "One line of a dra-conformance result file",
        **schema,
    }


def _seconds(value: float) -> float:
    """Microseconds are enough, and a clock that was set back is no negative duration."""
    return max(0.0, round(value, 6))
