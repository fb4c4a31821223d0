"""Objects as rows of a table, which ``kubectl get`` prints (``meta.k8s.io/v1`` Table).

Columns and cells are those of pkg/printers/internalversion/printers.go, ages those of
apimachinery's pkg/util/duration. Descriptions of columns are left empty.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from kube.values import Obj

_Age = Callable[[str], str]
"""How long ago a timestamp was."""

_Cells = Callable[[Obj, _Age], Sequence[str]]


def claim_state(claim: Obj) -> str:
    """Return what a claim is at the moment: pending, allocated, reserved, deleted."""
    status = claim.get("status") or {}
    deleted, allocated = "deletionTimestamp" in claim["metadata"], "allocation" in status
    states = {
        "deleted": deleted,
        "pending": not allocated and not deleted,
        "allocated": allocated,
        "reserved": allocated and bool(status.get("reservedFor")),
    }
    return ",".join(name for name, so in states.items() if so)


def _slice_cells(item: Obj, _age: _Age) -> Sequence[str]:
    spec = item["spec"]
    return spec.get("nodeName") or "", spec["driver"], spec["pool"]["name"]


def _rule_cells(rule: Obj, age: _Age) -> Sequence[str]:
    taint = rule["spec"]["taint"]
    added = age(taint["timeAdded"]) if "timeAdded" in taint else ""
    return taint["key"], taint.get("value") or "", taint["effect"], added


_COLUMNS: Final[Mapping[str, tuple[Sequence[str], _Cells]]] = {
    "DeviceClass": ((), lambda _, _age: ()),
    "DeviceTaintRule": (("Key", "Value", "Effect", "TimeAdded"), _rule_cells),
    "ResourceClaim": (("State",), lambda claim, _age: (claim_state(claim),)),
    "ResourceClaimTemplate": ((), lambda _, _age: ()),
    "ResourceSlice": (("Node", "Driver", "Pool"), _slice_cells),
}
"""Kind -> the columns between name and age, and their cells."""


def build_table(
    kind: str, objects: Sequence[Obj], age_of: Callable[[str], int], metadata: Obj
) -> Obj:
    """Return the Table of some objects of a kind.

    Args:
        age_of: how many seconds ago a timestamp was.
        metadata: of the list.
    """
    names, cells = _COLUMNS.get(kind, ((), lambda _, _age: ()))

    def age(timestamp: str) -> str:
        return human_duration(age_of(timestamp))

    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": metadata,
        "columnDefinitions": [
            {"name": name, "type": "string", "format": form, "description": "", "priority": 0}
            for name, form in (
                ("Name", "name"),
                *((column_name, "") for column_name in (*names, "Age")),
            )
        ],
        "rows": [
            {
                "cells": [
                    column_name["metadata"]["name"],
                    *cells(column_name, age),
                    age(column_name["metadata"]["creationTimestamp"]),
                ],
                "object": {
                    "kind": "PartialObjectMetadata",
                    "apiVersion": "meta.k8s.io/v1",
                    "metadata": column_name["metadata"],
                },
            }
            for column_name in objects
        ],
    }


def human_duration(seconds: int) -> str:
    """Return seconds as far as a person wants to know them (duration.HumanDuration)."""
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    if seconds < 120:
        return f"{max(seconds, 0)}s"
    for under, whole, remainder, unit in (
        (600, minutes, seconds % 60, "ms"),
        (3 * 3600, minutes, 0, "m"),
        (8 * 3600, hours, minutes % 60, "hm"),
        (2 * 86400, hours, 0, "h"),
        (8 * 86400, days, hours % 24, "dh"),
        (2 * 365 * 86400, days, 0, "d"),
        (8 * 365 * 86400, days // 365, days % 365, "yd"),
    ):
        if seconds < under:
            return f"{whole}{unit[0]}" + (f"{remainder}{unit[1]}" if remainder else "")
    return f"{days // 365}y"
