"""YAML of others is counted while it is composed, and says what it says to PyYAML's safe loader."""

from __future__ import annotations

import pytest
import yaml

from kube.base.strictyaml import load, load_all

_TEN = ", ".join("x" * 10)


@pytest.mark.parametrize(
    "text",
    [
        "{a: 1, b: [0x10, 1_000, 1:30, 1e3, ~, yes, 2001-01-01, text], c: !!binary YQ==}",
        "base: &base {a: 1}\nmerged: {<<: *base, b: 2}\ntwice: [*base, *base]",
        "",
    ],
)
def test_plain_values_are_read_as_pyyaml_does(text: str) -> None:
    assert load(text) == yaml.safe_load(text)


def test_what_is_long_and_unquoted_is_text() -> None:
    assert load("1" * 20_000) == "1" * 20_000


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"a: &a [{_TEN}]\nb: &b [*a, *a, *a]\nc: [*b, *b, *b]", "more than 50 keys and values"),
        ("- " * 50 + "x\n---\n[" + _TEN + "]", "more than 50 keys and values"),
        ("a: &a [*a]", "'a' is used within what it stands for"),
        ("a: &a [x]\n---\nb: &a [*a]", "'a' is used within what it stands for"),
        ("[" * 200 + "]" * 200, "nested too deeply, more than 100"),
        ("a: " + "1" * 101, "a number of 101 characters is too long"),
        *((f"a: {value}", "a value in it cannot be read") for value in ("!!bool x", "!!int ''")),
        *((f"a: {value}", "a value in it cannot be read") for value in ("2001-99-99", "!!int x")),
        ("a: !!timestamp x", "a value in it cannot be read"),
        ("a: !!python/name:os.system", "could not determine a constructor"),
    ],
)
def test_what_is_too_much_or_no_plain_value_is_one_kind_of_error(text: str, said: str) -> None:
    most = 1000 if "[[" in text else 50
    with pytest.raises(yaml.MarkedYAMLError) as error:
        list(load_all(text, most))
    assert said in (error.value.problem or "")
