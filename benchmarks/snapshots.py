"""What ``explain`` and ``audit`` take of the snapshot of a large cluster, beside another checkout.

    python -m benchmarks.snapshots [ANOTHER_CHECKOUT [NODES [DEVICES [CLAIMS]]]]
    python -m benchmarks.snapshots --dump MEBIBYTES

Both have their Python in .venv. Prints processor seconds and memory of each, and what part of the
other's that is; with --dump what ``audit`` takes of so much of kubectl's YAML, this checkout alone.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from multiprocessing import Process
from pathlib import Path

import yaml

from kube.values import Obj
from tests.compare import cluster


def make_document(nodes: int, devices: int, claims: int) -> Obj:
    """Return the snapshot of a cluster whose devices are in use, and of one pod that waits."""

    def make_pod(number: object, claim: str, **spec: str) -> Obj:
        entries = [{"name": "gpu", "resourceClaimName": claim}]
        pod = cluster.pod(f"pod-{number}", resourceClaims=entries, **spec)
        pod["metadata"]["uid"] = f"uid-{number}"
        return pod

    names = [f"node-{number:05}" for number in range(nodes)]
    held, pods = [], [make_pod("waits", "wanted")]
    for number in range(claims):
        node, device = divmod(number, devices)
        claim = cluster.claim(f"claim-{number:05}")
        user = {"resource": "pods", "name": f"pod-{number}", "uid": f"uid-{number}"}
        allocation = cluster.allocation(f"gpu-{device}", node_name=names[node])
        claim["status"] = {"allocation": allocation, "reservedFor": [user]}
        held.append(claim)
        pods.append(make_pod(number, claim["metadata"]["name"], nodeName=names[node]))
    return cluster.snapshot(
        nodes=tuple(map(cluster.node, names)),
        slices=tuple(cluster.resource_slice(name, ["40Gi"] * devices) for name in names),
        claims=(cluster.claim("wanted", devices + 1),),
        allocated=tuple(held),
        pods=tuple(pods),
    )


def write_document(file: Path, nodes: int, devices: int, claims: int) -> None:
    """Write the snapshot to a file."""
    file.write_text(json.dumps(make_document(nodes, devices, claims)))


def write_dump(file: Path, size: int) -> int:
    """Write at least so many bytes as kubectl prints them; return how many nodes they have.

    A third is of kinds that no allocation depends on, and most of a pod is env.
    """
    node = cluster.node("node-@")
    node["status"]["images"] = [
        {"names": [f"registry.example.com/image-{number}@sha256:{'ab' * 32}"], "sizeBytes": number}
        for number in range(20)
    ]
    objects = [node, cluster.resource_slice("node-@", ["40Gi"] * 8)]
    for device, item in enumerate(objects[1]["spec"]["devices"]):
        item["attributes"]["uuid"] = {"string": f"GPU-@-{device}"}
    env = [{"name": f"VARIABLE_{number}", "value": f"value-{number}-@"} for number in range(12)]
    for device in range(4):
        claim = cluster.claim(f"claim-@-{device}")
        user = {"resource": "pods", "name": f"pod-@-{device}", "uid": f"uid-@-{device}"}
        allocation = cluster.allocation(f"gpu-{device}", node_name="node-@")
        claim["status"] = {"allocation": allocation, "reservedFor": [user]}
        entries = [{"name": "gpu", "resourceClaimName": claim["metadata"]["name"]}]
        pod = cluster.pod(user["name"], resourceClaims=entries, nodeName="node-@")
        pod["metadata"]["uid"] = user["uid"]
        pod["spec"]["containers"] = [{"name": "main", "image": "train:1", "env": env}]
        objects += [claim, pod]
    for kind in ["Event"] * 8 + ["Secret"]:
        metadata = {"name": f"other-@-{len(objects)}", "namespace": "ns"}
        objects.append(
            {"apiVersion": "v1", "kind": kind, "metadata": metadata, "message": "text of @ " * 20}
        )
    text = yaml.dump_all(
        json.loads(json.dumps(objects)), Dumper=yaml.CSafeDumper, explicit_start=True
    )
    number = 0
    with file.open("w") as written:
        written.write(yaml.safe_dump(json.loads(json.dumps(cluster.device_class()))))
        while written.tell() < size:
            written.write(text.replace("@", f"{number:05}"))
            number += 1
    return number


def measure_dump(mebibytes: int) -> None:
    """Measure what `audit` takes of a dump."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "dump.yaml")
        nodes = write_dump(file, mebibytes << 20)
        seconds, size = measure_command(Path.cwd(), "audit", str(file))
        print(
            f"audit of {mebibytes} MiB of YAML, {nodes} nodes: {seconds:.1f} s of a processor,"
            f" {size} MiB"
        )


def measure_command(checkout: Path, *command: str) -> tuple[float, int]:
    """Return the processor seconds and the mebibytes that a command of a checkout takes."""
    python = checkout / ".venv" / "bin" / "python"
    with subprocess.Popen(
        [python, "-m", "conformance", *command], stdout=subprocess.DEVNULL, cwd=checkout
    ) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss >> 10


def main(other: str = "", *sizes: str) -> None:
    """Measure both commands, of this checkout and of the other."""
    nodes, devices, claims = (*map(int, sizes), *(5000, 8, 20_000)[len(sizes) :])
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "snapshot.json")
        # In a process of its own: what this one has in memory counts as that of its children.
        writing = Process(target=write_document, args=(file, nodes, devices, claims))
        writing.start()
        writing.join()
        for command in (["explain", str(file), "ns/pod-waits"], ["audit", str(file)]):
            seconds, size = measure_command(Path.cwd(), *command)
            line = f"{command[0]}: {seconds:.1f} s of a processor, {size} MiB"
            if other:
                other_seconds, other_size = measure_command(Path(other), *command)
                line += (
                    f"; {seconds / other_seconds:.2f} and {size / other_size:.2f} of the other's"
                )
            print(line, flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--dump"]:
        measure_dump(int(sys.argv[2]))
    else:
        main(*sys.argv[1:])
