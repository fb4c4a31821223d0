"""Asks the CDI library of container runtimes and our reader about the same random folders.

    python -m tests.kube.cdi.compare --oracle build/oracle/cdi-1.1.2 -n 5000

A difference is made small and printed, and the exit code is 1. What is known to differ is counted.
"""

from __future__ import annotations

import itertools
import json
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from kube.cdi.edits import UnresolvableError
from kube.cdi.reading import Folders, read_folders, resolve
from kube.cdi.spec import min_version
from tests.kube.cdi.draw_folders import question
from tests.random_comparison import DIFFERENT, make_parser, run_comparison

Json = dict[str, Any]

PANIC: Final = "known: the library panics at a null in a list"
HOST: Final = "known: the library looks at device files of the machine"
TAG: Final = "known: libyaml ends a tag at a comma or bracket, Go's reader does not"
_TAG_AT_INDICATOR: Final = re.compile(r"!\S*[],[{}]")
_OF_THE_HOST: Final = ("failed to stat CDI host device", "host type mismatch")
_CHUNK: Final = 500
_SECONDS: Final = 60
_TRIES: Final = 2000
_TOGETHER: Final = 64
_SHARED_MEMORY: Final = Path("/dev/shm")
_SCRATCH: Final = _SHARED_MEMORY if _SHARED_MEMORY.is_dir() else Path(tempfile.gettempdir())


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns 0 when every difference is a known one, 1 otherwise."""
    parser = make_parser(__doc__, "ci/upstream/cdi", "folders", 5000)
    options = parser.parse_args(arguments)

    def compare_folders(seed: str, numbers: range, counts: Counter[str]) -> bool:
        questions = [question(seed, number) for number in numbers]
        differences = []
        for asked, answer in zip(questions, ask(options.oracle, questions), strict=True):
            kind = compare(asked, answer)
            counts[kind] += 1
            outcome = "some" if answer.get("devices") else "no"
            counts[f"  of all: {outcome} device"] += 1
            counts[f"  of all: injection {_outcome(answer)}"] += 1
            if kind == DIFFERENT:
                differences.append(asked)
                _show(options.oracle, asked)
        return bool(differences)

    return run_comparison(options, "folders", _CHUNK, compare_folders)


def ask(oracle: Path, questions: Sequence[Json]) -> list[Json]:
    """Return the library's answers."""
    text = "".join(json.dumps(item) + "\n" for item in questions)
    command = [str(oracle), "-scratch", str(_SCRATCH)]
    done = subprocess.run(
        command, input=text.encode(), capture_output=True, timeout=_SECONDS, check=True
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def compare(asked: Json, answer: Json) -> str:
    """Return "same", "different", or a kind of difference that is known."""
    mine = ours(asked)
    if "panic" in answer:
        return PANIC if mine["errors"] else DIFFERENT
    refused = answer.get("refused", "")
    by_host = any(text in refused for text in _OF_THE_HOST)
    theirs = {
        "devices": answer["devices"],
        "errors": sorted(answer["errors"]),
        "minimum": answer["minimum"],
        "injected": _comparable(answer.get("injected")),
    }
    if by_host:
        mine["injected"] = theirs["injected"] = None
    if mine != theirs:
        texts = (text for files in asked["folders"] for text in files.values())
        return TAG if any(map(_TAG_AT_INDICATOR.search, texts)) else DIFFERENT
    return HOST if by_host else "same"


def ours(asked: Json) -> Json:
    """Return what our reader makes of the same folders."""
    with tempfile.TemporaryDirectory(dir=_SCRATCH) as scratch:
        root = Path(scratch)
        folders = list(_written(asked["folders"], root))
        found = read_folders(folders)
        return {
            **_names(found, root),
            "injected": _injected(folders, asked["inject"]),
        }


def _written(folders: Sequence[dict[str, str]], root: Path) -> Iterator[Path]:
    for number, files in enumerate(folders):
        folder = root / str(number)
        folder.mkdir()
        for name, text in files.items():
            (folder / name).write_bytes(text.encode("utf-8", "surrogatepass"))
        yield folder


def _names(found: Folders, root: Path) -> Json:
    def short(path: Path) -> str:
        return path.relative_to(root).as_posix()

    return {
        "devices": {name: short(one.file) for name, one in found.definitions.items()},
        "errors": sorted(short(path) for path in found.faults),
        "minimum": {short(file): min_version(spec) for file, spec in found.specs.items()},
    }


def _injected(folders: Sequence[Path], ids: Sequence[str]) -> Json | None:
    try:
        edits = resolve(folders, ids)
    except UnresolvableError:
        return None
    rdt = edits.intel_rdt
    return {
        "env": [f"{name}={value}" for name, value in edits.env.items()],
        "devices": [node.path for node in edits.device_nodes],
        "mounts": [list(mount) for mount in edits.mounts.items()],
        "netDevices": dict(edits.net_devices),
        "intelRdt": rdt
        and [
            *(rdt.clos_id, rdt.l3_cache_schema, rdt.mem_bw_schema),
            *(list(rdt.schemata or ()), rdt.enable_monitoring),
        ],
        "groups": list(edits.additional_gids),
    }


def _comparable(container: Json | None) -> Json | None:
    """Return what our reader has of an OCI container that got devices."""
    if container is None:
        return None
    process, linux = container.get("process") or {}, container.get("linux") or {}
    rdt = linux.get("intelRdt")
    return {
        "env": process.get("env") or [],
        "devices": [node["path"] for node in linux.get("devices") or []],
        "mounts": [[one["destination"], one["source"]] for one in container.get("mounts") or []],
        "netDevices": {host: one["name"] for host, one in (linux.get("netDevices") or {}).items()},
        "intelRdt": None
        if rdt is None
        else [
            *(rdt.get("closID", ""), rdt.get("l3CacheSchema", ""), rdt.get("memBwSchema", "")),
            *(rdt.get("schemata") or [], rdt.get("enableMonitoring", False)),
        ],
        "groups": process.get("user", {}).get("additionalGids") or [],
    }


def _outcome(answer: Json) -> str:
    return "done" if "injected" in answer else "refused"


def _show(oracle: Path, asked: Json) -> None:
    small = shrink(oracle, asked)
    answer = ask(oracle, [small])[0]
    sides = {"folders": small, "library": answer, "ours": ours(small)}
    sys.stdout.writelines(f"{side:8}{json.dumps(shown)}\n" for side, shown in sides.items())
    with tempfile.TemporaryDirectory(dir=_SCRATCH) as scratch:
        for line in read_folders(_written(small["folders"], Path(scratch))).list_messages():
            sys.stdout.write(f"          {line}\n")


def shrink(oracle: Path, asked: Json) -> Json:
    """Return a question with a difference, too, with fewer files and less text in them."""
    smallest, tries = asked, 0
    progress = True
    while progress and tries < _TRIES:
        progress = False
        candidates = _smaller(smallest)
        while not progress and (some := list(itertools.islice(candidates, _TOGETHER))):
            tries += len(some)
            pairs = zip(some, ask(oracle, some), strict=True)
            found = next((one for one, it in pairs if compare(one, it) == DIFFERENT), None)
            if found is not None:
                smallest, progress = found, True
    return smallest


def _smaller(asked: Json) -> Iterator[Json]:
    folders = asked["folders"]
    for at, files in enumerate(folders):
        if len(folders) > 1:
            yield {**asked, "folders": [*folders[:at], *folders[at + 1 :]]}
        for name, text in files.items():
            others = {key: value for key, value in files.items() if key != name}
            yield {**asked, "folders": [*folders[:at], others, *folders[at + 1 :]]}
            size = len(text) // 2
            while size:
                for start in range(0, len(text), size):
                    cut = text[:start] + text[start + size :]
                    changed = {**files, name: cut}
                    yield {**asked, "folders": [*folders[:at], changed, *folders[at + 1 :]]}
                size //= 2


if __name__ == "__main__":
    sys.exit(main())
