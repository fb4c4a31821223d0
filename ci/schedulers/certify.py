"""Run the scenarios with another scheduler on a local control plane, and record what came out.

A scheduler's file (``ci/schedulers/NAME``) calls this; it writes
``ci/schedulers/results/NAME.json``. ``--as-recorded`` writes nothing, and fails where the core
comes out otherwise than the record says.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

from ci.drivers.certify import compile_go
from ci.drivers.record import keep, of_run
from ci.schedulers import page
from ci.schedulers.page import RECORDS
from conformance.certify.build import build_profile_result
from conformance.certify.profiles import load_profiles
from conformance.cli.certifying import list_shipped_scenarios
from conformance.results.read import load_results
from kube.base.errors import UsageError
from localkube.binaries.build import resolve_binaries
from localkube.binaries.versions import CONTROL_PLANE_BINARIES, full_version
from localkube.layout import default_cache

ROOT: Final = Path(__file__).resolve().parents[2]
HERE: Final = ROOT / "ci/schedulers"
MODULES: Final = HERE / "modules"
OUT: Final = ROOT / "build/schedulers"
LOCAL: Final = ROOT / "ci/local-cluster/kubernetes"
SUITE: Final = str(Path(sys.executable).with_name("dra-conformance"))
PROFILE: Final = "dra-core-scheduler"

_SECONDS: Final = 3600


def main(arguments: list[str] | None = None) -> int:
    """The exit code: 0 recorded, or as recorded; 1 not as recorded; 2 it could not be run."""
    parser = argparse.ArgumentParser(prog="ci/schedulers/NAME", description=__doc__)
    parser.add_argument("--kubernetes", default="1.37", help="of the cluster (default: 1.37)")
    parser.add_argument("--as-recorded", action="store_true", help="compare, and write nothing")
    parser.add_argument(
        "--whole", action="store_true", help="the whole allocation tier, recorded beside the core"
    )
    parser.add_argument("--of", default="", metavar="MINOR", help="of kube-scheduler")
    parser.add_argument("name", help=argparse.SUPPRESS)
    parser.add_argument("scheduler", help=argparse.SUPPRESS)
    parser.add_argument(
        "--scenario", nargs="+", default=[], help="only these files, and nothing is recorded"
    )
    options = parser.parse_args(arguments)
    try:
        if (MODULES / options.name).is_dir():
            compile_go(MODULES / options.name, ("tool",), OUT / "bin")
        if options.of:
            pins = f"-modfile=minors/{options.of}/go.mod"
            compile_go(LOCAL, ("k8s.io/kubernetes/cmd/kube-scheduler",), OUT / options.of, pins)
        _run(options)
        return 0 if options.scenario else _record(options)
    except (UsageError, OSError, subprocess.SubprocessError) as error:
        print(f"{options.name}: {error}", file=sys.stderr)
        return 2


def _run(options: argparse.Namespace) -> None:
    """The core of the allocation tier or all of it, compared, on a control plane without nodes."""
    shutil.rmtree(OUT / options.name, ignore_errors=True)
    version = full_version(options.kubernetes)
    binaries = resolve_binaries(None, default_cache(), CONTROL_PLANE_BINARIES, print, version)
    rules = options.of or _find_kubernetes(MODULES / options.name)
    judged = ("--scheduler-kubernetes", rules) if rules else ()
    asked = ("--scheduler", options.scheduler) if options.scheduler != page.DEFAULT else ()
    started = ("--scheduler-command", f"{HERE / options.name} start") if asked else ()
    subprocess.run(
        (
            *(SUITE, "run", "--target", "cluster", "--cluster", "local", "--nodes", "0"),
            *("--name", "schedulers", "--kubernetes", options.kubernetes, *asked, *started),
            *judged,
            *(() if options.whole else ("--level", "core")),
            *("--tier", "allocation", "--compare", "-n", "4"),
            *("--output", str(OUT / options.name)),
            *options.scenario,
        ),
        env=os.environ | {"BINARIES": str(OUT / options.of if options.of else binaries)},
        check=False,
        timeout=_SECONDS,
    )


def _find_kubernetes(module: Path) -> str:
    """Return the version of a module that is Kubernetes; "" for another one, and for none."""
    file = module / "go.mod"
    is_kubernetes = file.exists() and "tool k8s.io/kubernetes/" in file.read_text("utf-8")
    return page.version_of(module).removeprefix("v") if is_kubernetes else ""


def _record(options: argparse.Namespace) -> int:
    result = load_results(OUT / options.name / "results.ndjson")
    if result.interrupted:
        raise UsageError(f"{result.path}: the run was interrupted; run it again")
    file = RECORDS / f"{options.name}.json"
    recorded = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    if options.whole:
        whole = recorded | {"tier": of_run(result)}
        return keep(file, whole, ("tier",), as_recorded=options.as_recorded)
    [profile] = load_profiles().select([PROFILE])
    came = build_profile_result(result, profile, list_shipped_scenarios())
    record: dict[str, Any] = {
        "scheduler": options.scheduler,
        "version": page.version_of(MODULES / options.name)
        or full_version(options.of or options.kubernetes),
        "profile": came.result.value,
        "statistics": came.statistics.model_dump(),
        "core": of_run(result),
        **{stage: recorded[stage] for stage in ("tier",) if stage in recorded},
    }
    return keep(file, record, ("core",), as_recorded=options.as_recorded)


if __name__ == "__main__":
    sys.exit(main())
