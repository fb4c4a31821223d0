"""What the model cannot say of a scenario: names that must be known, manifests that must be right.

All of it is found before anything runs, so that a mistake of the scenario's author is never
reported as a failure of the target.
"""

from __future__ import annotations

from conformance.scenario.lint.claims import Problem
from conformance.scenario.lint.expressions import check_expressions
from conformance.scenario.lint.needs import check_needs
from conformance.scenario.lint.objects import check_manifests
from conformance.scenario.lint.references import check_references
from conformance.scenario.lint.variables import check_variables
from conformance.scenario.model import Scenario
from conformance.scenario.yamlfile import Document

__all__ = ["scenario_problems"]


def scenario_problems(scenario: Scenario, document: Document) -> list[Problem]:
    """Everything that is wrong in a scenario that fits the model, by line.

    Args:
        scenario: the document, with its variables.
        document: the same as plain data, with the line of each path.
    """
    found = [
        *check_variables(scenario, document.data),
        *check_manifests(scenario),
        *check_expressions(scenario),
        *check_references(scenario),
        *check_needs(scenario),
    ]
    return sorted(dict.fromkeys(found), key=lambda problem: document.line(problem.path))
