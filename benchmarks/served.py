"""What kubesim's served API server costs, beside etcd and kube-apiserver on the same machine.

Run with ``python -m benchmarks.served``; it has the binaries of a local cluster built if they are
not there. Both servers are measured in turns, each on one core, and the client on the others. A
machine's speed changes with its load: what counts are the ratios, ours to theirs, of the medians of
one run. They go to ``benchmarks/results/served.json``.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Final

import psutil
import urllib3
import yaml

from benchmarks.bare import Server, run_bare_server
from conformance import __version__
from localkube.binaries.build import resolve_binaries
from localkube.layout import default_cache
from tests.kubesim.front import watchers

RESULTS: Final = Path(__file__).parent / "results" / "served.json"
KUBERNETES: Final = "1.37.2"
DRA: Final = "/apis/resource.k8s.io/v1"
CLAIMS: Final = f"{DRA}/namespaces/default/resourceclaims"
_SLICES_OF_A_NODE: Final = 2
_DEVICES_OF_A_SLICE: Final = 4
_FILLING_CLIENTS: Final = 4
_START_SECONDS: Final = 120.0

Json = dict[str, Any]


class Client:
    """Requests with the token of a kubeconfig, over connections that are kept."""

    def __init__(self, kubeconfig: Path) -> None:
        config = yaml.safe_load(kubeconfig.read_text())
        cluster = config["clusters"][0]["cluster"]
        self._server = cluster["server"]
        self._headers = {
            "authorization": f"Bearer {config['users'][0]['user']['token']}",
            "content-type": "application/json",
        }
        authority = kubeconfig.parent / "pki" / "ca.crt"
        self._pool = urllib3.PoolManager(ca_certs=str(authority), maxsize=_FILLING_CLIENTS)

    def create(self, path: str, obj: Json) -> None:
        """Create an object. Raises SystemExit: it is refused."""
        answer = self._pool.request(
            "POST", self._server + path, body=json.dumps(obj), headers=self._headers
        )
        if answer.status != 201:
            raise SystemExit(f"POST {path}: {answer.status} {answer.data[:500]!r}")

    def is_answered(self, path: str) -> bool:
        with suppress(urllib3.exceptions.HTTPError):
            url = self._server + path
            answer = self._pool.request("GET", url, headers=self._headers, retries=False)
            return answer.status == 200
        return False

    def list_objects(self, path: str) -> int:
        """List all ResourceSlices in one answer; returns how many there are."""
        answer = self._pool.request("GET", self._server + path, headers=self._headers)
        return answer.data.count(b'"pool":')

    def watch_objects(self, path: str, number: int) -> int:
        """Begin a watch, read so many events, and end it; returns how many there were."""
        url = f"{self._server}{path}?watch=true"
        response = self._pool.request("GET", url, headers=self._headers, preload_content=False)
        lines = 0
        for chunk in response.stream(1 << 16):
            lines += chunk.count(b"\n")
            if lines >= number:
                break
        response.close()
        return lines


@contextmanager
def run_kubesim(folder: Path, prefix: tuple[str, ...]) -> Iterator[Server]:
    """Start ``python -m kubesim serve`` without waiting until it answers."""
    # With bytecode, as pip installs it; the first start writes it where there is none.
    environment = os.environ | {"XDG_STATE_HOME": str(folder), "PYTHONDONTWRITEBYTECODE": ""}
    command = (*prefix, sys.executable, "-m", "kubesim", "serve", "--kubernetes", KUBERNETES)
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE) as process:
        try:
            yield Server((process,), folder / "dra-conformance/kubesim/default/kubeconfig")
        finally:
            process.terminate()


Start = Callable[[Path, tuple[str, ...]], Any]


@contextmanager
def start_server(start: Start, prefix: tuple[str, ...]) -> Iterator[tuple[Server, Client, float]]:
    """Start a server; yields it, a client, and after how many seconds the first answer came."""
    with tempfile.TemporaryDirectory() as folder:
        begin = time.monotonic()
        with start(Path(folder), prefix) as server:
            while not server.kubeconfig.exists():
                time.sleep(0.005)
            client = Client(server.kubeconfig)
            while not client.is_answered("/api/v1/namespaces/default"):
                if time.monotonic() > begin + _START_SECONDS:
                    raise SystemExit(f"{server.kubeconfig}: no answer in {_START_SECONDS:g} s")
                time.sleep(0.005)
            yield server, client, time.monotonic() - begin


def make_claim(name: str) -> Json:
    """Return a claim for a device of a class that need not exist."""
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com"}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name},
        "spec": {"devices": {"requests": [request]}},
    }


def make_node(number: int) -> Json:
    """Return a node without a kubelet."""
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"bench-{number}"}}


def make_slice(number: int) -> Json:
    """Return one of the slices of a node's pool."""
    node, index = divmod(number, _SLICES_OF_A_NODE)
    devices = [
        {
            "name": f"gpu-{index}-{device}",
            "attributes": {
                "model": {"string": "T4"},
                "index": {"int": device},
                "uuid": {"string": f"GPU-{node}-{index}-{device}"},
                "driverVersion": {"version": "580.65.6"},
            },
            "capacity": {"memory": {"value": "16Gi"}},
        }
        for device in range(_DEVICES_OF_A_SLICE)
    ]
    pool = {"name": f"bench-{node}", "generation": 1, "resourceSliceCount": _SLICES_OF_A_NODE}
    spec = {
        "driver": "gpu.example.com",
        "nodeName": f"bench-{node}",
        "pool": pool,
        "devices": devices,
    }
    metadata = {"name": f"bench-{number}"}
    kind = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice"}
    return {**kind, "metadata": metadata, "spec": spec}


def measure_rates(server: Server, action: Callable[[], int]) -> tuple[float, float]:
    """Return how many objects a second a server handles, and a second of its processors' time.

    ``action``: returns how many it handled.
    """
    begin, begin_seconds = time.monotonic(), _read_processor_seconds(server)
    handled = action()
    seconds = time.monotonic() - begin
    # In clock ticks: what takes less than one counts as one.
    processor_seconds = max(0.01, _read_processor_seconds(server) - begin_seconds)
    return handled / seconds, handled / processor_seconds


def fill(client: Client, nodes: int, claims: int) -> int:
    """Create nodes, their slices and claims; returns how many objects that are."""
    slices = nodes * _SLICES_OF_A_NODE
    with ThreadPoolExecutor(_FILLING_CLIENTS) as pool:
        for path, make, number in (
            ("/api/v1/nodes", make_node, nodes),
            (f"{DRA}/resourceslices", make_slice, slices),
            (CLAIMS, lambda number: make_claim(f"filling-{number}"), claims),
        ):
            list(pool.map(lambda number: client.create(path, make(number)), range(number)))  # noqa: B023
    return nodes + slices + claims


def measure_start(start: Start) -> dict[str, float]:
    """Start a server on all cores: theirs has processes and threads for them."""
    with start_server(start, ()) as (server, _, seconds):
        cpu_seconds = _read_processor_seconds(server)
        return {"start, seconds": seconds, "start, seconds of processor time": cpu_seconds}


def measure_creation(start: Start, prefix: tuple[str, ...], claims: int) -> dict[str, float]:
    """Start a server and create claims, one after the other."""
    with start_server(start, prefix) as (server, client, _):

        def create_claims() -> int:
            for number in range(claims):
                client.create(CLAIMS, make_claim(f"claim-{number}"))
            return claims

        rate, processor_rate = measure_rates(server, create_claims)
        return {
            "create, claims a second": rate,
            "create, claims a second of processor time": processor_rate,
        }


def measure_watched(
    start: Start, prefix: tuple[str, ...], watches: int, seconds: float
) -> dict[str, float]:
    """Start a server and create claims for a time, by several clients, while many watch.

    Raises SystemExit: a watch lost an event, or had one twice or in another order.
    """
    with start_server(start, prefix) as (server, client, _):
        program = (sys.executable, watchers.__file__, str(server.kubeconfig), f"{CLAIMS}?watch=1")
        command = (*program, str(watches), "last")
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as watching:
            assert watching.stdout is not None
            watching.stdout.readline()  # all have begun
            until = time.monotonic() + seconds

            def create_claims(number: int) -> int:
                created = 0
                while time.monotonic() < until:
                    client.create(CLAIMS, make_claim(f"claim-{number}-{created}"))
                    created += 1
                return created

            def create_and_watch() -> int:
                with ThreadPoolExecutor(_FILLING_CLIENTS) as pool:
                    created = sum(pool.map(create_claims, range(_FILLING_CLIENTS)))
                client.create(CLAIMS, make_claim("last"))
                assert watching.stdout is not None
                seen = json.loads(watching.stdout.readline())
                lines = {tuple(watch) for watch in seen["watches"]}
                if len(lines) != 1 or {created + 1} != {len(seen["names"]), len({*seen["names"]})}:
                    raise SystemExit(f"{created + 1} claims were created, watches saw {lines}")
                return created

            rate, processor_rate = measure_rates(server, create_and_watch)
        return {
            "create while many watch, claims a second": rate,
            "create while many watch, claims a second of processor time": processor_rate,
        }


def measure_large(
    start: Start, prefix: tuple[str, ...], nodes: int, claims: int, rounds: int
) -> dict[str, float]:
    """Fill a server, list and watch its slices, and look at its memory."""
    with start_server(start, prefix) as (server, client, _):
        _, filling_rate = measure_rates(server, lambda: fill(client, nodes, claims))
        path, slices = f"{DRA}/resourceslices", nodes * _SLICES_OF_A_NODE
        listing = partial(client.list_objects, path)
        watching = partial(client.watch_objects, path, slices)
        lists = [measure_rates(server, listing) for _ in range(rounds)]
        watches = [measure_rates(server, watching) for _ in range(rounds)]
        resident = sum(
            psutil.Process(process.pid).memory_info().rss for process in server.processes
        )
        return {
            "create, objects a second of processor time": filling_rate,
            "list, slices a second": statistics.median(rate for rate, _ in lists),
            "list, slices a second of processor time": statistics.median(rate for _, rate in lists),
            "watch, slices a second": statistics.median(rate for rate, _ in watches),
            "watch, slices a second of processor time": statistics.median(
                rate for _, rate in watches
            ),
            "memory, MiB": resident / (1 << 20),
        }


def _read_processor_seconds(server: Server) -> float:
    times = [psutil.Process(process.pid).cpu_times() for process in server.processes]
    return sum(one.user + one.system for one in times)


def _medians(measured: Sequence[dict[str, float]]) -> dict[str, float]:
    return {name: statistics.median(row[name] for row in measured) for name in measured[0]}


def main() -> None:
    """Measure, print and write down."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--claims", type=int, default=20_000)
    parser.add_argument("--created", type=int, default=2000)
    parser.add_argument("--watches", type=int, default=50)
    parser.add_argument("--watched-seconds", type=float, default=30.0)
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args()
    binaries = resolve_binaries(None, default_cache(), ("etcd", "kube-apiserver"), print)
    servers: dict[str, Start] = {
        "kubesim": run_kubesim,
        "kube-apiserver": lambda folder, prefix: run_bare_server(binaries, folder, prefix),
    }
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, cores[1:] or cores)
    prefix = ("taskset", "-c", str(cores[0]))
    small: dict[str, list[dict[str, float]]] = {name: [] for name in servers}
    for _ in range(options.rounds):
        for name, start in servers.items():
            created = measure_creation(start, prefix, options.created)
            small[name].append(measure_start(start) | created)
    medians = {
        name: _medians(small[name])
        | measure_watched(start, prefix, options.watches, options.watched_seconds)
        | measure_large(start, prefix, options.nodes, options.claims, options.rounds)
        for name, start in servers.items()
    }
    ours, theirs = medians.values()
    result: Json = {
        "date": datetime.now(UTC).date().isoformat(),
        "suite": __version__,
        "machine": {
            "processor": platform.machine(),
            "cores": len(cores),
            "python": platform.python_version(),
        },
        "rounds": options.rounds,
        "nodes": options.nodes,
        "slices": options.nodes * _SLICES_OF_A_NODE,
        "claims": options.claims,
        "watches": options.watches,
        **{
            name: {key: round(value, 2) for key, value in row.items()}
            for name, row in medians.items()
        },
        "kubesim to kube-apiserver": {key: round(ours[key] / theirs[key], 2) for key in ours},
    }
    print(json.dumps(result, indent=2))
    options.output.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
