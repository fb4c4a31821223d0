"""Small questions, and a check of a program as its user runs it."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from typer.testing import CliRunner, Result

from conformance.cli.app import app

Json = dict[str, Any]
GPU = "gpu.example.com"
PROGRAMS = Path(__file__).parent / "programs"


def python(name: str, *arguments: str) -> str:
    """The command of a program of ours."""
    return shlex.join([sys.executable, str(PROGRAMS / name), *arguments])


def question(identifier: str, *, devices: int = 2, count: int = 1, **more: Any) -> Json:
    """One node with so many devices, of which a pod wants some."""
    pool = {"name": "node-0", "generation": 1, "resourceSliceCount": more.pop("slices_of_pool", 1)}
    published = [
        {"name": f"gpu-{index}", **more.pop(f"gpu{index}", {})} for index in range(devices)
    ]
    spec = {"driver": GPU, "pool": pool, "nodeName": "node-0", "devices": published}
    selector = {"cel": {"expression": f'device.driver == "{GPU}"'}}
    request = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": count}
    return {
        "id": identifier,
        "features": {"deviceTaints": True},
        "slices": [
            {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "ResourceSlice",
                "metadata": {"name": "s0"},
                "spec": spec,
            }
        ],
        "deviceClasses": [
            {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "DeviceClass",
                "metadata": {"name": "gpu"},
                "spec": {"selectors": [selector]},
            }
        ],
        "nodes": [{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-0"}}],
        "claims": [
            {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "ResourceClaim",
                "metadata": {"name": "c", "namespace": "default", "uid": "c"},
                "spec": {"devices": {"requests": [{"name": "r", "exactly": request}]}},
            }
        ],
        "allocated": [],
        **more,
    }


def write(folder: Path, questions: Sequence[Json]) -> Path:
    """A file of questions."""
    file = folder / "questions.ndjson"
    file.write_text("".join(json.dumps(item) + "\n" for item in questions), encoding="utf-8")
    return file


def run(*arguments: object) -> Result:
    """Run `dra-conformance allocators check`."""
    return CliRunner().invoke(app, ["allocators", "check", *map(str, arguments)])


def report(folder: Path) -> Json:
    """The JSON report in a folder."""
    document: Json = json.loads((folder / "allocators.json").read_text())
    return document
