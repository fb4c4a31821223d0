"""The lines of a result file: the engine's own events, as JSON.

A result file is NDJSON, one document to a line, so that it can be written while the run goes on and
a crash leaves what had run by then. Each line is one event with the name of its kind (``record``):
the header, then for each scenario its diagnostics, what the comparison says and how it ended, and a
footer with counts and the digest of all lines before it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import TypeAdapter

from conformance.engine.events.comparison import ScenarioCompared
from conformance.engine.events.run import RunFinished, RunStarted
from conformance.engine.events.scenario import Diagnostics, PlannedScenario, ScenarioFinished
from conformance.scenario.base import API_VERSION

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
    return ADAPTERS[record].validate_python(fields)


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
