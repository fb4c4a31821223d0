"""Build a third-party driver, check it, run it on a local cluster, and record what came out.

A driver's file (``ci/drivers/NAME``) calls this. Without options all stages run, and
``ci/drivers/results/NAME.json`` is written. ``--as-recorded`` writes nothing, and fails where
driver-check or core say something else than the record does.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from ci.drivers.record import RECORDS, checked_out, keep, of_check, of_run, pinned
from conformance.results.read import load_results
from kube.base.errors import UsageError
from localkube.binaries.build import resolve_binaries
from localkube.binaries.versions import NODE_BINARIES
from localkube.gocommand import find_go, make_environment
from localkube.layout import default_cache

ROOT: Final = Path(__file__).resolve().parents[2]
HERE: Final = ROOT / "ci/drivers"
OUT: Final = ROOT / "build/drivers"
PROGRAMS: Final = OUT / "bin"
SUITE: Final = str(Path(sys.executable).with_name("dra-conformance"))
STAGES: Final = {"core": ("--level", "core"), "node": ("--level", "extended", "--tier", "node")}
"""The runs, each on a local cluster of its own: what one does to a driver stays there."""

_SECONDS: Final = 3600  # for the longest stage, extended with faults on two busy cores
_UNSHARE: Final = ("--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc")


def main(arguments: list[str] | None = None) -> int:
    """The exit code: 0 recorded, or as recorded; 1 not as recorded; 2 it could not be run."""
    options = _options(arguments)
    out = OUT / options.name
    out.mkdir(parents=True, exist_ok=True)
    stages = options.stage or (("check", "core") if options.as_recorded else ("check", *STAGES))
    try:
        build(options.name, options.package, cgo=options.cgo)
        for stage in stages:
            if stage == "check":
                check(options, out)
            else:
                run(options, stage, out / stage)
        return _finish(options, out, stages)
    except (UsageError, OSError, subprocess.SubprocessError) as error:
        print(f"{options.name}: {error}", file=sys.stderr)
        return 2


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="ci/drivers/NAME", description=__doc__)
    parser.add_argument(
        "--stage", action="append", choices=("check", *STAGES), help="only this one (repeatable)"
    )
    parser.add_argument("--as-recorded", action="store_true", help="compare, and write nothing")
    parser.add_argument("--nri", action="store_true", help="driver-check, too, serves NRI")
    parser.add_argument("--cgo", action="store_true", help="build with a C compiler")
    parser.add_argument("--kubernetes", default="1.37", help="minor or patch (default: 1.37)")
    for given in ("name", "package", "profile"):  # by the driver's file
        parser.add_argument(given, help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


def build(name: str, package: str, *, cgo: bool) -> None:
    """Build the driver from the module that is pinned with all checksums, or from a checkout."""
    where = Path(os.environ.get("SOURCE") or HERE / "modules" / name)
    if not (where / "go.mod").exists():
        raise UsageError(f"{where}: has no go.mod; name a checkout of the driver: SOURCE=/FOLDER")
    compile_go(where, (package,), PROGRAMS, cgo=cgo)


def compile_go(
    where: Path, packages: Sequence[str], to: Path, *flags: str, cgo: bool = False
) -> None:
    """Build packages of a pinned module into a folder. Raises UsageError: they cannot be built."""
    to.mkdir(parents=True, exist_ok=True)
    small = ("-p", "1", "-trimpath", "-mod=readonly", "-ldflags=-s -w", "-gcflags=all=-dwarf=false")
    done = subprocess.run(
        ("nice", find_go(), "build", *small, *flags, "-o", f"{to}/", *packages),
        cwd=where,
        env=make_environment() | {"CGO_ENABLED": str(int(cgo))},
        check=False,
        timeout=_SECONDS,
    )
    if done.returncode:
        raise UsageError(f"{where}: {', '.join(packages)} cannot be built, see above")


def check(options: argparse.Namespace, out: Path) -> None:
    """driver-check where the driver finds a node's folders, and nothing of this machine."""
    where = ("unshare", *_UNSHARE, str(HERE / "bench.sh"))
    binaries = {}
    if options.nri:
        cache = default_cache()
        binaries["NRI"] = str(resolve_binaries(None, cache, NODE_BINARIES, print))
    result, profile = out / "driver-check.json", out / "profile.yaml"
    for old in (result, profile):
        old.unlink(missing_ok=True)
    subprocess.run(
        (
            *(*where, SUITE, "driver-check", "--folder", "/var/lib/kubelet"),
            *("--driver-command", f"{HERE / options.name} start", "--output", str(result)),
            *("--write-profile", str(profile)),
        ),
        env=os.environ | binaries,
        check=False,
        timeout=_SECONDS,
    )
    if not result.exists():
        raise UsageError("driver-check gave no result, see above")


def run(options: argparse.Namespace, stage: str, out: Path) -> None:
    """Scenarios on a local cluster of one node, compared with the reference."""
    shutil.rmtree(out, ignore_errors=True)
    subprocess.run(
        (
            *(SUITE, "run", "--target", "cluster", "--cluster", "local", "--name", "drivers"),
            *("--kubernetes", options.kubernetes, "--driver", options.profile, "--compare"),
            *("--driver-command", f"{HERE / options.name} start", "-n", "2"),
            *(*STAGES[stage], "--output", str(out)),
        ),
        check=False,
        timeout=_SECONDS,
    )


def report(known: dict[str, Any], out: Path) -> dict[str, Any]:
    """What both results together say, once there are both: the core's profiles, and hardware."""
    results, checked, file = (
        out / name for name in ("core/results.ndjson", "driver-check.json", "report.yaml")
    )
    file.unlink(missing_ok=True)
    if "core" not in known or "check" not in known:
        return {}
    who = ("--organization", "none", "--project", known["module"], "--version", known["version"])
    subprocess.run(
        (
            *(SUITE, "report", str(results), "--driver-check", str(checked), *who),
            *("--url", f"https://{known['module']}", "--output", str(file)),
        ),
        check=False,
        timeout=_SECONDS,
    )
    if not file.exists():
        print(f"no report: run check and core on one state of the suite ({results}, {checked})")
        return {"profiles": {}, "hardware": "-"}
    document = yaml.safe_load(file.read_text(encoding="utf-8"))
    results_of = {one["name"]: one["result"] for one in document["profiles"]}
    return {"profiles": results_of, "hardware": document["hardware"]}


def _finish(options: argparse.Namespace, out: Path, stages: tuple[str, ...]) -> int:
    file = RECORDS / f"{options.name}.json"
    old: dict[str, Any] = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    source = os.environ.get("SOURCE")
    which = checked_out(Path(source)) if source else pinned(options.name, options.package)
    new = dict(old) | {"profile": options.profile, **which}
    for stage in stages:
        if stage == "check":
            new |= of_check(json.loads((out / "driver-check.json").read_text(encoding="utf-8")))
        else:
            result = load_results(out / stage / "results.ndjson")
            if result.interrupted:
                raise UsageError(f"{result.path}: the run was broken off; run it again")
            new[stage] = of_run(result)
    new |= report(new, out)
    return keep(file, new, stages, as_recorded=options.as_recorded)


if __name__ == "__main__":
    sys.exit(main())
