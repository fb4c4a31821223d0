"""A condition that is not true is told with the values that it read."""

from __future__ import annotations

import pytest

from conformance.scenario.expectations.conditions import explain_unmet
from kube.base.errors import UsageError

CLAIM = {
    "metadata": {"name": "gpu", "labels": {"a.b/c": "d"}},
    "status": {"reservedFor": [{"name": "p"}, {"name": "q"}]},
}


@pytest.mark.parametrize(
    ("expression", "says"),
    [
        pytest.param("object.metadata.name == 'gpu'", [], id="true"),
        pytest.param(
            "object.metadata.name == 'cpu'",
            ["object.metadata.name == 'cpu' is false; object.metadata.name is 'gpu'"],
            id="a text",
        ),
        pytest.param(
            "size(object.status.reservedFor) == 1",
            [
                (
                    "size(object.status.reservedFor) == 1 is false;"
                    " object.status.reservedFor is [{'name': 'p'}, {'name': 'q'}]"
                )
            ],
            id="inside a function",
        ),
        pytest.param(
            "object.status.reservedFor.all(r, r.name == 'p')",
            [
                (
                    "object.status.reservedFor.all(r, r.name == 'p') is false;"
                    " object.status.reservedFor is [{'name': 'p'}, {'name': 'q'}]"
                )
            ],
            id="before a macro",
        ),
        pytest.param(
            "has(object.status.allocation) || object.status.reservedFor[1].name == 'p'",
            [
                (
                    "has(object.status.allocation) || object.status.reservedFor[1].name == 'p' is"
                    " false; object.status.allocation is not there;"
                    " object.status.reservedFor[1].name is 'q'"
                )
            ],
            id="several",
        ),
        pytest.param(
            "object.metadata.labels['a.b/c'] == 'object.metadata.name'",
            [
                (
                    "object.metadata.labels['a.b/c'] == 'object.metadata.name' is false;"
                    " object.metadata.labels['a.b/c'] is 'd'"
                )
            ],
            id="a key, and a literal that looks like a field",
        ),
        pytest.param(
            "object.status.nothing == 1",
            [
                (
                    "object.status.nothing == 1 is an error: no such key: nothing;"
                    " object.status.nothing is not there"
                )
            ],
            id="an error",
        ),
    ],
)
def test_what_an_expression_read_is_told(expression: str, says: list[str]) -> None:
    assert list(explain_unmet([expression], {"object": CLAIM})) == says


def test_a_list_of_objects_is_told_by_names() -> None:
    [line] = explain_unmet(["size(objects) == 2"], {"objects": [CLAIM]})
    assert line == "size(objects) == 2 is false; objects are gpu"


def test_an_expression_that_does_not_compile_is_the_authors_mistake() -> None:
    with pytest.raises(UsageError, match="undeclared reference"):
        list(explain_unmet(["objct.x"], {"object": CLAIM}))
