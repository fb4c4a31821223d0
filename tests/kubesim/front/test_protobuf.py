"""Kubernetes' protobuf: envelopes, and what is no message (what client-go sends: test_clients)."""

from __future__ import annotations

from typing import Any

import pytest

from kubesim.front.protobuf import decode_protobuf


def field(number: int, value: int | bytes) -> bytes:
    """One field on the wire, its number and size below 128."""
    if isinstance(value, int):
        return bytes([number << 3, value])
    return bytes([number << 3 | 2, len(value)]) + value


def envelope(api_version: str, kind: str, raw: bytes) -> bytes:
    meta = field(1, api_version.encode()) + field(2, kind.encode())
    return b"k8s\0" + field(1, meta) + field(2, raw)


@pytest.mark.parametrize(
    ("api_version", "kind", "raw", "found"),
    [
        ("v1", "Namespace", field(1, field(1, b"a")), {"metadata": {"name": "a"}}),
        (
            "v1",
            "Namespace",
            field(1, field(11, field(1, b"k") + field(2, b"v"))),
            {"metadata": {"labels": {"k": "v"}}},
        ),
        ("v1", "Node", field(2, field(4, 1)), {"spec": {"unschedulable": True}}),
        ("v1", "Namespace", field(1, field(1, b"")), {"metadata": {}}),  # empty: not set
        (
            "resource.k8s.io/v1",
            "DeviceClass",
            field(2, field(1, field(1, field(1, b"true")))),
            {"spec": {"selectors": [{"cel": {"expression": "true"}}]}},
        ),
    ],
)
def test_an_object_is_decoded(api_version: str, kind: str, raw: bytes, found: Any) -> None:
    typed = {"apiVersion": api_version, "kind": kind}
    assert decode_protobuf(envelope(api_version, kind, raw)) == typed | found


def test_options_of_a_deletion_are_decoded() -> None:
    raw = field(1, 5) + field(2, field(1, b"uid")) + field(4, b"Background")
    assert decode_protobuf(envelope("v1", "DeleteOptions", raw)) == {
        "gracePeriodSeconds": 5,
        "preconditions": {"uid": "uid"},
        "propagationPolicy": "Background",
    }


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"{}", "does not begin as"),
        (envelope("v1", "Nothing", b""), "Nothing in v1 is not taken"),
        (envelope("v1", "Namespace", b"\x0a\x7f"), "ends in the middle"),
        (envelope("v1", "Namespace", b"\xff"), "does not end"),
        (envelope("v1", "Namespace", field(15, 1)), "no field of number 15"),
        (envelope("v1", "Namespace", field(1, 1)), "a number stands where"),
        (envelope("v1", "Namespace", b"\x0b"), "wire type 3"),
        (envelope("v1", "Namespace", field(1, field(1, b"\xff"))), "utf-8"),
    ],
)
def test_what_is_no_message_is_refused(data: bytes, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        decode_protobuf(data)
