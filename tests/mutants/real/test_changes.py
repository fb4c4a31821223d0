from __future__ import annotations

import pytest

from conformance.data import scenarios_dir
from tests.mutants.real import record
from tests.mutants.real.change import (
    Change,
    LostAnchorError,
    Wrong,
    after,
    before,
    changed,
    instead,
)
from tests.mutants.real.wrong import ALL

GO = """package p

import (
	"fmt"
)

func add(a, b int) int {
	return a + b
}
"""


def wrong(name: str, *changes: Change) -> Wrong:
    return Wrong(name, "what", changes, ("core/x",))


def test_the_changes_of_all_mutants_stand_in_one_file() -> None:
    text = changed(
        "f",
        GO,
        (
            wrong("first", instead("f", "return a + b", "if WRONG { return a - b }\nreturn a + b")),
            wrong("second", before("f", "return a + b", "if WRONG { b++ }")),
            wrong("third", after("f", "func add(a, b int) int {", "a = 0")),
            wrong("elsewhere", instead("g", "return a + b", "return 0")),
        ),
    )
    assert " ".join(text.split()) == (
        'package p import ( "k8s.io/dynamic-resource-allocation/mutant" "fmt" )'
        " func add(a, b int) int { a = 0"
        ' if mutant.Is("first") { return a - b }'
        ' if mutant.Is("second") { b++ }'
        " return a + b }"
    )


def test_a_file_that_no_mutant_changes_stays_as_it_is() -> None:
    assert changed("f", GO, (wrong("elsewhere", instead("g", "return", "x")),)) == GO


@pytest.mark.parametrize(("anchor", "times"), [("return a * b", 0), ("int", 2)])
def test_an_anchor_that_is_not_there_once_is_an_error(anchor: str, times: int) -> None:
    with pytest.raises(LostAnchorError, match=f"mutant m: f has {times} times instead of once"):
        changed("f", GO, (wrong("m", instead("f", anchor, "x")),))


def test_a_mutant_that_takes_the_place_of_another_is_an_error() -> None:
    first = wrong("first", instead("f", "return a + b", "return 0"))
    second = wrong("second", instead("f", "return a + b", "return 1"))
    with pytest.raises(LostAnchorError, match=r"mutant second: .* after the changes of other"):
        changed("f", GO, (first, second))


def test_each_mutant_has_a_name_of_its_own_and_scenarios_that_there_are() -> None:
    assert len({each.name for each in ALL}) == len(ALL) >= 20
    for each in ALL:
        assert each.changes
        assert each.scenarios
        for name in each.scenarios:
            assert (scenarios_dir() / f"{name}.yaml").is_file(), (each.name, name)
        assert any("WRONG" in change.code for change in each.changes), each.name


def test_each_mutant_was_noticed_when_it_was_met() -> None:
    entries = record.read()
    assert [each.name for each in ALL if each.name not in entries] == []
    assert [name for name, each in entries.items() if not each["noticed"]] == [*record.NOT_SEEN]
    judged = {each.name for each in ALL if each.judged}
    assert [name for name in judged if not any(entries[name]["noticed"].values())] == []
