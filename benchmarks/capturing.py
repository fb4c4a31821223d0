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

import urllib3

from conformance.targets.reference.device_source import NoDriver
from conformance.targets.reference.serving import real_time
from conformance.targets.reference.target import ReferenceOptions, ReferenceTarget
from kube.values import Obj
from kubesim.front.server import Front
from kubesim.front.serving import RealTime, seconds_since_epoch
from tests.compare import cluster


def fill(backend: RealTime, nodes: int, devices: int, claims: int) -> None:
    """Nodes with devices, as many claims that have some, and one pod that finds none."""

    def add(obj: Obj) -> Obj:
        return backend.store.add({"status": {}, **obj})

    add(cluster.device_class())
    for number in range(nodes):
        name = f"node-{number:05}"
        add(cluster.node(name))
        add(cluster.resource_slice(name, ["40Gi"] * devices))
    for number in range(claims):
        node, device = divmod(number, devices)
        name, place = f"claim-{number:05}", f"node-{node:05}"
        entry = {"name": "gpu", "resourceClaimName": name}
        pod = add(cluster.pod(f"pod-{number:05}", nodeName=place, resourceClaims=[entry]))
        meta = pod["metadata"]
        held = cluster.claim(name)
        held["status"] = {
            "allocation": cluster.allocation(f"gpu-{device}", node_name=place),
            "reservedFor": [{"resource": "pods", "name": meta["name"], "uid": meta["uid"]}],
        }
        add(held)
    entry = {"name": "gpu", "resourceClaimName": "wanted"}
    add(cluster.claim("wanted", devices + 1))
    add(cluster.pod("waits", resourceClaims=[entry]))


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


def watched(backend: RealTime, *named: str) -> str:
    """What `audit --watch` took until it told of a device that was given away twice.

    How soon that is says nothing here: the reference's controllers look at all claims first.
    """
    command = [sys.executable, "-m", "conformance", "audit", "--watch", "--output=json", *named]
    with subprocess.Popen(
        [*command, "--metrics=0"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        address = process.stderr.readline().split()[-1]
        while not judged(address):
            time.sleep(1)
        double = cluster.claim("double")
        double["status"] = {"allocation": cluster.allocation("gpu-0", node_name="node-00000")}
        with backend.changing():
            backend.store.add(double)
        told = process.stdout.readline()
        assert "double-allocation" in told, told
        process.terminate()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    own = usage.ru_utime + usage.ru_stime
    return (
        f"audit --watch: {own:.1f} s of a processor to start and find it,"
        f" {usage.ru_maxrss >> 10} MiB, exit {process.returncode}"
    )


def judged(address: str) -> bool:
    """Whether the first look is over."""
    lines = urllib3.request("GET", address).data.decode().splitlines()
    [count] = [line for line in lines if line.startswith("dra_audit_judging_seconds_count")]
    return float(count.split()[1]) > 0


def main(nodes: int = 5000, devices: int = 8, claims: int = 20000) -> None:
    options = ReferenceOptions(nodes=(), devices=NoDriver("none"), start=seconds_since_epoch())
    with tempfile.TemporaryDirectory() as folder, ReferenceTarget(options) as target:
        backend = real_time(target)
        fill(backend, nodes, devices, claims)
        front = Front(backend, Path(folder), "large")
        file = f"{folder}/snapshot.json.gz"
        where = ("--cluster", "kubeconfig", "--kubeconfig", str(front.kubeconfig))
        named = (*where, "--context", "dra-conformance-large")
        print(measured("capture", *named, "-o", file))
        print(f"{Path(file).stat().st_size >> 20} MiB")
        print(measured("explain", file, "ns/waits"))
        print(measured("audit", file))
        print(watched(backend, *named))
        front.close()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
