"""Our driver for a kind cluster on this machine, without an image of its own.

Usage: own_driver.py FOLDER CONFIG. Writes the kind configuration again, with nodes that see this
machine's Python and this checkout, and a kustomization that has `ci/deploy/simulated` run the
driver from them.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import yaml

from localkube.binaries.images import SCENARIO_IMAGE
from nvml_driver.simulated import build

ROOT = Path(__file__).resolve().parents[2]
AT = "/machine"
"""Where the node has this machine's folders: its own /usr is another."""


def folders() -> list[Path]:
    """What the driver's Python needs, none inside another."""
    library = build.build_library(build.default_cache_root())  # the container cannot write it
    system = ("/usr", "/lib", "/lib64", "/etc/alternatives")  # the last: `cc` is a link there
    wanted = {*map(Path, (*system, sys.prefix, sys.base_prefix)), ROOT, library.parents[2]}
    wanted |= {Path(sys.executable).resolve().parents[1]}
    return sorted(one for one in wanted if one.exists() and not wanted & {*one.parents})


def main(folder: Path, config: Path) -> None:
    """Write both."""
    names = list(map(str, folders()))
    cluster = yaml.safe_load(config.read_text())
    for node in cluster["nodes"]:
        node["extraMounts"] = [
            {"hostPath": name, "containerPath": AT + name, "readOnly": True} for name in names
        ]
    environment = {
        "PATH": os.environ["PATH"],
        "LD_LIBRARY_PATH": f"{sys.base_prefix}/lib",
        "XDG_CACHE_HOME": str(build.default_cache_root()),
        "PYTHONPATH": str(ROOT),
        "PYTHONUNBUFFERED": "1",
    }
    pod, container = "/spec/template/spec", "/spec/template/spec/containers/0"
    patch = [
        {"op": "replace", "path": f"{container}/image", "value": SCENARIO_IMAGE},
        {
            "op": "add",
            "path": f"{container}/command",
            "value": [sys.executable, "-m", "nvml_driver"],
        },
    ]
    for name, value in environment.items():
        add = {"name": name, "value": value}
        patch.append({"op": "add", "path": f"{container}/env/-", "value": add})
    for number, name in enumerate(names):
        volume = {"name": f"machine-{number}", "hostPath": {"path": AT + name}}
        mount = {"name": f"machine-{number}", "mountPath": name, "readOnly": True}
        patch.append({"op": "add", "path": f"{pod}/volumes/-", "value": volume})
        patch.append({"op": "add", "path": f"{container}/volumeMounts/-", "value": mount})
    folder.mkdir(parents=True, exist_ok=True)
    target = {"kind": "DaemonSet", "name": "nvml-dra-driver"}
    kustomization = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": [os.path.relpath(ROOT / "ci/deploy/simulated", folder.resolve())],
        "patches": [{"target": target, "patch": yaml.safe_dump(patch)}],
    }
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(kustomization))
    (folder / "kind.yaml").write_text(yaml.safe_dump(cluster))


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
