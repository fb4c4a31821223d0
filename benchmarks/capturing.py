"""What ``capture``, ``explain`` and ``audit`` take of a large cluster: seconds, and memory at most.

    python -m benchmarks.capturing [NODES [DEVICES [CLAIMS]]]

The cluster is the reference's API server, in this process; the commands are processes of their own.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from conformance.targets.reference.front.server import Front
from conformance.targets.reference.front.serving import RealTime, seconds_since_epoch
from conformance.targets.reference.nodes.device_source import NoDriver
from conformance.targets.reference.target import ReferenceOptions, ReferenceTarget
from conformance.targets.seam.values import Obj
from tests.compare import cluster


def fill(backend: RealTime, nodes: int, devices: int, claims: int) -> None:
    """Nodes with devices, as many claims that have some, and one pod that finds none."""
    objects: list[Obj] = [cluster.device_class()]
    for number in range(nodes):
        name = f"node-{number:05}"
        objects += [cluster.node(name), cluster.resource_slice(name, ["40Gi"] * devices)]
    for number in range(claims):
        node, device = divmod(number, devices)
        name, pod = f"claim-{number:05}", f"pod-{number:05}"
        held = cluster.claim(name)
        held["status"] = {
            "allocation": cluster.allocation(f"gpu-{device}", node_name=f"node-{node:05}"),
            "reservedFor": [{"resource": "pods", "name": pod, "uid": f"uid-{pod}"}],
        }
        entry = {"name": "gpu", "resourceClaimName": name}
        running = cluster.pod(pod, nodeName=f"node-{node:05}", resourceClaims=[entry])
        running["metadata"]["uid"] = f"uid-{pod}"
        objects += [held, running]
    entry = {"name": "gpu", "resourceClaimName": "wanted"}
    objects += [cluster.claim("wanted", devices + 1), cluster.pod("waits", resourceClaims=[entry])]
    for obj in objects:
        obj.setdefault("status", {})
        backend.store.add(obj)


def measured(*command: str) -> str:
    """Seconds and mebibytes of a command."""
    began = time.monotonic()
    with subprocess.Popen([sys.executable, "-m", "conformance", *command]) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    took = time.monotonic() - began
    own = usage.ru_utime + usage.ru_stime
    return (
        f"{command[0]}: {took:.1f} s ({own:.1f} s of a processor), {usage.ru_maxrss >> 10} MiB,"
        f" exit {process.returncode}"
    )


def main(nodes: int = 5000, devices: int = 8, claims: int = 20000) -> None:
    options = ReferenceOptions(nodes=(), devices=NoDriver("none"), start=seconds_since_epoch())
    with tempfile.TemporaryDirectory() as folder, ReferenceTarget(options) as target:
        backend = RealTime(target)
        fill(backend, nodes, devices, claims)
        front = Front(backend, Path(folder), "large")
        file = f"{folder}/snapshot.json.gz"
        where = ("--cluster", "kubeconfig", "--kubeconfig", str(front.kubeconfig))
        named = (*where, "--context", "dra-conformance-large")
        print(measured("capture", *named, "-o", file))
        print(f"{Path(file).stat().st_size >> 20} MiB")
        print(measured("explain", file, "ns/waits"))
        print(measured("audit", file))
        front.close()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
