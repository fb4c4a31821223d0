"""Evaluate expectations on objects: there, as described, so many, or gone."""

from __future__ import annotations

from typing import Any

from conformance.engine.context import Context, Seen
from conformance.engine.matching import differences
from conformance.errors import UsageError
from conformance.scenario.expectations import (
    EventExpectation,
    NoneExpectation,
    ObjectExpectation,
    ObjectSelector,
    ObjectsExpectation,
)
from reference_allocator.cel import DYN, CelCompileError, CelRuntimeError, compile_expression


def check_object(expectation: ObjectExpectation, context: Context) -> Seen:
    """Exactly one object is found and fits ``match`` and ``cel``."""
    what = describe_selector(expectation.object)
    observed: dict[str, Any] = {"object": context.variables.canonical(what)}
    found = context.find(expectation.object)
    observed["found"] = len(found)
    if len(found) != 1:
        names = ", ".join(obj["metadata"]["name"] for obj in found) or "none"
        return Seen(False, f"{what}: {len(found)} found ({names})", observed)
    wrong = list(differences(expectation.match or {}, found[0]))
    wrong += _false(expectation.cel, {"object": found[0]})
    observed["fits"] = not wrong
    return Seen(not wrong, f"{what}: " + ("; ".join(wrong) or "as described"), observed)


def check_objects(expectation: ObjectsExpectation, context: Context) -> Seen:
    """As many objects as given are found, and CEL over all of them is true."""
    what = describe_selector(expectation.objects)
    found = context.find(expectation.objects)
    observed: dict[str, Any] = {"objects": context.variables.canonical(what), "found": len(found)}
    wrong = []
    if expectation.count is not None and len(found) != expectation.count:
        wrong.append(f"{len(found)} found")
    wrong += _false(expectation.cel, {"objects": found})
    observed["fits"] = not wrong
    return Seen(not wrong, f"{what}: " + ("; ".join(wrong) or "as described"), observed)


def check_none(expectation: NoneExpectation, context: Context) -> Seen:
    """No object is found."""
    what = describe_selector(expectation.none)
    found = context.find(expectation.none)
    names = ", ".join(_with_state(obj) for obj in found)
    observed = {"none": context.variables.canonical(what), "found": len(found)}
    return Seen(not found, f"{what}: {names or 'none'}", observed)


def check_event(expectation: EventExpectation, context: Context) -> Seen:
    """An event with that reason, about that object, and with that in its message."""
    wanted = expectation.event
    about = [
        event
        for event in context.scope.list("v1", "Event")
        if event.get("involvedObject", {}).get("kind") == wanted.kind
        and event.get("involvedObject", {}).get("name") == wanted.name
    ]
    fits = [
        event
        for event in about
        if event.get("reason") == wanted.reason
        and (wanted.message or "") in event.get("message", "")
    ]
    others = "; ".join(f"{event.get('reason')}: {event.get('message')}" for event in about)
    observed = {"event": wanted.reason, "about": wanted.kind, "found": bool(fits)}
    return Seen(bool(fits), f"events: {others or 'none'}", observed)


def describe_selector(selector: ObjectSelector) -> str:
    """A selector in words, for example ``ResourceClaim gpu of pod0``."""
    parts = [selector.kind]
    if selector.name:
        parts.append(selector.name)
    if selector.pod_claim:
        parts.append(f"for {selector.pod_claim}")
    if selector.owned_by:
        parts.append(f"of {selector.owned_by}")
    if selector.labels:
        parts.append("with " + ",".join(f"{key}={value}" for key, value in selector.labels.items()))
    if selector.api_version:
        parts.append(f"in {selector.api_version}")
    return " ".join(parts)


def expressions(cel: str | tuple[str, ...]) -> tuple[str, ...]:
    """CEL given as one text or as a list, as a list."""
    return (cel,) if isinstance(cel, str) else cel


def _false(cel: str | tuple[str, ...], variables: dict[str, Any]) -> list[str]:
    """One line for each expression that is not true of the variables."""
    wrong = []
    for expression in expressions(cel):
        try:
            program = compile_expression(expression, dict.fromkeys(variables, DYN))
        except CelCompileError as error:
            raise UsageError(f"cel: {expression!r}: {error}") from None
        try:
            value = program.evaluate(variables)
        except CelRuntimeError as error:
            wrong.append(f"{expression} is an error: {error}")
            continue
        if value is not True:
            wrong.append(f"{expression} is {str(value).lower()}")
    return wrong


def _with_state(obj: dict[str, Any]) -> str:
    meta = obj["metadata"]
    deleting = " (being deleted)" if meta.get("deletionTimestamp") else ""
    return f"{meta['name']}{deleting}"
