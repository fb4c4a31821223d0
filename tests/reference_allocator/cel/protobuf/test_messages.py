"""Protobuf messages in expressions, beyond what the recorded answers show."""

from __future__ import annotations

import pytest

from reference_allocator.cel import (
    DYN,
    CelCompileError,
    CelDevice,
    CelFeatures,
    compile_expression,
    compile_selector,
)
from reference_allocator.cel.protobuf.anything import Packed, unpack

DEVICE = CelDevice.from_api("dra.example.com", {"name": "a"})


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("google.protobuf.Int64Value{value: object.count}", 3),
        ("google.protobuf.Struct{fields: {'a': [b'x']}}", {"a": ["eA=="]}),
        ("google.protobuf.Struct.FieldsEntry{key: 'a', value: 1}", {"key": "a", "value": 1.0}),
        ("google.protobuf.Empty{}", {}),
        ("google.protobuf.Value{}", None),
    ],
)
def test_a_message_is_the_value_that_it_stands_for(expression: str, value: object) -> None:
    program = compile_expression(expression, {"object": DYN})
    assert program.evaluate({"object": {"count": 3}}) == value


def test_an_any_in_an_any_and_so_on_is_given_up_without_recursion() -> None:
    url = b"x/google.protobuf.Any"
    packed = b""
    for _ in range(3000):
        size = len(packed)
        length = bytes([size & 0x7F | 0x80, size >> 7 & 0x7F | 0x80, size >> 14])
        packed = b"\x0a" + bytes([len(url)]) + url + b"\x12" + length + packed
    with pytest.raises(ValueError, match="in one another"):
        unpack(Packed(url.decode(), packed))


def test_a_wrapper_is_a_selector_since_1_37() -> None:
    expression = "google.protobuf.BoolValue{value: true}"
    assert compile_selector(expression).matches(DEVICE)
    with pytest.raises(CelCompileError, match=r"must evaluate to bool .* not wrapper\(bool\)"):
        compile_selector(expression, features=CelFeatures(kubernetes="1.36"))
