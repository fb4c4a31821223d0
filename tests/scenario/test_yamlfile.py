"""YAML files are read with line numbers, and nothing hostile gets through."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import pytest
import yaml

from conformance.data import scenarios_dir
from conformance.scenario.documents import yamlfile
from conformance.scenario.documents.yamlfile import (
    MAX_BYTES,
    YamlError,
    format_path,
    parse_documents,
    read_documents,
    yaml_files,
)
from tests.scenario.sampling import SAMPLE, sample

FILE = Path("given.yaml")


def refuse_all(*_: object) -> list[object]:
    raise yaml.YAMLError("nodes are composed instead")


def test_every_path_knows_its_line() -> None:
    [document] = parse_documents("a: 1\nb:\n- x\n- c: 2\n", FILE)
    assert document.data == {"a": 1, "b": ["x", {"c": 2}]}
    assert document.line(("b", 1, "c")) == 4
    assert document.line(("b", 1, "unknown", "deeper")) == 4


def test_empty_documents_are_left_out() -> None:
    assert [item.data for item in parse_documents("---\n---\na: 1\n---\n", FILE)] == [{"a": 1}]


def test_a_date_stays_text_as_in_kubernetes() -> None:
    [document] = parse_documents("when: 2026-11-21\n", FILE)
    assert document.data == {"when": "2026-11-21"}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        pytest.param("a: [1\n", "given.yaml:2: is not YAML", id="unclosed list"),
        pytest.param("a: 1\nb: 2\na: 3\n", "given.yaml:3: $.a is given twice", id="duplicate key"),
        pytest.param("? [x]\n: 1\n", "a key must be plain text", id="list as key"),
        pytest.param('a: !!bool "x"\n', "given.yaml:1: tag !!bool is not allowed", id="no bool"),
        pytest.param('a: !!int ""\n', "given.yaml:1: tag !!int is not allowed", id="no integer"),
        pytest.param(
            f"a: {'1' * 5000}\n", "given.yaml:1: a number of 5000 characters", id="long number"
        ),
        pytest.param(f"a: 0x{'f' * 40}\n", "given.yaml:1: the number does not fit", id="large"),
        pytest.param("a: .inf\n", "given.yaml:1: inf is not a number", id="infinite"),
        pytest.param("a: .nan\n", "given.yaml:1: nan is not a number", id="not a number"),
        pytest.param('a: "\\ud800"\n', "given.yaml:1: '\\ud800' is not valid", id="surrogate"),
        pytest.param('"\\ud800": 1\n', "given.yaml:1: '\\ud800' is not valid", id="in a key"),
        pytest.param("a: !!python/object/apply:os.system [id]\n", "", id="python tag"),
        pytest.param("a: !!binary aGk=\n", "is not allowed here", id="binary"),
        pytest.param("a: &x [*x]\n", "given.yaml:1", id="recursive alias"),
    ],
)
def test_bad_files_are_refused_with_their_line(text: str, says: str) -> None:
    if "python" in text:  # an unknown tag on a list is only a list
        assert [item.data for item in parse_documents(text, FILE)] == [{"a": ["id"]}]
        return
    with pytest.raises(YamlError) as error:
        list(parse_documents(text, FILE))
    assert says in str(error.value)


def test_an_alias_is_read_as_what_it_stands_for(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "a: &a\n  x: &n 1\n  y: [*n, {z: *n}]\nb: *a\nc:\n- *a\n---\na: &a text\nb: *a\n"
    first, second = parse_documents(text, FILE)
    value = {"x": 1, "y": [1, {"z": 1}]}
    assert (first.data, second.data) == (
        {"a": value, "b": value, "c": [value]},
        {"a": "text", "b": "text"},
    )
    first.data["b"]["x"] = 2
    assert first.data["a"]["x"] == first.data["c"][0]["x"] == 1
    monkeypatch.setattr(yamlfile, "read_values", refuse_all)
    first_again, second_again = parse_documents(text, FILE)
    assert dict(first_again.lines) == dict(first.lines)
    assert dict(second_again.lines) == dict(second.lines)


def test_a_name_is_of_what_had_it_last_and_of_nothing_within_itself() -> None:
    [document] = parse_documents("a: &x 1\nb: &x 2\nc: *x\n", FILE)
    assert (document.data["c"], document.line(("c",))) == (2, 3)
    with pytest.raises(YamlError, match=r"given.yaml:2"):
        list(parse_documents("a: &x 1\nb: &x [*x]\n", FILE))


def test_aliases_cannot_explode() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    for level in range(1, 9):
        item = f"*a{level - 1}"
        lines.append(f"a{level}: &a{level} [{', '.join([item] * 10)}]")
    with pytest.raises(YamlError, match="6: more than 200000 keys and values"):
        list(parse_documents("\n".join(lines), FILE))


@pytest.mark.parametrize(
    ("name", "why"),
    [
        *((name, "it is not a regular file") for name in ("/dev/zero", "/", "pipe.yaml")),
        ("absent.yaml", "No such file"),
        ("a" * 300, "File name too long"),
    ],
)
def test_only_regular_files_are_opened(name: str, why: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    with pytest.raises(YamlError, match=f"{name}: cannot be read: {why}"):
        read_documents(tmp_path / name)


@pytest.mark.parametrize(
    ("content", "why"),
    [(b"#" * (MAX_BYTES + 1), "split the file"), (b"a: \xff\xfe", "is not UTF-8")],
    ids=["large", "binary"],
)
def test_content_that_no_text_has_is_refused(content: bytes, why: str, tmp_path: Path) -> None:
    file = tmp_path / "given.yaml"
    file.write_bytes(content)
    with pytest.raises(YamlError, match=why):
        read_documents(file)


def test_paths_are_written_as_people_do() -> None:
    assert format_path(("spec", "steps", 2, "expect")) == "$.spec.steps[2].expect"


@pytest.mark.parametrize("text", ["[", "- ", "{a: ", "? "])
def test_deep_nesting_is_refused_and_does_not_end_the_process(text: str) -> None:
    with pytest.raises(YamlError, match="nested too deeply"):
        list(parse_documents(text * 200_000, FILE))


@pytest.mark.parametrize("among", [15, pytest.param(10_000, marks=pytest.mark.everything)])
def test_libyaml_reads_as_python_does(among: int, monkeypatch: pytest.MonkeyPatch) -> None:
    files = sample(yaml_files(scenarios_dir()), among, "read twice")
    fast = [read_documents(file) for file in files]
    monkeypatch.setattr(yamlfile, "read_values", refuse_all)
    monkeypatch.setattr(yamlfile, "BoundedLoader", yaml.SafeLoader)
    for file, documents in zip(files, fast, strict=True):
        assert read_documents(file) == documents, (file, SAMPLE)


def test_a_document_can_be_given_to_another_process_with_its_lines() -> None:
    [document] = parse_documents("a:\n- b\n", FILE)
    assert pickle.loads(pickle.dumps(document)) == document
