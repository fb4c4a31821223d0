"""Check the ``${...}`` and the CEL expressions of a scenario, without a target.

In the allocation tier all variables are known from the scenario. In the others the driver profile
defines most: these are compared with it when the target is known, still before anything runs. CEL
must compile for the newest Kubernetes with every feature.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from conformance.scenario.documents.validate import hint, nearest
from conformance.scenario.documents.yamlfile import PathTuple, Problem, walk
from conformance.scenario.driver.variables import (
    CAPTURED,
    DEVICE_NAMES,
    FIXED_NAMES,
    OTHER,
    UNCLOSED,
    VARIABLE,
    split,
)
from conformance.scenario.model import Requires, Scenario
from conformance.seam.abilities import Ability
from reference_allocator.api import schema

PROFILE_GROUPS = ("attribute", "capacity", "class", "config", "selector")
_OWN_GROUPS = ("name", "node")
_NEEDED: Final[dict[str, Callable[[Requires], tuple[str, ...]]]] = {
    "attribute": lambda requires: requires.attributes,
    "capacity": lambda requires: requires.capacity,
    "config": lambda requires: requires.config,
}
"""Group -> what a scenario says that it needs of it: not every profile has all."""

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?")


def check_variables(scenario: Scenario, data: Any) -> Iterator[Problem]:
    """Problems of every variable in a document, and of the names of its hollow nodes."""
    for index, node in enumerate(scenario.spec.nodes):
        path: PathTuple = ("spec", "nodes", index)
        if not _LABEL.fullmatch(node):
            yield Problem(path, f"{node!r} is not a valid name: {_RULE}")
        if node in scenario.spec.nodes[:index]:
            yield Problem(path, f"{node!r} is given twice")
    for place, text in texts(data):
        if UNCLOSED.search(text):
            yield Problem(place, f"a variable is not closed: write ${{NAME}} (found {text!r:.80})")
        for match in VARIABLE.finditer(text):
            yield from _variable(match[1], place, scenario)


_RULE = "use up to 40 of a-z, 0-9 and '-', with a letter or digit at both ends"


def texts(data: Any) -> Iterator[tuple[PathTuple, str]]:
    """Every text of a document with its path; keys, too."""
    for path, value in walk(data):
        for text in (*path[-1:], value):
            if isinstance(text, str):
                yield path, text


def _variable(name: str, path: PathTuple, scenario: Scenario) -> Iterator[Problem]:
    spec = scenario.spec
    group, _, rest = name.partition(".")
    given = f"${{{name}}}"
    synthetic = spec.tier == "allocation"
    if name in FIXED_NAMES:
        return
    if group == CAPTURED:
        yield from _captured(name, path, scenario)
        return
    if group == OTHER and (rest == "driver" or rest.startswith("class.")):
        if not spec.requires.other_devices:
            needs = "requires: {otherDevices: 1}"
            yield Problem(path, f"{given} needs {needs}, because there may be no other driver")
        return
    if name in DEVICE_NAMES and not synthetic:
        if group == "worker" and not spec.requires.devices_on_one_node:
            needs = "requires: {devicesOnOneNode: 1}"
            yield Problem(path, f"{given} needs {needs}, because there may be no such node")
        if rest in ("device", "selector") and spec.requires.other_devices:
            yield Problem(path, f"{given}: not with otherDevices, which may be on another node")
        if (
            rest in ("device", "selector")
            and Ability.DISTINCT_DEVICES not in spec.requires.abilities
        ):
            needs = "requires: {abilities: [distinct-devices]}"
            yield Problem(path, f"{given} needs {needs}, because all devices may be alike")
        return
    if name not in DEVICE_NAMES and (not rest or group not in (*PROFILE_GROUPS, *_OWN_GROUPS)):
        yield Problem(path, f"unknown variable {given}; {_meant(name)}")
    elif group == "node" and rest not in spec.nodes:
        if not synthetic:
            yield Problem(
                path, f"{given}: hollow nodes are for the allocation tier; this is tier {spec.tier}"
            )
        else:
            says = hint(rest, spec.nodes, "none; add it to spec.nodes")
            yield Problem(path, f"unknown variable {given}: spec.nodes has no {rest}; {says}")
    elif group in _OWN_GROUPS or (group == "class" and synthetic):
        if not _LABEL.fullmatch(rest):
            yield Problem(path, f"{given}: {rest!r} is not a valid name: {_RULE}")
    elif synthetic:
        yield Problem(
            path,
            f"unknown variable {given}: in the allocation tier no driver profile is used; write the"
            " value itself",
        )
    elif group in _NEEDED and rest not in (needed := _NEEDED[group](spec.requires)):
        says = hint(rest, needed, "none")
        field = "attributes" if group == "attribute" else group
        yield Problem(
            path,
            f"{given} needs requires: {{{field}: [{rest}]}}, because not every driver profile has"
            f" it (spec.requires.{field}: {says})",
        )


def _captured(name: str, path: PathTuple, scenario: Scenario) -> Iterator[Problem]:
    """Problems of a captured value: an earlier step must capture it, and it is not for CEL."""
    _, owner, rest = split(name)
    if path[:2] != ("spec", "steps"):
        yield Problem(path, f"${{{name}}}: what a step captures is for the steps after it")
        return
    if "cel" in path[-2:] and "apply" not in path:
        yield Problem(path, f"${{{name}}}: CEL reads it by its name; write {owner}{rest}")
    earlier = scenario.spec.steps[: int(path[2])]
    known = {key: item for step in earlier for key, item in (step.capture or {}).items()}
    if owner not in known:
        yield Problem(
            path, f"${{{name}}}: no earlier step captures {owner!r}; {hint(owner, known)}"
        )
    elif not rest:
        yield Problem(path, f"${{{name}}}: say which value, like ${{{name}.metadata.name}}")
    elif root := schema.root_of(known[owner].kind, known[owner].api_version):
        yield from _object_fields(f"object{rest}", root, path)


def _meant(name: str) -> str:
    """What an unknown variable was probably meant to be."""
    groups = (*PROFILE_GROUPS, *_OWN_GROUPS)
    group, _, rest = name.partition(".")
    of_other = (f"{OTHER}.driver", f"{OTHER}.class.gpu")
    fixed = (*FIXED_NAMES, *DEVICE_NAMES, *of_other)
    near = nearest(name, fixed if group == OTHER else fixed[: -len(of_other)])
    if near is None and (like := nearest(group, groups)) is not None:
        near = f"{like}.{rest or 'NAME'}"
    near = near or nearest(name, of_other)
    if near is not None:
        return f"did you mean ${{{near}}}?"
    return f"known are {', '.join(sorted([*fixed, *(f'{item}.NAME' for item in groups)]))}"


_PLACEHOLDER = "x"  # Is part of a string, of a key or of a name, wherever a variable may be.
_STRING = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"")
_CHAIN = re.compile(r"(?<![\w.])(has\()?object((?:\.[A-Za-z_]\w*|\[\d+\])+)")
_ERROR = re.compile(r"ERROR: <input>:(\d+):(\d+): (.*)")
_PART = re.compile(r"\.([A-Za-z_]\w*)|\[\d+\]")


def condition_problems(
    cel: Sequence[str], variables: Mapping[str, str | None], path: PathTuple
) -> Iterator[Problem]:
    """Problems of an expectation's conditions; ``object`` is checked by its type, if known."""
    root = variables.get("object")
    for index, expression in enumerate(cel):
        place = (*path, index) if len(cel) > 1 else path
        complete = _complete(expression)
        if complete is None:
            continue
        # The compiler is only loaded where there are expressions.
        from reference_allocator.cel import DYN, CelCompileError, compile_expression

        try:
            compile_expression(complete, dict.fromkeys(variables, DYN))
        except CelCompileError as error:
            yield _problem(place, str(error))
        else:
            if root is not None:
                yield from _object_fields(complete, root, place)


def _object_fields(expression: str, root: str, path: PathTuple) -> Iterator[Problem]:
    """Fields that are read from ``object`` and that its kind does not have."""
    for chain in _CHAIN.finditer(_STRING.sub("''", expression)):
        shape = root
        for part in _PART.finditer(chain[2]):
            field = part[1]
            if field is None and shape.startswith(schema.LIST):
                shape = shape[len(schema.LIST) :]
            elif field is None or shape not in schema.types():
                break  # a function, or data without known fields
            elif field not in schema.types()[shape]:
                known = schema.types()[shape]
                # That a field of another version is not there can be what is asked.
                if not chain[1] or nearest(field, known) is not None:
                    text = f"object{chain[2]}: there is no field {field!r}; {hint(field, known)}"
                    yield Problem(path, text)
                break
            else:
                shape = schema.types()[shape][field]


def selector_problems(value: Any, path: PathTuple) -> Iterator[Problem]:
    """Problems of ``cel: {expression: ...}`` in classes and requests, wherever in a manifest."""
    for place, expression in walk(value, path):
        if place[-2:] == ("cel", "expression") and isinstance(expression, str):
            yield from expression_problems(expression, place)


def expression_problems(expression: str, path: PathTuple) -> Iterator[Problem]:
    """Problems of a selector's expression, over ``device``."""
    from reference_allocator.cel import CelFeatures, validate_new_expression

    complete = _complete(expression)
    if complete is not None:
        features = CelFeatures(consumable_capacity=True, list_type_attributes=True, stored=False)
        for problem in validate_new_expression(complete, features):
            yield _problem(path, problem.message)


def _complete(expression: str) -> str | None:
    """The expression with something for its variables; None if one may be any expression."""
    whole = ("selector.", "worker.selector")
    if any(match[1].startswith(whole) for match in VARIABLE.finditer(expression)):
        return None
    return VARIABLE.sub(_PLACEHOLDER, expression)


def _problem(path: PathTuple, message: str) -> Problem:
    error = _ERROR.search(message)
    if error is None:
        return Problem(path, f"is not valid CEL: {message.splitlines()[0]}")
    line, column, text = error.groups()
    return Problem(path, f"is not valid CEL: {text} (line {line}, column {column} of it)")
