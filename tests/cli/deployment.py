"""What the test of the real deployment needs: the manifests rendered, a usual node, an image."""

from __future__ import annotations

import contextlib
import os
import socket
import socketserver
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import yaml
from pyroute2 import IPRoute

from conformance.targets.opening.own_driver import Simulation, own_driver
from localkube import LocalCluster, LocalOptions
from localkube.controlplane.credentials import SERVICE_IP
from localkube.node.network import call_in_network
from localkube.processes.supervision import Processes
from localkube.state import LOOPBACK, read_state
from nvml_driver.simulated import build
from nvml_driver.simulated.build import default_cache_root
from tests.cli.plain_client import Api, Json
from tests.localkube import local_support as support
from tests.programs import ended

ROOT = Path(__file__).resolve().parents[2]
BASE = ROOT / "ci/deploy/base"
SIMULATED = ROOT / "ci/deploy/simulated"
IMAGE = os.environ.get("NVML_DRA_DRIVER_IMAGE", "")
"""An archive of the built image; without it the driver runs from this machine's files."""


def render(folder: Path) -> list[Json]:
    """What the real kustomize makes of a folder."""
    command = ["go", "-C", str(ROOT / "ci/deploy/kustomize"), "tool", "kustomize", "build"]
    done = ended([*command, str(folder)], timeout=600)
    assert done.returncode == 0, done.stderr
    return [one for one in yaml.safe_load_all(done.stdout) if one]


@contextmanager
def for_clients(name: str) -> Iterator[tuple[Api, str]]:
    """A local cluster of one usual node: its administrator, and the image that has nothing."""
    binaries = support.built_binaries()
    support.require_node_machine()
    with support.short_directory() as directory:
        cluster = LocalCluster(
            LocalOptions(
                name=name,
                state_dir=directory / name,
                binaries=binaries,
                driver=own_driver(Simulation()),
            )
        )
        try:
            access = cluster.up()
            admin = Api.admin(cluster)
            with usual_node(cluster):
                yield admin, access.image
            admin.close()
        finally:
            cluster.down()


def unrestricted(folder: Path) -> Iterator[Json]:
    """`render`, where folders of the node may be mounted, as restricted namespaces do not allow."""
    for one in render(folder):
        if one["kind"] == "Namespace":
            del one["metadata"]["labels"]
        yield one


@contextmanager
def usual_node(cluster: LocalCluster) -> Iterator[None]:
    """Let node-1 be as the manifests expect a node, for as long as the context is open.

    There is no kube-proxy: a forwarder gives the ``kubernetes`` service's address in the node's
    network namespace to the API server.
    """
    node = cluster.layout.node(1)
    init = Processes(cluster.layout).node_init(node.name)
    state = read_state(cluster.layout)
    assert state is not None
    assert state.network is not None
    with call_in_network(init, lambda: service(state.ports.api)) as forwarder:
        threading.Thread(target=forwarder.serve_forever, daemon=True).start()
        try:
            yield
        finally:
            forwarder.shutdown()


def service(port: int) -> socketserver.ThreadingTCPServer:
    """The ``kubernetes`` service in this thread's network namespace: forwards to a port of ours."""
    with IPRoute() as rtnl:
        (loopback,) = rtnl.link_lookup(ifname="lo")
        rtnl.addr("add", index=loopback, address=SERVICE_IP, prefixlen=32)

    class Forward(socketserver.BaseRequestHandler):
        def handle(self) -> None:  # in a thread that is in the machine's own namespace
            with socket.create_connection((LOOPBACK, port)) as upstream:
                back = threading.Thread(target=copy, args=(upstream, self.request))
                back.start()
                copy(self.request, upstream)
                back.join()

    class Forwarder(socketserver.ThreadingTCPServer):
        daemon_threads = True

    return Forwarder((SERVICE_IP, 443), Forward)


def copy(source: socket.socket, sink: socket.socket) -> None:
    """Send on what comes, and the end of it."""
    with contextlib.suppress(OSError):
        while data := source.recv(1 << 16):
            sink.sendall(data)
    with contextlib.suppress(OSError):
        sink.shutdown(socket.SHUT_WR)


def import_image(cluster: LocalCluster, archive: Path) -> None:
    """Load an image archive into node-1's containerd."""
    state = read_state(cluster.layout)
    assert state is not None
    socket = cluster.layout.node(1).containerd_socket
    ctr = [str(state.binaries / "ctr"), "--address", str(socket), "--namespace", "k8s.io"]
    call(*ctr, "images", "import", str(archive))


def from_this_machine(pod: Json, image: str, command: list[str]) -> None:
    """Run a pod's containers from this machine's Python, in an image that has nothing: no build.

    Args:
        pod: its spec, which is changed.
        image: the image that has nothing.
        command: what each container runs; [] is its own command.
    """
    library = build.build_library(default_cache_root())  # the containers cannot write it
    system = ("/usr", "/lib", "/lib64", "/etc/alternatives")  # the last: `cc` is a link there
    wanted = {*map(Path, (*system, sys.prefix, sys.base_prefix)), ROOT}
    wanted |= {Path(sys.executable).resolve().parents[1], library.parents[2]}
    tops = sorted(one for one in wanted if one.exists() and not wanted & {*one.parents})
    pod["volumes"] += [
        {"name": f"machine-{number}", "hostPath": {"path": str(path)}}
        for number, path in enumerate(tops)
    ]
    for container in pod["containers"]:
        container["image"] = image
        container["command"] = command or container["command"]
        container["env"] = [
            *container.get("env", ()),
            {"name": "PATH", "value": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
            {"name": "LD_LIBRARY_PATH", "value": f"{sys.base_prefix}/lib"},
            {"name": "XDG_CACHE_HOME", "value": str(default_cache_root())},
            {"name": "PYTHONPATH", "value": str(ROOT)},
            {"name": "PYTHONUNBUFFERED", "value": "1"},
        ]
        container["volumeMounts"] = [
            *container["volumeMounts"],
            *(
                {"name": f"machine-{number}", "mountPath": str(path), "readOnly": True}
                for number, path in enumerate(tops)
            ),
        ]


def for_a_client(pod: Json, image: str, command: list[str]) -> None:
    """`from_this_machine` for a pod that asks the API server by the name of its service."""
    from_this_machine(pod, image, command)
    # This machine's Python may be in root's home; of root's capabilities the pod has none.
    pod["securityContext"] |= {"runAsUser": 0, "runAsNonRoot": False}
    pod["hostAliases"] = [{"ip": SERVICE_IP, "hostnames": ["kubernetes.default.svc"]}]


def call(*command: str) -> str:
    """Standard output of a command that must succeed."""
    done = ended(command, timeout=300)
    assert done.returncode == 0, f"{command}: {done.stderr}"
    return done.stdout
