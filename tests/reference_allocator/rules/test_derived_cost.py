"""All derived attributes of a claim together, against what a real API server says of them.

The answers in tests/oracle/golden/derived-total.ndjson are those of a kube-apiserver 1.37.1 with
DRADerivedAttributes on and DRAListTypeAttributes off, about claims that were created with dryRun.
"""

from __future__ import annotations

from typing import Any

import pytest

from reference_allocator.cel import CelFeatures
from reference_allocator.rules.derived_cost import (
    DERIVED_COST_LIMIT,
    derived_cost,
    derived_cost_problem,
)
from tests.oracle.golden import read

Json = dict[str, Any]
FEATURES = CelFeatures(list_type_attributes=False)
CASES = read("derived-total")


@pytest.mark.parametrize("case", CASES, ids=range(len(CASES)))
def test_total_is_refused_where_a_real_api_server_refuses_it(case: Json) -> None:
    problem = derived_cost_problem(case["devices"], FEATURES)
    assert (problem.message if problem else "") == case["message"]
    assert problem is None or problem.reason == "FieldValueForbidden"


def test_answers_show_the_limit_exactly() -> None:
    costs = {derived_cost(case["devices"], FEATURES): case["status"] for case in CASES}
    assert (costs[DERIVED_COST_LIMIT], costs[DERIVED_COST_LIMIT + 1]) == (201, 422)


def test_expressions_that_do_not_compile_cost_nothing() -> None:
    spec = {"derivedAttributes": [{"name": "a/b", "expression": "1 +"}, {"name": "a/c"}]}
    devices = {"requests": [{"name": "r", "exactly": spec}]}
    assert derived_cost(devices, FEATURES) == 0
    assert derived_cost_problem(devices, FEATURES) is None
