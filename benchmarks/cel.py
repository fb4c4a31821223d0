"""How fast device selectors are compiled and evaluated, beside Kubernetes' own code.

    python -m benchmarks.cel [--oracle build/oracle/celoracle-1.37]

Both sides see the same expressions and devices, in turns, several rounds. Three ratios, ours by
Go's, so that less than 1 is faster:

- ``convert_and_evaluate``: a device as it is published, converted and evaluated, against
  ``DeviceMatches``, which is how upstream asks and which converts the device anew each time;
- ``evaluate``: the same without our conversion, as we keep converted devices;
- ``compile``: from text to program, with the estimate of its cost, nothing cached.

Times are the fastest of several repetitions within a round; ratios are the median of the rounds.
Results go to ``benchmarks/results/cel.json``.
"""

from __future__ import annotations

import argparse
import inspect
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from reference_allocator.cel import CelDevice, CelRuntimeError, compile_selector

ROOT: Final = Path(__file__).parents[1]
RESULTS: Final = Path(__file__).parent / "results" / "cel.json"
DRIVER: Final = "gpu.nvidia.com"
_GPU: Final = f'device.attributes["{DRIVER}"]'

EXPRESSIONS: Final = {
    "three clauses": (
        f'device.driver == "{DRIVER}" && {_GPU}.type == "gpu"'
        f' && {_GPU}.cudaComputeCapability.isGreaterThan(semver("7.5.0"))'
    ),
    "driver only": f'device.driver == "{DRIVER}"',
    "capacity": f'device.capacity["{DRIVER}"].memory.compareTo(quantity("40Gi")) >= 0',
    "version": f'{_GPU}.cudaComputeCapability.isGreaterThan(semver("7.5.0"))',
    "list of models": f'{_GPU}.productName in ["A100", "H100", "T4"]',
    "regular expression": f'{_GPU}.productName.matches("^(A|H)100$")',
    "optional attribute": f'{_GPU}.?mig.orValue("none") == "none"',
    "has": f'has({_GPU}.type) && {_GPU}.type == "gpu"',
    "bind": f'cel.bind(gpu, {_GPU}, gpu.type == "gpu" && gpu.index < 4)',
    "missing attribute": f'{_GPU}.nope == "x"',
    "missing attribute absorbed": f'{_GPU}.nope == "x" || device.driver == "{DRIVER}"',
    "ten clauses": " && ".join(
        [
            f'device.driver == "{DRIVER}"',
            f'{_GPU}.type == "gpu"',
            f"{_GPU}.index >= 0",
            f'{_GPU}.brand == "Nvidia"',
            f'{_GPU}.architecture.startsWith("A")',
            f"{_GPU}.healthy",
            f'{_GPU}.driverVersion.isGreaterThan(semver("500.0.0"))',
            f'{_GPU}.uuid.matches("^GPU-")',
            f'device.capacity["{DRIVER}"].memory.isGreaterThan(quantity("1Gi"))',
            "!device.allowMultipleAllocations",
        ]
    ),
}


def device(index: int) -> dict[str, Any]:
    """One of the devices: 11 attributes and a capacity; one in four has a high version."""
    return {
        "driver": DRIVER,
        "attributes": {
            "type": {"string": "gpu"},
            "index": {"int": index % 8},
            "brand": {"string": "Nvidia"},
            "architecture": {"string": "Ampere"},
            "productName": {"string": ("A100", "T4", "L4", "V100")[index % 4]},
            "cudaComputeCapability": {"version": "8.0.0" if index % 4 == 0 else "7.5.0"},
            "driverVersion": {"version": "560.35.3"},
            "uuid": {"string": f"GPU-{index:08x}"},
            "minor": {"int": index},
            "healthy": {"bool": True},
            "resource.kubernetes.io/pcieRoot": {"string": f"pci0000:{index % 16:02x}"},
        },
        "capacity": {"memory": {"value": "80Gi" if index % 4 == 0 else "16Gi"}},
    }


def main() -> None:
    """Measure, print and write down."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--oracle", type=Path, help="program of ci/upstream/celoracle")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--devices", type=int, default=100)
    parser.add_argument("--output", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    oracle = arguments.oracle or build()
    devices = [device(index) for index in range(arguments.devices)]
    rows = {
        name: measure(oracle, expression, devices, arguments.rounds)
        for name, expression in EXPRESSIONS.items()
    }
    result = {
        "date": datetime.now(UTC).date().isoformat(),
        "machine": {
            "cores": os.cpu_count(),
            "processor": platform.machine(),
            "system": platform.system(),
            "python": platform.python_version(),
        },
        "kubernetes": "1.37",
        "rounds": arguments.rounds,
        "devices": arguments.devices,
        "aim": {"evaluate": 1.0, "convert_and_evaluate": 1.0},
        "geometric_mean": {
            kind: round(
                statistics.geometric_mean([row[kind]["median"] for row in rows.values()]), 3
            )
            for kind in ("evaluate", "convert_and_evaluate", "compile")
        },
        "ratios": rows,
    }
    text = json.dumps(result, indent=2) + "\n"
    sys.stdout.write(text)
    arguments.output.parent.mkdir(exist_ok=True)
    arguments.output.write_text(text, encoding="utf-8")


def build() -> Path:
    """The oracle, built from ci/upstream."""
    subprocess.run([ROOT / "ci/upstream/build", "1.37", "celoracle"], check=True)
    return ROOT / "build" / "oracle" / "celoracle-1.37"


def measure(
    oracle: Path, expression: str, devices: Sequence[dict[str, Any]], rounds: int
) -> dict[str, Any]:
    """The ratios of one expression, each as median, least and most of the rounds."""
    ratios: dict[str, list[float]] = {"evaluate": [], "convert_and_evaluate": [], "compile": []}
    nanoseconds: dict[str, list[float]] = {"ours": [], "ours_with_conversion": [], "go": []}
    for _ in range(rounds):
        go_evaluate, go_compile = of_go(oracle, expression, devices)
        evaluate, both, compiling = of_ours(expression, devices)
        ratios["evaluate"].append(evaluate / go_evaluate)
        ratios["convert_and_evaluate"].append(both / go_evaluate)
        ratios["compile"].append(compiling / go_compile)
        nanoseconds["ours"].append(evaluate)
        nanoseconds["ours_with_conversion"].append(both)
        nanoseconds["go"].append(go_evaluate)
    row: dict[str, Any] = {"expression": expression}
    for kind, values in ratios.items():
        row[kind] = {
            "median": round(statistics.median(values), 3),
            "min": round(min(values), 3),
            "max": round(max(values), 3),
        }
    row["evaluate_ns"] = {name: round(min(values)) for name, values in nanoseconds.items()}
    return row


def of_go(oracle: Path, expression: str, devices: Sequence[dict[str, Any]]) -> tuple[float, float]:
    """Nanoseconds of one evaluation and of one compilation."""
    text = "".join(
        json.dumps({"id": str(index), "expression": expression, "device": item, "repeat": 20})
        + "\n"
        for index, item in enumerate(devices)
    )
    output = subprocess.run([str(oracle)], input=text, capture_output=True, text=True, check=True)
    answers = [json.loads(line) for line in output.stdout.splitlines()]
    evaluate = statistics.mean(answer["ns"] for answer in answers)
    return evaluate, statistics.median(answer["compileNs"] for answer in answers)


def of_ours(expression: str, devices: Sequence[dict[str, Any]]) -> tuple[float, float, float]:
    """Nanoseconds of one evaluation, of one with conversion, and of one compilation."""
    compiling = fastest(lambda: inspect.unwrap(compile_selector)(expression), 20)
    selector = compile_selector(expression)
    converted = [CelDevice.from_api(DRIVER, item) for item in devices]

    def evaluate() -> None:
        for item in converted:
            try:
                selector.matches(item)
            except CelRuntimeError:
                continue

    def convert() -> None:
        for item in devices:
            try:
                selector.matches(CelDevice.from_api(DRIVER, item))
            except CelRuntimeError:
                continue

    count = len(devices)
    return fastest(evaluate, 20) / count, fastest(convert, 20) / count, compiling


def fastest(action: Callable[[], object], repeat: int) -> float:
    """Nanoseconds of the fastest of several calls."""
    times = []
    for _ in range(repeat):
        start = time.perf_counter_ns()
        action()
        times.append(time.perf_counter_ns() - start)
    return min(times)


if __name__ == "__main__":
    main()
