"""Strategic merge patches, by the merge patch that does the same (strategicpatch/patch.go)."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.targets.reference.apiserver.patches import as_merge_patch, merge

A, B = {"name": "a", "image": "1"}, {"name": "b", "image": "2"}


@pytest.mark.parametrize(
    ("live", "patch", "result"),
    [
        ({"x": 1}, {"x": None}, {}),
        ({"x": {"y": 1}}, {"x": {"z": 2}}, {"x": {"y": 1, "z": 2}}),
        ({"x": {"y": 1}}, {"x": {"$patch": "replace", "z": 2}}, {"x": {"z": 2}}),
        ({"x": {"y": 1}}, {"x": {"$patch": "delete"}}, {"x": {}}),
        ({"x": {"y": 1, "z": 2}}, {"x": {"$retainKeys": ["z"]}}, {"x": {"z": 2}}),
        ({"list": [1]}, {"list": [2]}, {"list": [2]}),
        (
            {"containers": [A, B]},
            {"containers": [{"name": "b", "image": "3"}], "$setElementOrder/containers": []},
            {"containers": [A, {"name": "b", "image": "3"}]},
        ),
        (
            {"containers": [A]},
            {"containers": [{"name": "a", "image": None}, B]},
            {"containers": [{"name": "a"}, B]},
        ),
        ({"containers": [A, B]}, {"containers": [{"$patch": "delete", "name": "a"}]},
         {"containers": [B]}),
        ({"containers": [A]}, {"containers": [B, {"$patch": "replace"}]}, {"containers": [B]}),
        ({"finalizers": ["a"]}, {"finalizers": ["b", "a"]}, {"finalizers": ["a", "b"]}),
        ({"finalizers": ["a", "b"]}, {"$deleteFromPrimitiveList/finalizers": ["a"]},
         {"finalizers": ["b"]}),
    ],
)  # fmt: skip
def test_it_does_the_same(live: dict[str, Any], patch: dict[str, Any], result: Any) -> None:
    assert merge(live, as_merge_patch(live, patch)) == result
