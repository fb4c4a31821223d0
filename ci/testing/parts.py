"""The parts of `make test` and of `make everything`: what each runs, needs, and alone notices."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

ROOT: Final = Path(__file__).resolve().parents[2]
BIN: Final = ROOT / ".venv/bin"
OUT: Final = ROOT / "build"
OLDEST: Final = "1.34"
FUZZ_SEED: Final = "20261121"
"""The same problems each time, so that a change is to blame; a workflow asks new ones nightly."""

REAL: Final = "(needs_root or needs_go or needs_kind)"
UNIT: Final = "not needs_root and not needs_go and not needs_kind and not needs_node"

_WORKERS: Final = str(len(os.sched_getaffinity(0)) + 1)
"""One more than processors: a third of the tests' time is waiting for processes."""

Command = tuple[str, ...]


@dataclass(frozen=True)
class Part:
    """One thing that can be run, and asked for by its name.

    Attributes:
        notices: what no other part notices.
        commands: in this order, until one fails.
        seconds: about how long it takes on two idle cores, for the progress line.
        paths: patterns of what it is about; a change there, or in what that imports, affects it.
        prepare: run in the background before the part's turn comes.
        missing: prints a line for each thing that this machine lacks for it.
        optional: may be left out with CI=true, too, where this machine lacks something.
    """

    name: str
    ring: Literal["test", "everything"]
    notices: str
    commands: tuple[Command, ...]
    seconds: int
    paths: tuple[str, ...] = ("*",)
    prepare: Command | None = None
    missing: Command | None = None
    optional: bool = False
    environment: Mapping[str, str] = field(default_factory=dict)


def _python(*arguments: str) -> Command:
    return (str(BIN / "python"), *arguments)


def _suite(*arguments: str) -> Command:
    return (str(BIN / "dra-conformance"), *arguments)


def _pytest(name: str, *arguments: str) -> Command:
    kept = (f"--junitxml={OUT}/logs/{name}.xml", "--durations=50", "-q")
    return (str(BIN / "pytest"), *arguments, *kept)


def _lacking(stage: str) -> Command:
    return _python("-m", "ci.testing.lacking", stage)


_REAL_WORKERS: Final = 3
"""As many real clusters at once, of which each waits most of the time."""

_BEGIN: Final = (
    *("test_real_nodes.py", "test_real_profiles.py", "test_real_cluster.py"),
    *("test_real_driver.py", "test_reported_failures.py"),
)
"""The longest files begin first, one on each worker. A worker whose file has one or two tests is
given a second file at once (``_reschedule`` in xdist's loadscope.py), which waits for the first
one to end: the corpus, one test of many minutes, is given a file of seconds."""


def real_files() -> list[str]:
    """Test files that need a real machine: each worker would collect the others in vain."""
    marks = [f"mark.{name}" for name in ("needs_root", "needs_go", "needs_kind")]
    files = sorted((ROOT / "tests").rglob("test_*.py"))
    found = [file for file in files if any(mark in file.read_text() for mark in marks)]
    found.sort(key=lambda file: _BEGIN.index(file.name) if file.name in _BEGIN else len(_BEGIN))
    return [str(file.relative_to(ROOT)) for file in found]


def _real(name: str, which: str) -> Command:
    by_file = ("-n", str(_REAL_WORKERS), "--dist", "loadfile", "--no-loadscope-reorder")
    return _pytest(name, *real_files(), *by_file, "-m", which)


def parts() -> dict[str, Part]:
    """All parts by name, in the order in which they fail fastest."""
    made = [make() for make in _PARTS]
    return {part.name: part for part in made}


def _lint() -> Part:
    return Part(
        "lint",
        "test",
        "style, types, import layers",
        (
            (str(BIN / "ruff"), "check", "."),
            (str(BIN / "ruff"), "format", "--check", "."),
            (str(BIN / "lint-imports"),),
            (str(BIN / "mypy"),),
        ),
        seconds=60,
    )


def _unit() -> Part:
    return Part(
        "unit",
        "test",
        "what a function does; each defect by some of the scenarios that notice it",
        (_pytest("unit", "tests", "-n", _WORKERS, "-m", f"{UNIT} and not everything"),),
        seconds=240,
    )


def _reference() -> Part:
    return Part(
        "reference",
        "test",
        "every scenario on the reference, by command line and by pytest with two workers",
        (
            _suite("run", "--target", "reference", "--output", str(OUT / "reference")),
            _pytest("reference", "scenarios", "--dra-target", "reference", "-n", "2"),
        ),
        seconds=40,
    )


def _real_ring() -> Part:
    return Part(
        "real",
        "test",
        "every scenario on a real cluster of four nodes; the driver under a real kubelet",
        (_real("real", f"{REAL} and not everything"),),
        seconds=480,
        prepare=_suite("cluster", "binaries"),
        missing=_lacking("real"),
    )


def _samples() -> Part:
    return Part(
        "defects",
        "everything",
        "each defect by all scenarios that notice it; every shape of a cluster, each minor's gates;"
        " properties with many examples",
        (_pytest("defects", "tests", "-n", _WORKERS, "-m", f"{UNIT} and everything"),),
        seconds=300,
        # Properties with many examples are of all packages; so are samples.
        paths=("conformance/*", "nvml_driver/*", "reference_allocator/*", "scenarios/*", "tests/*"),
    )


def _machines() -> Part:
    return Part(
        "machines",
        "everything",
        "each simulated GPU on real nodes; crashes of a local cluster; a scheduler with defects",
        (_real("machines", f"{REAL} and everything"),),
        seconds=1300,
        paths=(
            "conformance/clusters/*",
            "conformance/targets/cluster/*",
            "conformance/kubeapi/*",
            "nvml_driver/*",
            "ci/local-cluster/*",
            "ci/deploy/*",
            "ci/gpu/*",
            "ci/job/*",
            "ci/rbac/*",
            "scenarios/drivers/*",
            "tests/mutants/real*",
            "tests/*/test_real_*",
            "tests/clusters/*",
            "reference_allocator/cel/environment/*",
            "reference_allocator/data/*",
        ),
        prepare=("nice", *_python("-m", "tests.mutants.real.build")),
        missing=_lacking("real"),
    )


def _oldest() -> Part:
    options = ("--target", "cluster", "--cluster", "local", "--kubernetes", OLDEST)
    chosen = ("--name", "oldest", "--compare", "-n", "2", "--level", "core")
    return Part(
        "oldest",
        "everything",
        f"core on Kubernetes {OLDEST}, the other end of the minors",
        (_suite("run", *options, *chosen, "--output", str(OUT / "oldest")),),
        seconds=400,
        paths=(
            "conformance/targets/cluster/*",
            "conformance/clusters/local/*",
            "nvml_driver/kubelet/*",
            "nvml_driver/cluster/*",
            "reference_allocator/features.py",
            "reference_allocator/gates.py",
            "ci/local-cluster/*",
            "scenarios/core/*",
        ),
        missing=_lacking("oldest"),
    )


def _kind() -> Part:
    return Part(
        "kind",
        "everything",
        "an unmodified kind cluster, and a driver that is installed from manifests",
        (("ci/kind/test",),),
        seconds=240,
        paths=(
            "conformance/clusters/kind*",
            "conformance/clusters/manifests*",
            "conformance/targets/opening/*",
            "ci/kind/*",
            "ci/deploy/*",
        ),
        prepare=("ci/kind/test", "--prepare"),
        missing=("ci/kind/test", "--missing"),
        optional=True,
    )


def _drivers() -> Part:
    names = ("dra-example-driver", "dra-driver-cpu")
    return Part(
        "drivers",
        "everything",
        "that drivers of others come out as docs/drivers.md says",
        tuple((f"ci/drivers/{name}", "--as-recorded") for name in names),
        seconds=900,
        paths=(
            "ci/drivers/*",
            "ci/local-cluster/*",
            "conformance/clusters/local/*",
            "conformance/drivercheck/*",
            "conformance/targets/cluster/*",
            "scenarios/core/*",
            "scenarios/drivers/gpu.example.com.yaml",
            "scenarios/drivers/dra.cpu.yaml",
        ),
        missing=_lacking("real"),
    )


def _schedulers() -> Part:
    names = ("second-profile", "older-kube-scheduler", "volcano")
    return Part(
        "schedulers",
        "everything",
        "that other schedulers come out as docs/schedulers.md says",
        tuple((f"ci/schedulers/{name}", "--as-recorded") for name in names),
        seconds=900,
        paths=("ci/schedulers/*", "conformance/scenario/scheduler.py", "scenarios/core/*"),
        missing=_lacking("real"),
    )


def _skew() -> Part:
    return Part(
        "skew",
        "everything",
        "kubelets three minors older, and an upgrade of every component under running pods",
        (("ci/matrix", "--no-page", "1.37/1.34", "1.36:1.37"),),
        seconds=300,
        paths=(
            "conformance/clusters/local/*",
            "reference_allocator/gates.py",
            "scenarios/extended/upgrades/*",
            "ci/matrix*",
        ),
        missing=_lacking("real"),
    )


def _scale() -> Part:
    return Part(
        "scale",
        "everything",
        "that a scheduler under load allocates by the rules, for each kind of device",
        (
            _python(
                "-m",
                "benchmarks.scale",
                "--nodes",
                "20",
                "--pods",
                "40",
                "--rounds",
                "1",
                "--output",
                str(OUT / "scale.json"),
            ),
        ),
        seconds=90,
        paths=("benchmarks/scale.py", "benchmarks/planes.py", "benchmarks/workloads.py"),
        missing=_lacking("real"),
    )


def _allure() -> Part:
    return Part(
        "allure",
        "everything",
        "that Allure 3 shows in a browser what we wrote for it",
        (("ci/allure/test",),),
        seconds=60,
        paths=("conformance/report/allure*", "conformance/plugin/*", "ci/allure/*"),
        missing=("ci/allure/test", "--missing"),
        optional=True,
    )


def _fuzz() -> Part:
    return Part(
        "fuzz",
        "everything",
        "random problems and expressions, ours against Kubernetes'",
        (
            ("ci/fuzz", "-n", "4000", "--seed", FUZZ_SEED),
            ("ci/fuzz-cel", "6000", FUZZ_SEED),
        ),
        seconds=120,
        paths=("reference_allocator/*", "ci/upstream/*", "tests/oracle/*"),
        missing=_lacking("fuzz"),
    )


_PARTS: Final[tuple[Callable[[], Part], ...]] = (
    *(_lint, _unit, _reference, _real_ring),
    *(_samples, _fuzz, _allure, _oldest, _kind, _drivers, _schedulers, _skew, _scale, _machines),
)
