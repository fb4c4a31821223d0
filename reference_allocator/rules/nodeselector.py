"""The match between nodes and the selectors of slices and devices.

Semantics of v1.NodeSelector as component-helpers/scheduling/corev1/nodeaffinity implements them:
terms are ORed, the requirements of a term ANDed, an empty term matches nothing, and any term that
does not parse makes the whole selector an error, matched or not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from reference_allocator.api import Node, NodeSelector, NodeSelectorTerm, Requirement
from reference_allocator.api.names import label_key_problems, label_value_problems
from reference_allocator.errors import AllocationError

_LABEL_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
_FIELD_OPERATORS = ("In", "NotIn")
_INTEGER = re.compile(r"[+-]?[0-9]+\Z")


def node_matches(
    node: Node, node_name: str | None, all_nodes: bool, selector: NodeSelector | None
) -> bool:
    """Return whether the node is one of those that a slice or a device names.

    The three ways are tried in this order: nodeName, allNodes, nodeSelector; with none set it is
    no node.

    Raises:
        AllocationError: the selector does not parse.
    """
    if node_name:
        return node.name == node_name
    if all_nodes:
        return True
    if selector is None:
        return False
    problems = list(dict.fromkeys(_selector_problems(selector)))  # Upstream lists each once.
    if problems:
        text = problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"
        raise AllocationError(f"failed to parse node selector {_go_string(selector)}: {text}")
    return any(_term_matches(term, node) for term in selector.terms)


def _term_matches(term: NodeSelectorTerm, node: Node) -> bool:
    if not term.match_expressions and not term.match_fields:
        return False
    if not all(_label_matches(requirement, node) for requirement in term.match_expressions):
        return False
    # A node without a name has no fields, and then upstream does not look at matchFields.
    return not node.name or all(
        _field_matches(requirement, node) for requirement in term.match_fields
    )


def _label_matches(requirement: Requirement, node: Node) -> bool:
    value = node.labels.get(requirement.key)
    match requirement.operator:
        case "In":
            return value is not None and value in requirement.values
        case "NotIn":
            return value is None or value not in requirement.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
    label = _parse_int64(value)
    bound = _parse_int64(requirement.values[0])
    if label is None or bound is None:
        return False
    return label > bound if requirement.operator == "Gt" else label < bound


def _field_matches(requirement: Requirement, node: Node) -> bool:
    value = node.name if requirement.key == "metadata.name" else ""
    equal = value == requirement.values[0]
    return equal if requirement.operator == "In" else not equal


def _parse_int64(text: str | None) -> int | None:
    if text is None or not _INTEGER.match(text):
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None


def _selector_problems(selector: NodeSelector) -> Iterator[str]:
    for index, term in enumerate(selector.terms):
        path = f"nodeSelectorTerms[{index}]"
        for number, requirement in enumerate(term.match_expressions):
            yield from _label_problems(requirement, f"{path}.matchExpressions[{number}]")
        for number, requirement in enumerate(term.match_fields):
            yield from _field_problems(requirement, f"{path}.matchFields[{number}]")


def _label_problems(requirement: Requirement, path: str) -> Iterator[str]:
    operator, values = requirement.operator, requirement.values
    if operator not in _LABEL_OPERATORS:
        yield _not_supported(path, operator, _LABEL_OPERATORS)
        return
    wrong_key = "; ".join(label_key_problems(requirement.key))
    if wrong_key:
        yield _invalid(f"{path}.key", _quote(requirement.key), wrong_key)
    if operator in ("In", "NotIn"):
        if not values:
            problem = "for 'in', 'notin' operators, values set can't be empty"
            yield _invalid(f"{path}.values", _show_values(requirement), problem)
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            problem = "values set must be empty for exists and does not exist"
            yield _invalid(f"{path}.values", _show_values(requirement), problem)
    else:
        if len(values) != 1:
            problem = "for 'Gt', 'Lt' operators, exactly one value is required"
            yield _invalid(f"{path}.values", _show_values(requirement), problem)
        for index, value in enumerate(values):
            if _parse_int64(value) is None:
                problem = "for 'Gt', 'Lt' operators, the value must be an integer"
                yield _invalid(f"{path}.values[{index}]", _quote(value), problem)
    for index, value in enumerate(values):
        problem_of_value = "; ".join(label_value_problems(value))
        if problem_of_value:
            where = f"{path}.values[{index}][{requirement.key}]"
            yield _invalid(where, _quote(value), problem_of_value)


def _field_problems(requirement: Requirement, path: str) -> Iterator[str]:
    if requirement.operator not in _FIELD_OPERATORS:
        yield _not_supported(path, requirement.operator, _FIELD_OPERATORS)
    elif len(requirement.values) != 1:
        yield _invalid(f"{path}.values", _show_values(requirement), "must have one element")


def _invalid(path: str, value: str, detail: str) -> str:
    return f"{path}: Invalid value: {value}: {detail}"


def _not_supported(path: str, value: str, supported: Sequence[str]) -> str:
    names = ", ".join(_quote(name) for name in supported)
    return f"{path}.operator: Unsupported value: {_quote(value)}: supported values: {names}"


def _quote(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _show_values(requirement: Requirement) -> str:
    if requirement.raw.get("values") is None:
        return "null"
    return "[" + ",".join(_quote(value) for value in requirement.values) + "]"


def _go_string(selector: NodeSelector) -> str:
    """Return the selector as the generated String method of the Go type prints it."""
    terms = "".join(
        "NodeSelectorTerm{MatchExpressions:[]NodeSelectorRequirement{"
        f"{_go_requirements(term.match_expressions)}}},"
        "MatchFields:[]NodeSelectorRequirement{"
        f"{_go_requirements(term.match_fields)}}},}},"
        for term in selector.terms
    )
    return f"&NodeSelector{{NodeSelectorTerms:[]NodeSelectorTerm{{{terms}}},}}"


def _go_requirements(requirements: Sequence[Requirement]) -> str:
    return "".join(
        f"NodeSelectorRequirement{{Key:{requirement.key},Operator:{requirement.operator},"
        f"Values:[{' '.join(requirement.values)}],}},"
        for requirement in requirements
    )
