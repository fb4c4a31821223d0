"""Files that are small and would take gigabytes: every command refuses them within 1 GiB."""

from __future__ import annotations

import gzip
import lzma
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from conformance.cli.commands.merge import merge_command as merge
from conformance.engine.events.scenario import Outcome
from conformance.errors import UsageError
from conformance.resultfile.write import ResultFile
from tests.report.builders import finished, planned, play, stream

GIB = 1 << 30
SECONDS = 120  # Much more than any takes, since tests run beside one another.

_HEADER = (
    b'{"record": "header", "apiVersion": "dra-conformance/v1", "kind": "RunResult", "planned": '
)
_LISTS = b"[" + b"[]," * 20_000_000 + b"[]]"

# Name of the file -> what it has. Each would take more than a GiB if it were built as it is, but
# for those that Python or libyaml limit by themselves.
FILES: dict[str, Callable[[], bytes]] = {
    "lists.json.gz": lambda: b'{"nodes": ' + _LISTS + b"}",
    "objects.json.gz": lambda: b'{"nodes": [' + b"{}," * 20_000_000 + b"{}]}",
    "keys.json.gz": lambda: b'{"nodes": [' + b'{"a":0},' * 8_000_000 + b"{}]}",
    "texts.json.gz": lambda: b'{"nodes": [' + b'"\xf0\x9f\x98\x80a",' * 12_000_000 + b"0]}",
    "quotes.json.gz": lambda: b'{"nodes": [' + b'"\\"[","' * 10_000_000,
    "deep.json.gz": lambda: b'{"a":' * 2_000_000,
    "escaped.json.gz": lambda: b'{"kind": "\\ud83d\\ude00' + b"a" * (100 << 20) + b'"}',
    "wide.json.gz": lambda: b'{"kind": "' + b"a" * (100 << 20) + b'\xf0\x9f\x98\x80"}',
    "digits.json.gz": lambda: b'{"kind": ' + b"1" * (100 << 20) + b"}",
    "zeros.json.gz": lambda: bytes(500 << 20),
    "lists.json.xz": lambda: _LISTS,
    "escaped.json.xz": lambda: b'{"results": "\\ud83d\\ude00' + b"a" * (60 << 20) + b'"}',
    "lists.ndjson": lambda: _HEADER + _LISTS + b"}\n",
    "errors.ndjson": lambda: _HEADER + b"[" + b"0," * 999_990 + b"0]}\n",
    "lines.ndjson": lambda: b"x" + b"\n" * (60 << 20),
    "deep.ndjson": lambda: _HEADER + b"[" * 900_000 + b"\n",
    "lists.yaml": lambda: b"[" + b"[]," * 349_000 + b"[]]",
    "documents.yaml": lambda: b"---\n-\n" * 170_000,
    "deep.yaml": lambda: b"- " * 500_000,
    "cut.yaml": lambda: b"[" + b"a," * 500_000 + b"}",
    "aliases.yaml": lambda: (
        b"a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
        + b"".join(
            b"a%d: &a%d [%s]\n" % (level, level, b", ".join([b"*a%d" % (level - 1)] * 10))
            for level in range(1, 10)
        )
    ),
    "lists.conf": lambda: b"contexts: [" + b"[]," * 5_000_000 + b"[]]",
    "number.conf": lambda: b"contexts: 1" + b":1" * 4_000,
    "text.conf": lambda: b"contexts: 1" + b":1" * 8_000_000,
    "tag.conf": lambda: b"contexts: !!bool maybe",
    "dotted.toml": lambda: b"a" + b".a" * 50_000 + b" = 1",
    "number.toml": lambda: b"retries = 0x" + b"f" * 100_000,
    "decimal.toml": lambda: b"retries = " + b"9" * 100_000,
    "gpus.json": lambda: b'{"gpus": [' + b"0," * 520_000 + b"0]}",
}

_VALUES = "has more than 2500000 values"
_TEXT = "its text takes more than 128 MiB of memory"
_ABOUT = [
    "--organization=a",
    "--project=b",
    "--url=https://c.example",
    "--version=1",
    "--contact=d",
]
_OUTPUT = ["--output=out"]
_CLUSTER = ["--cluster=kubeconfig", "--context=a", "ns/a", "--kubeconfig"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("hostile")


def written(folder: Path, name: str) -> Path:
    path = folder / name
    if not path.exists():
        content = FILES[name]()
        if path.suffix == ".gz":
            content = gzip.compress(content, 1)
        if path.suffix == ".xz":
            content = lzma.compress(content, preset=0)
        path.write_bytes(content)
    return path


def limited() -> None:
    """Of data, not of addresses: mapped libraries are no memory that a file took."""
    resource.setrlimit(resource.RLIMIT_DATA, (GIB, GIB))


def call(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "conformance", *arguments],
        capture_output=True,
        check=False,
        cwd=folder,
        preexec_fn=limited,
        text=True,
        timeout=SECONDS,
    )


@pytest.mark.parametrize(
    ("command", "name", "said"),
    [
        pytest.param([*command.split(), *more], name, said, id=f"{command}-{name}")
        for command, more, name, said in [
            ("explain", [], "lists.json.gz", _VALUES),
            ("explain", [], "objects.json.gz", _VALUES),
            ("explain", [], "keys.json.gz", _VALUES),
            ("explain", [], "texts.json.gz", _TEXT),
            ("explain", [], "quotes.json.gz", _VALUES),
            ("explain", [], "deep.json.gz", "is nested deeper than 128"),
            ("explain", [], "escaped.json.gz", _TEXT),
            ("explain", [], "wide.json.gz", _TEXT),
            ("explain", [], "digits.json.gz", "digits"),
            ("explain", [], "zeros.json.gz", _TEXT),
            ("audit", [], "lists.json.gz", _VALUES),
            ("replay", [], "lists.json.gz", _VALUES),
            ("shrink", [], "lists.json.gz", _VALUES),
            ("verify", [], "lists.json.xz", "has more than 100000 values"),
            ("verify", [], "escaped.json.xz", "its text takes more than 64 MiB of memory"),
            ("render", _OUTPUT, "lists.ndjson", _VALUES),
            ("render", _OUTPUT, "errors.ndjson", " values are not as expected"),
            ("render", _OUTPUT, "lines.ndjson", "has more than 100000 lines"),
            ("render", _OUTPUT, "deep.ndjson", "is nested deeper than 128"),
            ("replay", [], "lists.ndjson", _VALUES),
            ("merge", _OUTPUT, "lists.ndjson", _VALUES),
            ("report", _ABOUT, "lists.ndjson", _VALUES),
            ("run", ["--simulate"], "gpus.json", "values are not as expected"),
            ("lint", [], "lists.yaml", "more than 200000 keys and values"),
            ("lint", [], "documents.yaml", "more than 200000 keys and values"),
            ("lint", [], "deep.yaml", "nested too deeply"),
            ("lint", [], "cut.yaml", "more than 200000 keys and values"),
            ("lint", [], "aliases.yaml", "more than 200000 keys and values"),
            ("run", [], "lists.yaml", "more than 200000 keys and values"),
            ("new profile x", ["--slices"], "lists.yaml", "more than 200000 keys and values"),
            ("explain", _CLUSTER, "lists.conf", "more than 200000 keys and values"),
            ("explain", _CLUSTER, "number.conf", "a number of 8001 characters is too long"),
            ("explain", _CLUSTER, "text.conf", "not a kubeconfig"),
            ("explain", _CLUSTER, "tag.conf", "a value in it cannot be read"),
            ("run", ["--config"], "dotted.toml", "has more than 1000 dots"),
            ("run", ["--config"], "number.toml", "must be one string, number or boolean"),
            ("run", ["--config"], "decimal.toml", "is not valid TOML"),
        ]
    ],
)
def test_a_file_that_would_take_gigabytes_is_refused_with_its_name(
    folder: Path, command: list[str], name: str, said: str
) -> None:
    path = written(folder, name)
    done = call(folder, *command, str(path))
    output = " ".join((done.stderr + done.stdout).split())
    assert said in output, output[:2000]
    assert name in output
    assert "Traceback" not in output
    assert done.returncode == 2, output[:2000]


def test_what_a_result_file_quotes_is_bounded_where_it_is_drawn(tmp_path: Path) -> None:
    """A text in a line is no more than a text, until a page makes a drawing of it."""
    scenario = planned()
    text = "[" + "[]," * 18_000_000 + "0]"
    event = finished(scenario, Outcome.FAILED, "no pod")
    kept = {scenario.id: {"snapshot.json": text}}
    play(ResultFile(tmp_path / "quoting.ndjson"), stream([scenario], [event], kept))
    done = call(tmp_path, "render", "quoting.ndjson", "--output=out")
    assert done.returncode == 1, done.stderr[-2000:]
    assert "no pod" in (tmp_path / "out/report.html").read_text()


def test_shards_that_are_too_large_together_are_refused(tmp_path: Path) -> None:
    paths = [tmp_path / "a.ndjson", tmp_path / "b.ndjson"]
    for path in paths:
        with path.open("wb") as file:
            file.truncate(33 << 20)
    with pytest.raises(UsageError, match=r"a\.ndjson and the others are more than 64 MiB"):
        merge(paths, tmp_path / "out")
