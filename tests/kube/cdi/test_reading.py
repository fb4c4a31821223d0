"""What a container runtime makes of CDI specs: recorded answers of its library, and bad input."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path
from typing import Any

import pytest

from kube.cdi.edits import UnresolvableError
from kube.cdi.reading import MAX_FILES, read_folders, resolve
from kube.cdi.spec import MAX_BYTES, decode_spec
from kube.cdi.versions import list_refusals
from tests.kube.cdi.compare import compare
from tests.kube.cdi.golden import NEWEST, OLDER, read_cases


def spec(*names: str, **more: Any) -> dict[str, Any]:
    return {
        "cdiVersion": "0.6.0",
        "kind": "example.com/gpu",
        "devices": [{"name": name, "containerEdits": {"env": ["A=b"]}} for name in names],
        **more,
    }


def test_folders_are_read_as_the_library_of_runtimes_reads_them() -> None:
    kinds = {asked["id"]: compare(asked, answers[NEWEST]) for asked, answers in read_cases()}
    assert [name for name, kind in kinds.items() if kind == "different"] == []
    assert list(kinds.values()).count("same") > 190  # what is known to differ is rare


def test_what_older_libraries_are_said_to_refuse_they_refuse() -> None:
    refusals = 0
    for asked, answers in read_cases():
        for at, files in enumerate(asked["folders"]):
            for name in files.keys() & {"a.json", "a.yaml"}:
                if f"{at}/{name}" not in answers[NEWEST].get("minimum", {}):
                    continue
                said = " ".join(list_refusals(decode_spec(files[name].encode())))
                for version in OLDER:
                    if f"library {version} " in said:
                        refusals += 1
                        assert f"{at}/{name}" in answers[version]["errors"], (asked["id"], said)
    assert refusals > 100


def test_a_refusal_names_the_runtimes_and_why() -> None:
    nodes = [{"path": "/dev/x", "type": "c", "major": 1, "permissions": "none"}]
    device = {"name": "a", "containerEdits": {"deviceNodes": nodes}}
    written = json.dumps(spec(cdiVersion="1.0.0", devices=[device]))
    assert list_refusals(decode_spec(written.encode())) == [
        "library 1.1.0 (containerd 2.3, newer 2.2) refuses it: permissions are none",
        "library 1.0.1 (containerd 2.1, newer 2.0) refuses it: permissions are none",
        "library 0.8.1 (containerd 1.7, older 2.0) refuses it: cdiVersion is 1.0.0",
    ]


def test_what_a_runtime_refuses_is_said_by_file(tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_text("{")
    with pytest.raises(UnresolvableError, match=r"CDI device e\.com/x=z: no spec in .*bad\.json"):
        resolve([tmp_path], ["e.com/x=z"])
    assert resolve([tmp_path / "absent"], []).env == {}


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("{}", "cdiVersion: '' is none of 0.1.0"),
        (json.dumps(spec("a") | {"container_edits": {}}), "there is no field 'container_edits'"),
        (json.dumps(spec("a", "a")), "devices: 'a' is there twice"),
        (json.dumps(spec("a", annotations={"a": "b"}, cdiVersion="0.3.0")), "needs 0.6.0"),
        (json.dumps(spec("a")).replace('["A=b"]', "7"), "line 1: '7' is not a list"),
        ("a: " + "[" * 500, "nested too deeply"),
        ("a: &a [" + "x," * 300 + "]\nb: [" + "*a," * 3000 + "]", "more than 200000 keys"),
        (" " * (MAX_BYTES + 1), "it is larger than 4 MiB"),
    ],
)
def test_a_file_that_is_no_spec_is_left_out_and_named(
    tmp_path: Path, content: str, says: str
) -> None:
    (tmp_path / "good.json").write_text(json.dumps(spec("b")))
    (tmp_path / "bad.json").write_text(content)
    (tmp_path / "ignored.txt").write_text("{")
    found = read_folders([tmp_path])
    assert set(found.definitions) == {"example.com/gpu=b"}
    [message] = found.list_messages()
    assert message.startswith("bad.json: ")
    assert says in message
    assert len(message) < 220


def test_what_is_no_file_does_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.json")
    (tmp_path / "folder.json").mkdir()
    (tmp_path / "loop.yaml").symlink_to("loop.yaml")
    (tmp_path / "gone.json").symlink_to("nowhere")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "socket.json"))
        assert read_folders([tmp_path]).list_messages() == [
            "loop.yaml: Too many levels of symbolic links",
            "pipe.json: it is not a regular file",
            "socket.json: it is not a regular file",
        ]


def test_of_a_folder_with_ten_thousand_files_it_is_said_what_is_read(tmp_path: Path) -> None:
    for number in range(10_000):
        (tmp_path / f"{number:05}.json").touch()
    found = read_folders([tmp_path])
    assert (
        found.list_messages()[0]
        == f"{tmp_path.name}: has 10000 specs; {MAX_FILES} of them are read"
    )
    assert len(found.list_messages()) == MAX_FILES + 1


def test_a_folder_that_is_none_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert read_folders([tmp_path / "file"]).list_messages() == [
        "file: cannot be listed: Not a directory"
    ]
