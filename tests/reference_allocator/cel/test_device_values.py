"""What Kubernetes' recorded answers do not show of the values that a selector sees of a device.

Which values those are, and what a missing one gives, is in golden/devices and golden/selectors.
"""

from __future__ import annotations

import pytest

from reference_allocator.cel import CelDevice, CelRuntimeError, compile_selector


def test_the_short_spelling_of_a_name_wins_in_any_order() -> None:
    """Go takes either, at random."""
    for names in (["x", "a.io/x"], ["a.io/x", "x"]):
        attributes = {name: {"string": name} for name in names}
        device = CelDevice.from_api("a.io", {"attributes": attributes})
        assert device.as_map["attributes"] == {"a.io": {"x": "x"}}
        assert compile_selector('device.attributes["a.io"].x == "x"').matches(device)


def test_what_is_unusable_is_told_in_the_order_of_names() -> None:
    attributes = {"b": {"version": "1.2"}, "a": {"version": "x"}, "c": {"int": 1}}
    with pytest.raises(CelRuntimeError, match=r"^attribute a: parse semantic version: No Major"):
        CelDevice.from_api("a.io", {"attributes": attributes})
    capacity = {"b": {"value": "x"}, "a": {"value": True}}
    with pytest.raises(CelRuntimeError, match=r"^capacity a: a quantity is a string, not bool$"):
        CelDevice.from_api("a.io", {"capacity": capacity})


def test_lists_are_no_values_where_they_are_not_known() -> None:
    two = {"ints": [1], "string": "s"}
    for lists, value in ((False, "s"), (True, [1])):
        device = CelDevice.from_api("d", {"attributes": {"x": two}}, lists=lists)
        assert device.as_map["attributes"] == {"d": {"x": value}}
    with pytest.raises(CelRuntimeError, match="attribute x: unsupported attribute value"):
        CelDevice.from_api("d", {"attributes": {"x": {"ints": [1]}}}, lists=False)
