"""What is said of a new version of an allocator, beside the results of the one before."""

from __future__ import annotations

from typing import Any

from ci.allocators.changes import describe_changes, find_predecessor

Json = dict[str, Any]


def entry(date: str, *wrong: str, asked: int = 300, **more: Any) -> Json:
    counts = dict.fromkeys(("wrongYes", "wrongNo", "otherDevices", "errors", "timeouts"), 0)
    return {
        "date": date,
        "vectors": {"counts": {"asked": 119, **counts, "wrongNo": len(wrong)}, "wrong": [*wrong]},
        "random": {
            "counts": {"asked": asked, **counts, "wrongYes": more.pop("wrong_yes", 0)},
            "differences": more.pop("differences", []),
        },
    }


def test_a_new_version_is_compared_with_the_last_one_of_its_name() -> None:
    table = {
        "Karpenter, existing nodes v1.15.0": entry("2026-11-28"),
        "Karpenter, existing nodes v1.14.0": entry("2026-06-01"),
        "Karpenter, nodes to be v1.15.0": entry("2026-12-01"),
    }
    name = "Karpenter, existing nodes"
    found = find_predecessor(table, name, f"{name} v1.16.0", ())
    assert found is not None
    assert found[0] == f"{name} v1.15.0"
    again = find_predecessor(table, name, f"{name} v1.14.0", ())
    assert again == (f"{name} v1.14.0", table[f"{name} v1.14.0"])
    assert find_predecessor(table, "Volcano", "Volcano v1.14.1", ()) is None
    assert find_predecessor(table, name, f"{name} v1.16.0", table) is None


def test_what_is_answered_otherwise_is_said() -> None:
    taints = {"kind": "wrong yes", "features": ["deviceTaints"]}
    before = entry("2026-11-28", "tainted-device", "eleven-of-ten", differences=[taints])
    after = entry("2026-12-28", "eleven-of-ten", "node-to-be", wrong_yes=3)
    assert list(describe_changes(before, after)) == [
        "vector node-to-be: wrong now",
        "vector tainted-device: wrong no more",
        "random questions, wrongYes: 0 before, 3 now",
        "gone kind of difference: wrong yes, about deviceTaints",
    ]
    assert list(describe_changes(before, before)) == []


def test_counts_of_other_questions_are_not_compared() -> None:
    before, after = entry("2026-11-28"), entry("2026-12-28", asked=1000, wrong_yes=3)
    assert list(describe_changes(before, after)) == [
        "random questions: 300 asked before, 1000 now",
    ]
