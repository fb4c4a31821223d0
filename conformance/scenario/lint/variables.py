"""Check the ``${...}`` and the CEL expressions of a scenario, without a target.

In the allocation tier all variables are known from the scenario. In the others the driver profile
defines most: these are compared with it when the target is known, still before anything runs. CEL
must compile for the newest Kubernetes with every feature.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from conformance.scenario.documents.validate import find_nearest, hint
from conformance.scenario.documents.yamlfile import PathTuple, Problem, walk
from conformance.scenario.driver.variables import (
    CAPTURED,
    DEVICE_NAMES,
    FIXED_NAMES,
    OTHER,
    UNCLOSED,
    VARIABLE,
    split_captured,
    substitute,
)
from conformance.scenario.model import Requires, Scenario
from conformance.seam.abilities import Ability
from reference_allocator.api import schema
from reference_allocator.gates import LATEST

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
    """Yield the problems of every variable in a document, and of the names of its hollow nodes."""
    for index, node in enumerate(scenario.spec.nodes):
        path: PathTuple = ("spec", "nodes", index)
        if not _LABEL.fullmatch(node):
            yield Problem(path, f"{node!r} is not a valid name: {_NAME_RULE}")
        if node in scenario.spec.nodes[:index]:
            yield Problem(path, f"{node!r} is given twice")
    for text_path, text in list_texts(data):
        if UNCLOSED.search(text):
            yield Problem(
                text_path, f"a variable is not closed: write ${{NAME}} (found {text!r:.80})"
            )
        for match in VARIABLE.finditer(text):
            yield from _check_variable(match[1], text_path, scenario)


_NAME_RULE = "use up to 40 of a-z, 0-9 and '-', with a letter or digit at both ends"


def list_texts(data: Any) -> Iterator[tuple[PathTuple, str]]:
    """Yield every text of a document with its path; keys, too."""
    for path, value in walk(data):
        for text in (*path[-1:], value):
            if isinstance(text, str):
                yield path, text


def _check_variable(name: str, path: PathTuple, scenario: Scenario) -> Iterator[Problem]:
    spec = scenario.spec
    group, _, suffix = name.partition(".")
    variable = f"${{{name}}}"
    synthetic = spec.tier == "allocation"
    if name in FIXED_NAMES:
        return
    if group == CAPTURED:
        yield from _check_captured(name, path, scenario)
        return
    if group == OTHER and (suffix == "driver" or suffix.startswith("class.")):
        if not spec.requires.other_devices:
            needs = "requires: {otherDevices: 1}"
            yield Problem(path, f"{variable} needs {needs}, because there may be no other driver")
        return
    if name in DEVICE_NAMES and not synthetic:
        if group == "worker" and not spec.requires.devices_on_one_node:
            needs = "requires: {devicesOnOneNode: 1}"
            yield Problem(path, f"{variable} needs {needs}, because there may be no such node")
        if suffix in ("device", "selector") and spec.requires.other_devices:
            yield Problem(path, f"{variable}: not with otherDevices, which may be on another node")
        if (
            suffix in ("device", "selector")
            and Ability.DISTINCT_DEVICES not in spec.requires.abilities
        ):
            needs = "requires: {abilities: [distinct-devices]}"
            yield Problem(path, f"{variable} needs {needs}, because all devices may be alike")
        return
    if name not in DEVICE_NAMES and (not suffix or group not in (*PROFILE_GROUPS, *_OWN_GROUPS)):
        yield Problem(path, f"unknown variable {variable}; {_suggest_variable(name)}")
    elif group == "node" and suffix not in spec.nodes:
        if not synthetic:
            yield Problem(
                path,
                f"{variable}: hollow nodes are for the allocation tier; this is tier {spec.tier}",
            )
        else:
            says = hint(suffix, spec.nodes, "none; add it to spec.nodes")
            yield Problem(path, f"unknown variable {variable}: spec.nodes has no {suffix}; {says}")
    elif group in _OWN_GROUPS or (group == "class" and synthetic):
        if not _LABEL.fullmatch(suffix):
            yield Problem(path, f"{variable}: {suffix!r} is not a valid name: {_NAME_RULE}")
    elif synthetic:
        yield Problem(
            path,
            f"unknown variable {variable}: in the allocation tier no driver profile is used;"
            " write the value itself",
        )
    elif group in _NEEDED and suffix not in (needed := _NEEDED[group](spec.requires)):
        says = hint(suffix, needed, "none")
        field = "attributes" if group == "attribute" else group
        yield Problem(
            path,
            f"{variable} needs requires: {{{field}: [{suffix}]}}, because not every driver profile"
            f" has it (spec.requires.{field}: {says})",
        )


def _check_captured(name: str, path: PathTuple, scenario: Scenario) -> Iterator[Problem]:
    """Yield problems of a captured value: an earlier step captures it, and it is not for CEL."""
    _, owner, remainder = split_captured(name)
    if path[:2] != ("spec", "steps"):
        yield Problem(path, f"${{{name}}}: what a step captures is for the steps after it")
        return
    if "cel" in path[-2:] and "apply" not in path:
        yield Problem(path, f"${{{name}}}: CEL reads it by its name; write {owner}{remainder}")
    earlier = scenario.spec.steps[: int(path[2])]
    selectors = {key: item for step in earlier for key, item in (step.capture or {}).items()}
    if owner not in selectors:
        yield Problem(
            path, f"${{{name}}}: no earlier step captures {owner!r}; {hint(owner, selectors)}"
        )
    elif not remainder:
        yield Problem(path, f"${{{name}}}: say which value, like ${{{name}.metadata.name}}")
    elif root := schema.root_of(selectors[owner].kind, selectors[owner].api_version):
        yield from _check_object_fields(f"object{remainder}", root, path)


def _suggest_variable(name: str) -> str:
    """Return what an unknown variable was probably meant to be."""
    groups = (*PROFILE_GROUPS, *_OWN_GROUPS)
    group, _, suffix = name.partition(".")
    of_other = (f"{OTHER}.driver", f"{OTHER}.class.gpu")
    fixed = (*FIXED_NAMES, *DEVICE_NAMES, *of_other)
    near = find_nearest(name, fixed if group == OTHER else fixed[: -len(of_other)])
    if near is None and (like := find_nearest(group, groups)) is not None:
        near = f"{like}.{suffix or 'NAME'}"
    near = near or find_nearest(name, of_other)
    if near is not None:
        return f"did you mean ${{{near}}}?"
    return f"known are {', '.join(sorted([*fixed, *(f'{item}.NAME' for item in groups)]))}"


_PLACEHOLDER = "x"  # Is part of a string, of a key or of a name, wherever a variable may be.
_STRING = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"")
_CHAIN = re.compile(r"(?<![\w.])(has\()?object((?:\.[A-Za-z_]\w*|\[\d+\])+)")
_ERROR = re.compile(r"ERROR: <input>:(\d+):(\d+): (.*)")
_STEP = re.compile(r"\.([A-Za-z_]\w*)|\[\d+\]")


def condition_problems(
    cel: Sequence[str], variables: Mapping[str, str | None], path: PathTuple
) -> Iterator[Problem]:
    """Yield problems of an expectation's CEL; ``object`` is checked by its type, if known."""
    root = variables.get("object")
    for index, expression in enumerate(cel):
        cel_path = (*path, index) if len(cel) > 1 else path
        complete = _fill_variables(expression)
        if complete is None:
            continue
        # The compiler is only loaded where there are expressions.
        from reference_allocator.cel import DYN, CelCompileError, compile_expression

        try:
            compile_expression(complete, dict.fromkeys(variables, DYN))
        except CelCompileError as error:
            yield _make_problem(cel_path, str(error))
        else:
            if root is not None:
                yield from _check_object_fields(complete, root, cel_path)


def _check_object_fields(expression: str, root: str, path: PathTuple) -> Iterator[Problem]:
    """Yield fields that are read from ``object`` and that its kind does not have."""
    for chain in _CHAIN.finditer(_STRING.sub("''", expression)):
        shape = root
        for step in _STEP.finditer(chain[2]):
            field = step[1]
            if field is None and shape.startswith(schema.LIST):
                shape = shape[len(schema.LIST) :]
            elif field is None or shape not in schema.types():
                break  # a function, or data without known fields
            elif field not in schema.types()[shape]:
                fields = schema.types()[shape]
                # That a field of another version is not there can be what is asked.
                if not chain[1] or find_nearest(field, fields) is not None:
                    text = f"object{chain[2]}: there is no field {field!r}; {hint(field, fields)}"
                    yield Problem(path, text)
                break
            else:
                shape = schema.types()[shape][field]


_CEL: Final = ("cel", "expression")
_SELECTORS: Final = frozenset({"CELDeviceSelector"})


def selector_problems(
    value: Any, path: PathTuple, root: str | None = None, kubernetes: str = LATEST
) -> Iterator[Problem]:
    """Yield problems of ``cel: {expression: ...}`` in classes and requests of a manifest.

    Args:
        root: the type of the manifest, which fits it; without, selectors are where they seem to be.
        kubernetes: the minor whose CEL the expressions are for.
    """
    if root is None:
        expressions = ((place, text) for place, text in walk(value, path) if place[-2:] == _CEL)
    else:
        parts = schema.list_parts(root, value, _SELECTORS, path)
        expressions = (((*place, "expression"), part.get("expression")) for place, _, part in parts)
    for place, text in expressions:
        if isinstance(text, str):
            yield from expression_problems(text, place, kubernetes)


def expression_problems(
    expression: str, path: PathTuple, kubernetes: str = LATEST
) -> Iterator[Problem]:
    """Yield the problems of a selector's expression, over ``device``, with all gates on."""
    from reference_allocator.cel import CelFeatures, validate_new_expression

    complete = _fill_variables(expression)
    if complete is not None:
        features = CelFeatures(stored=False, kubernetes=kubernetes)
        for problem in validate_new_expression(complete, features):
            yield _make_problem(path, problem.message)


_EXAMPLES: Final[dict[str, Any]] = {
    "attribute": "example.org/x",
    "config": {},
    "probe": [],
    "tolerations": [],
    "worker.majority": 1,
}
"""Group, or variable -> a value of the type that it has; others are texts."""


def fill_manifest(value: Any) -> Any:
    """Return a manifest with values for its variables; None if one may have any value."""
    if any(f"${{{CAPTURED}." in text for _, text in list_texts(value)):
        return None
    return _fill_examples(value)


def _fill_examples(value: Any) -> Any:
    if isinstance(value, dict):
        filled = {substitute(key, _example_of): _fill_examples(item) for key, item in value.items()}
        if filled.get("expression") != value.get("expression"):
            filled["expression"] = "true"  # Says nothing of the author's; quick to compile.
        return filled
    if isinstance(value, list):
        return [_fill_examples(item) for item in value]
    return substitute(value, _example_of)


def _example_of(name: str) -> Any:
    """Return an example of a variable; different variables of texts have different ones."""
    default = re.sub(r"[^a-z0-9.]", "-", f"x.{name.lower()}.x")
    return _EXAMPLES.get(name, _EXAMPLES.get(name.partition(".")[0], default))


def _fill_variables(expression: str) -> str | None:
    """Return the expression with text for its variables; None if one may be any expression."""
    whole = ("selector.", "worker.selector")
    if any(match[1].startswith(whole) for match in VARIABLE.finditer(expression)):
        return None
    return VARIABLE.sub(_PLACEHOLDER, expression)


def _make_problem(path: PathTuple, message: str) -> Problem:
    error = _ERROR.search(message)
    if error is None:
        return Problem(path, f"is not valid CEL: {message.splitlines()[0]}")
    line, column, text = error.groups()
    return Problem(path, f"is not valid CEL: {text} (line {line}, column {column} of it)")
