"""What `lint` of many manifests costs, beside what it costs to read them with yaml's C loader.

Run with ``python -m benchmarks.lint``. Both are measured as processes, less what the same process
takes for four of the files; of each the least of the rounds, as whatever else runs only adds to it.
The result goes to ``benchmarks/results/lint.json``.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import defaultdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import yaml

from benchmarks.start import processor_seconds
from conformance import __version__

RESULTS: Final = Path(__file__).parent / "results" / "lint.json"
FILES: Final = 400
FEW: Final = 4
"""Files of which there is one of each kind: what all that is imported takes."""

_READ: Final = """
import sys, pathlib, yaml
for file in sorted(pathlib.Path(sys.argv[1]).iterdir()):
    list(yaml.load_all(file.read_text(), Loader=yaml.CSafeLoader))
"""
API: Final = "resource.k8s.io/v1"


def make_manifests(number: int) -> list[dict[str, object]]:
    """Return the objects of a file: a pod of a template, a Deployment, a claim or a slice."""
    name = {"name": f"object-{number}"}
    exactly = {"deviceClassName": "gpu.example.com", "count": 2}
    devices = {"requests": [{"name": "gpu", "exactly": exactly}]}
    container = {"name": "ctr0", "image": "busybox:1.37", "env": [{"name": "A", "value": "b"}]}
    match number % FEW:
        case 0:
            # Of a repository's files many have the same expression, which is compiled once.
            memory = f"{number % 16}Gi"
            expression = f'device.capacity["gpu.example.com"].m.isGreaterThan(quantity("{memory}"))'
            selected = {**exactly, "selectors": [{"cel": {"expression": expression}}]}
            requests = [{"name": "gpu", "exactly": selected}]
            entry = {"name": "gpu", "resourceClaimTemplateName": name["name"]}
            asking = {**container, "resources": {"claims": [{"name": "gpu"}]}}
            spec: dict[str, object] = {"containers": [asking], "resourceClaims": [entry]}
            template = {"spec": {"devices": {"requests": requests}}}
            return [
                _object(API, "ResourceClaimTemplate", name, template),
                _object("v1", "Pod", name, spec),
            ]
        case 1:
            labels = {"app": name["name"]}
            pod = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
            spec = {"replicas": 3, "selector": {"matchLabels": labels}, "template": pod}
            ports = {"selector": labels, "ports": [{"port": 80, "targetPort": 80}]}
            return [
                _object("apps/v1", "Deployment", name, spec),
                _object("v1", "Service", name, ports),
            ]
        case 2:
            selector = {"cel": {"expression": 'device.driver == "gpu.example.com"'}}
            class_name = {"name": "gpu.example.com"}
            return [
                _object(API, "DeviceClass", class_name, {"selectors": [selector]}),
                _object(API, "ResourceClaim", name, {"devices": devices}),
            ]
    published = [
        {
            "name": f"gpu-{index}",
            "attributes": {"uuid": {"string": f"gpu-{number}-{index}"}, "numa": {"int": index}},
            "capacity": {"memory": {"value": "80Gi"}},
        }
        for index in range(8)
    ]
    pool = {"name": name["name"], "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "gpu.example.com", "nodeName": name["name"], "pool": pool}
    return [_object(API, "ResourceSlice", name, {**spec, "devices": published})]


def _object(api_version: str, kind: str, metadata: object, spec: object) -> dict[str, object]:
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}


def main() -> None:
    """Measure, print and write down."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    commands = {
        "yaml": (sys.executable, "-c", _READ),
        "lint": (sys.executable, "-m", "conformance", "lint"),
    }
    seconds: dict[tuple[str, str], list[float]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as root:
        for folder, count in (("all", FILES), ("few", FEW)):
            Path(root, folder).mkdir()
            for number in range(count):
                text = yaml.safe_dump_all(make_manifests(number), sort_keys=False)
                Path(root, folder, f"{number:03}.yaml").write_text(text, encoding="utf-8")
        for _ in range(rounds):  # one after the other, so that all meet the same load
            for name, command in commands.items():
                for folder in ("all", "few"):
                    taken = processor_seconds((*command, folder), Path(root))
                    seconds[name, folder].append(taken)
    least = {
        name: round(min(seconds[name, "all"]) - min(seconds[name, "few"]), 3) for name in commands
    }
    result = {
        "date": datetime.now(UTC).date().isoformat(),
        "suite": __version__,
        "files": FILES,
        "rounds": rounds,
        "processor_seconds": least,
        "lint_to_yaml": round(least["lint"] / least["yaml"], 2),
    }
    print(json.dumps(result, indent=2))
    RESULTS.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
