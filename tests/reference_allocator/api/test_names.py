"""Names that do not fit, in Kubernetes' words.

The expected texts were printed by k8s.io/apimachinery 0.35.10, 0.36.6 and 0.37.1; the recorded
answers (tests/oracle/golden, tests/kubesim/refusals.json) have more of them.
"""

from __future__ import annotations

import pytest

from reference_allocator.allocator import Allocator
from reference_allocator.api.names import (
    c_identifier_problems,
    dns_1035_label_problems,
    dns_label_problems,
    dns_subdomain_problems,
    label_key_problems,
    label_value_problems,
)
from reference_allocator.index import Index
from tests.reference_allocator.builders import (
    ALL,
    Json,
    claim,
    device_class,
    devices,
    node,
    request,
    resource_slice,
)

RULE = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for "
    "validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
LABEL_RULE = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and "
    "must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used "
    "for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)


@pytest.mark.parametrize("key", ["a", "zone", "a.b/c", "example.com/a_b.c-d", "A", "0/0", "a" * 63])
def test_label_keys_have_no_problem(key: str) -> None:
    assert label_key_problems(key) == []


@pytest.mark.parametrize(
    ("key", "problems"),
    [
        ("", ["name part must be non-empty", f"name part {RULE}"]),
        ("a b", [f"name part {RULE}"]),
        ("a\n", [f"name part {RULE}"]),
        ("/a", ["prefix part must be non-empty"]),
        ("a/", ["name part must be non-empty", f"name part {RULE}"]),
        ("a" * 64, ["name part must be no more than 63 bytes"]),
    ],
)
def test_each_problem_of_a_key_is_told(key: str, problems: list[str]) -> None:
    assert label_key_problems(key) == problems


def test_prefix_of_a_key_is_a_subdomain() -> None:
    (upper,) = label_key_problems("Example.com/a")
    assert upper.startswith("prefix part a lowercase RFC 1123 subdomain must consist of lower case")
    (long,) = label_key_problems("a." * 127 + "a/a")
    assert long == "prefix part must be no more than 253 bytes"


def test_key_of_three_parts_is_told_as_a_whole() -> None:
    (problem,) = label_key_problems("a/b/c")
    assert problem == (
        f"a valid label key {RULE} with an optional DNS subdomain prefix and '/' "
        "(e.g. 'example.com/MyName')"
    )


@pytest.mark.parametrize("value", ["", "a", "A.b-c_0", "a" * 63])
def test_label_values_have_no_problem(value: str) -> None:
    assert label_value_problems(value) == []


@pytest.mark.parametrize(
    ("value", "count"), [("-", 1), ("a ", 1), ("é", 1), ("a" * 64, 1), ("-" * 64, 2)]
)
def test_each_problem_of_a_value_is_told(value: str, count: int) -> None:
    assert len(label_value_problems(value)) == count


@pytest.mark.parametrize(
    ("value", "problems"),
    [
        ("a-1", []),
        ("a.b", ["must not contain dots"]),
        ("a" * 64, ["must be no more than 63 characters"]),
        ("A", [LABEL_RULE]),
    ],
)
def test_dns_label(value: str, problems: list[str]) -> None:
    assert dns_label_problems(value) == problems


def test_dns_label_of_rfc_1035_starts_with_a_letter() -> None:
    assert dns_1035_label_problems("a1") == []
    (problem,) = dns_1035_label_problems("1a")
    assert problem.startswith("a DNS-1035 label must consist of lower case")


def test_object_names_are_counted_in_characters_and_label_keys_in_bytes() -> None:
    long = "a." * 127 + "a"
    assert dns_subdomain_problems(long) == ["must be no more than 253 characters"]
    assert label_key_problems(f"{long}/a") == ["prefix part must be no more than 253 bytes"]
    # What is counted are bytes, whatever the text says.
    assert dns_subdomain_problems("é" * 127)[0] == "must be no more than 253 characters"


@pytest.mark.parametrize(("value", "count"), [("a_B1", 0), ("_", 0), ("1a", 1), ("a-b", 1)])
def test_c_identifier(value: str, count: int) -> None:
    assert len(c_identifier_problems(value)) == count


@pytest.mark.parametrize(
    ("requirement", "text"),
    [
        (
            {"key": "zone", "operator": "In"},
            "matchExpressions[0].values: Invalid value: null: for 'in', 'notin' operators",
        ),
        (
            {"key": "zone", "operator": "In", "values": []},
            "matchExpressions[0].values: Invalid value: []: for 'in', 'notin' operators",
        ),
        (
            {"key": "zone", "operator": "Exists", "values": ["a"]},
            'matchExpressions[0].values: Invalid value: ["a"]: values set must be empty',
        ),
        (
            {"key": "zone", "operator": "In", "values": ["a", "-"]},
            'matchExpressions[0].values[1][zone]: Invalid value: "-": a valid label must be',
        ),
    ],
)
def test_malformed_requirement_is_fatal_with_its_path(requirement: Json, text: str) -> None:
    selector = {"nodeSelectorTerms": [{"matchExpressions": [requirement]}]}
    item = resource_slice(devices(1), node=None, nodeSelector=selector)
    outcome = Allocator(Index(ALL, [item], [device_class()], [])).allocate(
        node(), [claim(request())]
    )
    assert outcome.kind == "error"
    assert text in outcome.error
