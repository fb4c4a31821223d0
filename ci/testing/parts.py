"""The parts of `make test` and of `make everything`: what each runs, needs, and alone notices."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Final

from ci.testing.part import BIN, OUT, Command, Part, pytest, python, real, suite

OLDEST: Final = "1.34"
FUZZ_SEED: Final = "20261121"
"""The same problems each time, so that a change is to blame; a workflow asks new ones nightly."""

_REAL: Final = "(needs_root or needs_go or needs_kind)"
_UNIT: Final = (
    "not needs_root and not needs_go and not needs_kind and not needs_node and not needs_clients"
)

_WORKERS: Final = str(len(os.sched_getaffinity(0)) + 1)
"""One more than processors: a third of the tests' time is waiting for processes."""

_CLIENT_TESTS: Final = (
    "tests/kubesim/front/test_clients.py",
    "tests/compare/pending/test_kubectl_dumps.py",
    "tests/cli/test_lint_trees.py",
)

_BUILT_MUTANTS: Final = ("nice", *python("-m", "tests.mutants.real.build"))


def parts() -> dict[str, Part]:
    """All parts by name, in the order in which they fail fastest."""
    return {part.name: part for part in (*_test(), *_everything())}


def _lacking(stage: str) -> Command:
    return python("-m", "ci.testing.lacking", stage)


def _paths(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def _test() -> Iterator[Part]:
    yield Part(
        "lint",
        "test",
        "style, names, types, import layers",
        (
            (str(BIN / "ruff"), "check", "."),
            (str(BIN / "ruff"), "format", "--check", "."),
            (str(BIN / "lint-imports"),),
            python("-m", "ci.words"),
            (str(BIN / "mypy"),),
        ),
        seconds=60,
    )
    yield Part(
        "unit",
        "test",
        "what a function does; each defect by some of the scenarios that notice it",
        (pytest("unit", "tests", "-n", _WORKERS, "-m", f"{_UNIT} and not everything"),),
        seconds=240,
    )
    yield Part(
        "reference",
        "test",
        "every scenario on the reference, by command line and by pytest with two workers",
        (
            suite("run", "--target", "reference", "--output", str(OUT / "reference")),
            pytest("reference", "scenarios", "--dra-target", "reference", "-n", "2"),
        ),
        seconds=40,
    )
    yield Part(
        "real",
        "test",
        "every scenario on a real cluster of four nodes; the driver under a real kubelet",
        (real("real", f"{_REAL} and not everything"),),
        seconds=480,
        prepare=suite("cluster", "binaries"),
        missing=_lacking("real"),
    )


def _everything() -> Iterator[Part]:
    yield Part(
        "defects",
        "everything",
        "each defect by all scenarios that notice it; every shape of a cluster, each minor's gates;"
        " properties with many examples",
        (pytest("defects", "tests", "-n", _WORKERS, "-m", f"{_UNIT} and everything"),),
        seconds=300,
        # Properties with many examples are of all packages; so are samples.
        paths=_paths(
            "conformance/* kube/* kubesim/* localkube/* nvml_driver/* reference_allocator/* "
            "scenarios/* tests/* ci/allocators/* ci/vectors/*"
        ),
    )
    yield Part(
        "fuzz",
        "everything",
        "random problems and expressions, ours against Kubernetes'; random CDI specs, ours against"
        " the library of container runtimes",
        (
            ("ci/fuzz", "-n", "4000", "--seed", FUZZ_SEED),
            ("ci/fuzz-cel", "6000", FUZZ_SEED),
            ("ci/fuzz-cdi", "6000", FUZZ_SEED),
        ),
        seconds=180,
        paths=_paths(
            "reference_allocator/* conformance/fuzz/* conformance/allocators/* ci/fuzz*"
            " ci/upstream/* tests/oracle/* kube/cdi/* tests/kube/cdi/*"
        ),
        missing=_lacking("fuzz"),
    )
    yield Part(
        "fuzz-api",
        "everything",
        "random requests, answered by our API server and by kube-apiserver",
        (
            ("ci/fuzz-api", "-n", "1500", "--seed", FUZZ_SEED),
            (
                *("ci/fuzz-api", "--core", "-n", "700", "--seed", FUZZ_SEED),
                *("--gate", "DRAResourcePoolStatus=true"),
            ),
        ),
        seconds=170,
        paths=_paths("kubesim/* tests/kubesim/apidiff/* ci/fuzz-api"),
        missing=_lacking("fuzz"),
    )
    yield Part(
        "allure",
        "everything",
        "that Allure 3 shows in a browser what we wrote for it",
        (("ci/allure/test",),),
        seconds=60,
        paths=_paths("conformance/report/allure* conformance/plugin/* ci/allure/*"),
        missing=("ci/allure/test", "--missing"),
        optional=True,
    )
    local = ("--target", "cluster", "--cluster", "local", "--kubernetes", OLDEST)
    core = ("--name", "oldest", "--compare", "-n", "2", "--level", "core")
    yield Part(
        "oldest",
        "everything",
        f"core on Kubernetes {OLDEST}, the other end of the minors",
        (suite("run", *local, *core, "--output", str(OUT / "oldest")),),
        seconds=400,
        paths=_paths(
            "conformance/targets/cluster/* localkube/* ci/local-cluster/* "
            "nvml_driver/kubelet/* nvml_driver/cluster/* scenarios/core/* "
            "reference_allocator/features.py reference_allocator/gates.py"
        ),
        missing=_lacking("oldest"),
    )
    yield Part(
        "kind",
        "everything",
        "an unmodified kind cluster, and a driver that is installed from manifests",
        (("ci/kind/test",),),
        seconds=240,
        paths=_paths(
            "localkube/kind* localkube/manifests* "
            "conformance/targets/opening/* ci/kind/* ci/deploy/*"
        ),
        prepare=("ci/kind/test", "--prepare"),
        missing=("ci/kind/test", "--missing"),
        optional=True,
    )
    yield Part(
        "clients",
        "everything",
        "that kubectl, client-go, envtest and Python's clients work with the served API server, and"
        " that explain and lint read what kubectl and Helm print",
        (pytest("clients", *_CLIENT_TESTS, "-m", "needs_clients"),),
        seconds=300,
        paths=_paths(
            "kubesim/front/* kubesim/apiserver/* kubesim/store.py ci/clients/* kube/manifests.py "
            "conformance/compare/dumps.py conformance/compare/gathering.py "
            "conformance/scenario/lint/charts.py"
        ),
        missing=_lacking("fuzz"),
    )
    yield Part(
        "consumers",
        "everything",
        "that programs of others which read GPUs by NVML work on the simulated library",
        (
            pytest(
                "consumers", "tests/nvml_driver/simulated/test_consumers.py", "-m", "needs_clients"
            ),
        ),
        seconds=120,
        paths=_paths("nvml_driver/simulated/*"),
        missing=_lacking("fuzz"),
    )
    yield Part(
        "site",
        "everything",
        "that the site is built, no link in it leads nowhere, and README's numbers are true",
        (
            suite("run", "--target", "reference", "--output", str(OUT / "numbers")),
            python("-m", "ci.readme_numbers", "--check", str(OUT / "numbers/summary.json")),
            python("-m", "ci.site"),
        ),
        seconds=60,
        paths=_paths(
            "docs/* *.md scenarios/* ci/readme_numbers.py ci/site/* ci/*page.py tests/*/page.py "
            "tests/*/pages.py tests/scenario/kill_matrix.py reports/*"
        ),
        prepare=("make", "--quiet", ".venv/.site"),
    )
    yield Part(
        "drivers",
        "everything",
        "that drivers of others come out as ci/drivers/results says",
        tuple(
            (f"ci/drivers/{name}", "--as-recorded")
            for name in ("dra-example-driver", "dra-driver-cpu")
        ),
        seconds=900,
        paths=_paths(
            "localkube/* conformance/drivercheck/* conformance/targets/cluster/* "
            "ci/drivers/* ci/local-cluster/* scenarios/core/* "
            "scenarios/drivers/gpu.example.com.yaml scenarios/drivers/dra.cpu.yaml"
        ),
        missing=_lacking("real"),
    )
    yield Part(
        "schedulers",
        "everything",
        "that other schedulers come out as ci/schedulers/results says",
        tuple(
            (f"ci/schedulers/{name}", "--as-recorded")
            for name in ("second-profile", "older-kube-scheduler", "next-kube-scheduler", "volcano")
        ),
        seconds=900,
        paths=_paths("ci/schedulers/* conformance/scenario/scheduler.py scenarios/core/*"),
        missing=_lacking("real"),
    )
    yield Part(
        "skew",
        "everything",
        "kubelets three minors older, and an upgrade of every component under running pods",
        (("ci/matrix", "--no-record", "1.37/1.34", "1.36:1.37"),),
        seconds=300,
        paths=_paths(
            "localkube/* reference_allocator/gates.py scenarios/extended/upgrades/* ci/matrix*"
        ),
        missing=_lacking("real"),
    )
    scale = ("--nodes", "20", "--pods", "40", "--rounds", "1", "--output", str(OUT / "scale.json"))
    yield Part(
        "scale",
        "everything",
        "that a scheduler under load allocates by the rules, for each kind of device",
        (python("-m", "benchmarks.scale", *scale),),
        seconds=90,
        paths=_paths("benchmarks/scale.py benchmarks/planes.py benchmarks/workloads.py"),
        missing=_lacking("real"),
    )
    yield Part(
        "machines",
        "everything",
        "each simulated GPU on real nodes; crashes of a local cluster; a scheduler with defects",
        (real("machines", f"{_REAL} and everything"),),
        seconds=1300,
        paths=_paths(
            "localkube/* conformance/targets/cluster/* kube/* "
            "nvml_driver/* reference_allocator/cel/environment/* reference_allocator/data/* "
            "ci/deploy/* ci/gpu/* ci/job/* ci/local-cluster/* ci/rbac/* "
            "ci/test-driver/* scenarios/drivers/* "
            "tests/mutants/real* tests/*/test_real_* tests/localkube/*"
        ),
        prepare=_BUILT_MUTANTS,
        missing=_lacking("real"),
    )
    programs = ("tests.mutants.real", "tests.mutants.real_driver.measure")
    yield Part(
        "mutants",
        "everything",
        "each defect of Kubernetes' scheduler and of our driver, on a real cluster that has it",
        tuple(python("-m", program, "--check") for program in programs),
        seconds=2400,
        paths=_paths("tests/mutants/real* localkube/binaries/versions.py"),
        prepare=_BUILT_MUTANTS,
        missing=_lacking("real"),
    )
