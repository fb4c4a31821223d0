"""Says how the table of allocators changes: what a new version answers otherwise.

Random questions of one seed are the same ones as long as the generator is; their numbers are said
only where as many were asked.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

Json = Mapping[str, Any]
Table = Mapping[str, Json]
"""The results file: name and version of an allocator -> what came of its questions."""

_COUNTS = ("wrongYes", "wrongNo", "otherDevices", "errors", "timeouts")


def find_predecessor(
    table: Table, name: str, key: str, asked: Collection[str]
) -> tuple[str, Json] | None:
    """Return the entry that a new one is compared with: its own, or the last of an older version.

    Args:
        table: the results before.
        name: the allocator's name, with which the keys of its versions begin.
        key: name and version of the new entry.
        asked: names and versions of all that are asked today, which are older versions of none.
    """
    if key in table:
        return key, table[key]
    found = [item for item in table.items() if item[0].startswith(f"{name} ")]
    found = [item for item in found if item[0] not in asked]
    return max(found, key=lambda item: str(item[1]["date"]), default=None)


def describe_changes(before: Json, after: Json) -> Iterator[str]:
    """Yield a line for each thing that an allocator answers otherwise now."""
    was, now = set(before["vectors"]["wrong"]), set(after["vectors"]["wrong"])
    for word, ids in (("wrong now", now - was), ("wrong no more", was - now)):
        for identifier in sorted(ids):
            yield f"vector {identifier}: {word}"
    for part, what in (("vectors", "vectors"), ("random", "random questions")):
        old, new = (entry[part]["counts"] for entry in (before, after))
        if old["asked"] != new["asked"]:
            yield f"{what}: {old['asked']} asked before, {new['asked']} now"
        if part == "vectors" or old["asked"] == new["asked"]:
            for name in _COUNTS:
                if old[name] != new[name]:
                    yield f"{what}, {name}: {old[name]} before, {new[name]} now"
    classes = [
        {(item["kind"], *item["features"]) for item in entry["random"]["differences"]}
        for entry in (before, after)
    ]
    for word, kinds in (("new", classes[1] - classes[0]), ("gone", classes[0] - classes[1])):
        for kind, *features in sorted(kinds):
            about = ", ".join(features) or "nothing but devices"
            yield f"{word} kind of difference: {kind}, about {about}"
