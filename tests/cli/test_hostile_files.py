"""Files that are small and would take gigabytes: every command refuses them within 1 GiB."""

from __future__ import annotations

import gzip
import hashlib
import json
import lzma
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from conformance.cli.commands.merge import merge_command as merge
from conformance.digest import set_digest
from conformance.results.events.scenario import Outcome
from conformance.results.write import ResultFile
from conformance.scenario.loader import load_scenarios
from kube.base.errors import UsageError
from tests.report.builders import finished, planned, play, stream

GIB = 1 << 30
PROCESSOR_SECONDS = 300
"""Much more than any takes. Of the processor: what runs beside it takes none of them away."""
STUCK_SECONDS = 3000

_HEADER = (
    b'{"record": "header", "apiVersion": "dra-conformance/v1", "kind": "RunResult", "planned": '
)
_LISTS = b"[" + b"[]," * 20_000_000 + b"[]]"
_LISTS_OF_A_LINE = b"[" + b"[]," * 10_000_000 + b"[]]"


def different() -> bytes:
    """A result file whose snapshots have no object in common: 18 MB, of which 375 would be kept."""
    scenarios = [planned(f"core/s{number}") for number in range(3)]
    events = [finished(item, decisions=({"snapshot": item.id},)) for item in scenarios]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "r")
        play(ResultFile(path), stream(scenarios, events))
        content = path.read_bytes()
    for number, item in enumerate(scenarios):
        start = number * 480_000
        objects = ",".join(f'{{"{at:x}":0}}' for at in range(start, start + 480_000))
        content = content.replace(
            b'"snapshot": "%s"' % item.id.encode(),
            b'"snapshot": {"slices": [%s]}' % objects.encode(),
        )
    return content


def of_large_cluster(folder: Path, nodes: int) -> Path:
    """The shipped run, if its cluster had so many more nodes with 8 GPUs of another driver each.

    As if it had been of today's scenarios: who changed one since runs all again later.
    """
    packed = next((Path(__file__).parents[2] / "reports").glob("*/*nvml*/evidence.json.xz"))
    document = json.loads(lzma.decompress(packed.read_bytes()))
    header_text, _, events = document["results"].partition("\n")
    header, shipped = json.loads(header_text), {item.id: item.digest for item in load_scenarios()}
    for item in header["planned"]:
        item["digest"] = shipped.get(item["id"], item["digest"])
    header["scenarioSetDigest"] = set_digest(SimpleNamespace(**item) for item in header["planned"])
    document["results"] = f"{json.dumps(header)}\n{events}"
    slices = json.dumps([slice_of(f"other-{number}") for number in range(nodes)])[1:-1]
    digest = hashlib.sha256()
    path = folder / "large.ndjson"
    with path.open("wb") as file:
        for line in document["results"].encode().splitlines(keepends=True):
            if line.startswith(b'{"record": "footer"'):
                footer = json.loads(line) | {"digest": f"sha256:{digest.hexdigest()}"}
                line = json.dumps(footer).encode() + b"\n"
            line = line.replace(b'"slices": [{', b'"slices": [%s, {' % slices.encode())
            digest.update(line)
            file.write(line)
    return path


def slice_of(node: str) -> dict[str, Any]:
    devices = [
        {
            "name": f"gpu-{index}",
            "attributes": {
                f"attribute-{at}": {"string": f"{node}-{index}-{at}"} for at in range(16)
            },
            "capacity": {f"capacity-{at}": {"value": "80Gi"} for at in range(8)},
        }
        for index in range(8)
    ]
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "other.example", "nodeName": node, "pool": pool, "devices": devices}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": node},
        "spec": spec,
    }


_TEXTS = b'"\xf0\x9f\x98\x80' + b"a" * 60 + b'",'

# Name of the file -> what it has. Each would take more than a GiB if it were built as it is, but
# for those that Python or libyaml limit by themselves.
FILES: dict[str, Callable[[], bytes]] = {
    "lists.json.gz": lambda: b'{"nodes": ' + _LISTS + b"}",
    "objects.json.gz": lambda: b'{"nodes": [' + b"{}," * 20_000_000 + b"{}]}",
    "keys.json.gz": lambda: b'{"nodes": [' + b'{"a":0},' * 8_000_000 + b"{}]}",
    "texts.json.gz": lambda: b'{"nodes": [' + _TEXTS * 1_000_000 + b"0]}",
    "quotes.json.gz": lambda: b'{"nodes": [' + b'"\\"[","' * 10_000_000,
    "deep.json.gz": lambda: b'{"a":' * 2_000_000,
    "escaped.json.gz": lambda: b'{"kind": "\\ud83d\\ude00' + b"a" * (100 << 20) + b'"}',
    "wide.json.gz": lambda: b'{"kind": "' + b"a" * (100 << 20) + b'\xf0\x9f\x98\x80"}',
    "digits.json.gz": lambda: b'{"kind": ' + b"1" * (100 << 20) + b"}",
    "zeros.json.gz": lambda: bytes(500 << 20),
    "lists.json.xz": lambda: _LISTS,
    "escaped.json.xz": lambda: b'{"results": "\\ud83d\\ude00' + b"a" * (70 << 20) + b'"}',
    "zeros.json.xz": lambda: bytes(500 << 20),
    "lists.ndjson": lambda: _HEADER + _LISTS_OF_A_LINE + b"}\n",
    "line.ndjson": lambda: _HEADER + _LISTS + b"}\n",
    "different.ndjson": different,
    "errors.ndjson": lambda: _HEADER + b"[" + b"0," * 999_990 + b"0]}\n",
    "lines.ndjson": lambda: b"\n" * (60 << 20),
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
_LINE_VALUES = "has more than 1000000 values"
_DIFFERENT = "what differs in it takes more than 256 MiB of memory"
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
    resource.setrlimit(resource.RLIMIT_CPU, (PROCESSOR_SECONDS, PROCESSOR_SECONDS))


def call(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "conformance", *arguments],
        capture_output=True,
        check=False,
        cwd=folder,
        preexec_fn=limited,
        text=True,
        timeout=STUCK_SECONDS,
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
            ("explain", [], "quotes.json.gz", "is nested deeper than 128"),
            ("explain", [], "deep.json.gz", "is nested deeper than 128"),
            ("explain", [], "escaped.json.gz", _TEXT),
            ("explain", [], "wide.json.gz", _TEXT),
            ("explain", [], "digits.json.gz", "digits"),
            ("explain", [], "zeros.json.gz", "control characters are not allowed"),
            ("audit", [], "lists.json.gz", _VALUES),
            ("replay", [], "lists.json.gz", _VALUES),
            ("shrink", [], "lists.json.gz", _VALUES),
            ("verify", [], "lists.json.xz", "has more than 100000 values"),
            ("verify", [], "escaped.json.xz", "its text takes more than 256 MiB of memory"),
            ("verify", [], "zeros.json.xz", "it holds more than 256 MiB"),
            ("render", _OUTPUT, "lists.ndjson", _LINE_VALUES),
            ("render", _OUTPUT, "line.ndjson", "its text takes more than 48 MiB of memory"),
            ("render", _OUTPUT, "different.ndjson", _DIFFERENT),
            ("shrink", [], "different.ndjson", _DIFFERENT),
            ("report", _ABOUT, "different.ndjson", _DIFFERENT),
            ("submit", _ABOUT, "different.ndjson", _DIFFERENT),
            ("render", _OUTPUT, "errors.ndjson", " values are not as expected"),
            ("render", _OUTPUT, "lines.ndjson", "has more than 100000 lines"),
            ("render", _OUTPUT, "deep.ndjson", "is nested deeper than 128"),
            ("replay", [], "lists.ndjson", _LINE_VALUES),
            ("merge", _OUTPUT, "lists.ndjson", _LINE_VALUES),
            ("report", _ABOUT, "lists.ndjson", _LINE_VALUES),
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


def test_a_submission_that_would_take_gigabytes_is_left_out_of_a_page(
    folder: Path, tmp_path: Path
) -> None:
    submission = tmp_path / "reports/1.37/org-project"
    submission.mkdir(parents=True)
    (submission / "evidence.json.xz").write_bytes(written(folder, "lists.json.xz").read_bytes())
    done = call(tmp_path, "page", "reports", "--output=site")
    output = " ".join(done.stderr.split())
    assert "left out: reports/1.37/org-project" in output, output[:2000]
    assert "has more than 100000 values" in output
    assert done.returncode == 1


def test_a_run_that_would_take_gigabytes_is_not_resumed(folder: Path, tmp_path: Path) -> None:
    earlier = tmp_path / "earlier"
    earlier.mkdir()
    (earlier / "results.ndjson").write_bytes(written(folder, "different.ndjson").read_bytes())
    done = call(tmp_path, "run", "--target=reference", "--resume=earlier")
    output = " ".join((done.stderr + done.stdout).split())
    assert _DIFFERENT in output, output[:2000]
    assert "results.ndjson" in output
    assert done.returncode == 2


def test_what_a_result_file_quotes_is_bounded_where_it_is_drawn(tmp_path: Path) -> None:
    """A text in a line is no more than a text, until a page makes a drawing of it."""
    scenario = planned()
    text = "[" + "[]," * 14_000_000 + "0]"
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
            file.truncate(257 << 20)
    with pytest.raises(UsageError, match=r"a\.ndjson and the others are more than 512 MiB"):
        merge(paths, tmp_path / "out")


@pytest.mark.slow
@pytest.mark.everything
def test_the_run_of_a_large_cluster_can_be_judged_rendered_and_certified(tmp_path: Path) -> None:
    """Its result file has 100 MB, nearly all of it repetitions, the evidence more still."""
    path = of_large_cluster(tmp_path, nodes=20)
    assert path.stat().st_size > 100_000_000
    for command, said in (
        (["replay"], "conformant; verdicts: "),
        (["render", *_OUTPUT], "reports in out"),
        (["submit", *_ABOUT, "--into=reports"], "submission in reports"),
    ):
        done = call(tmp_path, *command, path.name)
        assert said in done.stdout + done.stderr, (command, done.stderr[-2000:])
    [evidence] = (tmp_path / "reports").rglob("evidence.json.xz")
    assert len(lzma.decompress(evidence.read_bytes())) > 100_000_000
    done = call(tmp_path, "verify", str(evidence))
    assert "the report matches the result file" in done.stdout, done.stderr[-2000:]
    assert done.returncode == 0


def test_evidence_whose_snapshots_have_nothing_in_common_is_refused(tmp_path: Path) -> None:
    packed = next((Path(__file__).parents[2] / "reports").rglob("evidence.json.xz"))
    document = json.loads(lzma.decompress(packed.read_bytes())) | {"results": different().decode()}
    path = tmp_path / "different.json.xz"
    path.write_bytes(lzma.compress(json.dumps(document).encode(), preset=0))
    done = call(tmp_path, "verify", path.name)
    assert f"different.json.xz/results.ndjson:4: is not read, {_DIFFERENT}" in done.stdout
    assert done.returncode == 1
