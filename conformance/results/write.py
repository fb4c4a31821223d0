"""The result file of a run: the engine's own events as JSON lines, written as the run goes.

A result file is NDJSON, one document to a line. Each line is one event with the name of its kind
(``record``): the header, then for each scenario its diagnostics, what the comparison says and how
it ended, and a footer with counts and the digest of all lines before it. Each is on its way to the
disk before the next event is handled, so that after a kill -9 the file still says what had run, and
the missing footer says that it is not whole. ``load_results`` reads it again.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

from pydantic import TypeAdapter

from conformance.digest import document_digest
from conformance.results.events.comparison import ScenarioCompared
from conformance.results.events.dispatch import Event
from conformance.results.events.result import RunResult, by_outcome, retold
from conformance.results.events.run import RunFinished, RunStarted
from conformance.results.events.scenario import Diagnostics, PlannedScenario, ScenarioFinished
from conformance.scenario.base import API_VERSION
from kube.base.errors import UsageError
from kube.base.redaction import redact_json
from kube.base.text import public_path, public_text

FILE_NAME = "results.ndjson"  # The name of the file in a folder of reports.

RESUMING = "results.resuming.ndjson"
"""The file of a resumed run until it ends, when it replaces that of the earlier run."""

_LOCAL = re.compile(r"(?:(?<=\s)|(?<==)|^)[/~][^\s=]*/")
"""The folder of an absolute path in an option, or in one of its words."""


class ResultFile:
    """A reporter that writes the result file; UsageError if it cannot, when the run starts.

    An older file is replaced. A run that goes on with an earlier one is written beside it, and
    replaces it at its end, so that whenever it is killed one of the two has all that had a result.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: IO[bytes] | None = None
        self._digest = hashlib.sha256()
        self._started: RunStarted | None = None
        self._finished: list[ScenarioFinished] = []
        self._place = path

    def __str__(self) -> str:
        return f"the result file {self.path}"

    def handle(self, event: Event) -> None:
        match event:
            case RunStarted():
                self._start(event)
            case Diagnostics() | ScenarioCompared():
                self._write(to_line(event))
            case ScenarioFinished():
                self._finished.append(event)
                self._write(to_line(_public(event)))
                self._keep()
            case RunFinished() if self._started is not None:
                self._finish(self._started, event)
            case _:
                pass

    def close(self) -> None:
        """Close the file as it is; without :class:`RunFinished` it has no footer."""
        file, self._file = self._file, None
        if file is not None:
            with suppress(OSError):  # A failed write was reported when it failed.
                file.close()

    def _start(self, event: RunStarted) -> None:
        try:
            if event.resumed:
                self._place = self.path.with_name(f"{RESUMING}.tmp")
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = self._place.open("wb")
        except OSError as error:
            raise UsageError(
                f"{self.path}: cannot be written: {error.strerror}; choose another place for the"
                " result file"
            ) from None
        self._started = event
        self._write(header_line(event))
        self._keep()

    def _keep(self) -> None:
        """Let the file be resumed from once it has all that is kept of earlier runs."""
        if self._started is None or not self._started.resumed:
            return
        if len(self._finished) == sum(len(part.scenarios) for part in self._started.resumed):
            self._move(self.path.with_name(RESUMING))

    def _move(self, place: Path) -> None:
        """Rename the file, open as it is."""
        if self._file is not None:
            os.fsync(self._file.fileno())
            self._place = self._place.replace(place)

    def _finish(self, started: RunStarted, event: RunFinished) -> None:
        if self._place != self.path:
            # Before the footer: a file that has one is not resumed, so it must be in its place.
            self._move(self.path)
        outcomes = by_outcome(started.planned, self._finished)
        counts = {str(outcome): len(ids) for outcome, ids in outcomes.items()}
        line = to_line(replace(event, counts=counts, seconds=round(event.seconds, 6)))
        self._write(line | {"digest": f"sha256:{self._digest.hexdigest()}"})
        if self._file is not None:
            os.fsync(self._file.fileno())
        self.close()

    def _write(self, line: Json) -> None:
        if self._file is None:
            return
        # ASCII: no reader stumbles over U+2028 or a surrogate. One line, whatever is in it.
        text = json.dumps(redact_json(line), ensure_ascii=True, allow_nan=False, sort_keys=False)
        data = text.encode("ascii") + b"\n"
        self._digest.update(data)
        try:
            self._file.write(data)
            self._file.flush()
        except OSError:
            self.close()
            raise


def header_line(event: RunStarted) -> Json:
    """The header's line without local folders, before redaction."""
    shard = event.shard
    if shard is not None:
        shard = replace(shard, others=public_files(shard.others))
    options = _without_folders(dict(sorted(event.options.items())))
    return to_line(
        replace(event, planned=public_files(event.planned), shard=shard, options=options)
    )


def public_files(planned: Sequence[PlannedScenario]) -> tuple[PlannedScenario, ...]:
    """The scenarios with their files named without local folders."""
    return tuple(replace(item, file=public_path(item.file, item.id)) for item in planned)


def _public(event: ScenarioFinished) -> ScenarioFinished:
    """The scenario without local folders, its times to the microsecond."""
    file, name = event.scenario.file, event.scenario.id
    return replace(
        event,
        where=public_text(event.where, file, name),
        message=public_text(event.message, file, name),
        seconds=round(event.seconds, 6),
        attempts=tuple(
            replace(
                item,
                where=public_text(item.where, file, name),
                message=public_text(item.message, file, name),
                seconds=round(item.seconds, 6),
            )
            for item in event.attempts
        ),
        steps=tuple(replace(step, seconds=round(step.seconds, 6)) for step in event.steps),
    )


def _without_folders(value: Any) -> Any:
    """Options without local folders: an absolute path says more of a machine than of a run."""
    if isinstance(value, Mapping):
        return {str(key): _without_folders(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_folders(item) for item in value]
    if isinstance(value, str | os.PathLike):
        return _LOCAL.sub("<path>/", os.fspath(value))
    return value


KIND = "RunResult"

Json = dict[str, Any]
Recorded = RunStarted | Diagnostics | ScenarioCompared | ScenarioFinished | RunFinished

_RECORDS: Mapping[type[Recorded], str] = {
    RunStarted: "header",
    Diagnostics: "diagnostics",
    ScenarioCompared: "compared",
    ScenarioFinished: "scenario",
    RunFinished: "footer",
}
ADAPTERS: Mapping[str, TypeAdapter[Recorded]] = {
    record: TypeAdapter(event) for event, record in _RECORDS.items()
}


_LATER = ("account", "explained")
"""Fields that a line has only where there is something in them."""


def to_line(event: Recorded) -> Json:
    """An event as a line of the file, in which a scenario is named by its id alone."""
    record = _RECORDS[type(event)]
    line: Json = {"record": record}
    if isinstance(event, RunStarted):
        line |= {"apiVersion": API_VERSION, "kind": KIND}
    line |= ADAPTERS[record].dump_python(event, by_alias=True)
    if isinstance(event, ScenarioFinished):
        line["scenario"] = event.scenario.id
        for step in line["steps"]:
            del step["scenario"]
    # Digests of files from before there were accounts must come out as they were.
    for field in _LATER:
        if field in line and not line[field]:
            del line[field]
    return line


def from_line(line: Json, planned: Mapping[str, PlannedScenario]) -> Recorded:
    """The event of a line without its digest; a header has no ``planned``. Raises ValueError."""
    fields = dict(line)
    record = fields.pop("record", None)
    if not isinstance(record, str) or record not in ADAPTERS:
        raise ValueError(f"$.record: is {record!r}, not one of {', '.join(ADAPTERS)}")
    if record == "header":
        fields.pop("apiVersion", None)
        if fields.pop("kind", None) != KIND:
            raise ValueError(f"$.kind: must be {KIND}")
    elif record != "footer":
        name = fields.get("scenario")
        if not isinstance(name, str):
            raise ValueError("$.scenario: must be the id of a scenario")
        if name not in planned:
            raise ValueError(f"$.scenario: scenario {name} was not planned")
        if record == "scenario":
            fields["scenario"] = planned[name]
            steps = fields.get("steps")
            if isinstance(steps, list):
                fields["steps"] = [
                    {**step, "scenario": name} if isinstance(step, dict) else step for step in steps
                ]
    # By its name in Python a field would be one that no other reader of the file knows.
    return ADAPTERS[record].validate_python(fields, by_alias=True, by_name=False)


def results_digest(result: RunResult, scenarios: Collection[str]) -> str:
    """The digest of all that is recorded of these scenarios (by id), in whatever order.

    It is that of the sorted digests of the lines, so that never more than a line is there as text.
    """
    lines = [
        document_digest(redact_json(to_line(event)))
        for event in retold(result)
        if (isinstance(event, Diagnostics | ScenarioCompared) and event.scenario in scenarios)
        or (isinstance(event, ScenarioFinished) and event.scenario.id in scenarios)
    ]
    return document_digest(sorted(lines))


def result_schema() -> Json:
    _, schema = TypeAdapter.json_schemas(
        [(name, "serialization", adapter) for name, adapter in ADAPTERS.items()], by_alias=True
    )
    definitions = schema["$defs"]
    for definition in definitions.values():
        if "description" in definition:
            definition["description"] = definition["description"].split("\n\n")[0]
    for event, record in _RECORDS.items():
        extra: Json = {"record": {"const": record}}
        if event is RunStarted:
            extra |= {"apiVersion": {"const": API_VERSION}, "kind": {"const": KIND}}
        if event is RunFinished:
            extra["digest"] = {"type": "string", "description": "of every byte before this line"}
        definition = definitions[event.__name__]
        definition["properties"] = extra | definition["properties"]
        definition["required"] = [*extra, *definition.get("required", ())]
    definitions["ScenarioFinished"]["properties"]["scenario"] = {"type": "string"}
    step = definitions["StepFinished"]
    del step["properties"]["scenario"]
    step["required"].remove("scenario")
    return {
        "oneOf": [{"$ref": f"#/$defs/{event.__name__}"} for event in _RECORDS],
        "$defs": definitions,
    }
