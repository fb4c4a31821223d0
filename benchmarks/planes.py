"""A control plane that `benchmarks.scale` starts, and one batch of pods after the other on it."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import Any

import psutil

from benchmarks.workloads import DRA, LABELS, NAMESPACE, PODS_ON_A_NODE, Json, Workload, node
from conformance.compare.audit.once import audit
from conformance.results.events.result import Latency
from conformance.targets.cluster.capabilities import feature_gates
from conformance.targets.cluster.capture import snapshot_of
from conformance.targets.cluster.creator import HollowNodes
from conformance.targets.cluster.latency import ClaimLatencies
from kube.api import Api
from kube.connection import Connection
from kube.informer import Informer
from kube.kubeconfig import ClientConfig, load_config
from kube.nodes import RUN_LABEL
from kube.transport import Stream
from localkube import LocalCluster, LocalOptions

FILLS = ("empty", "half", "full")
_AT_ONCE = 8
_RENEWAL = 25.0  # The node lifecycle controller's grace is 40 s, and 50 s since 1.32.
_LONGEST = 600.0
_PARTS = ("kube-scheduler", "kube-apiserver", "kube-controller-manager", "etcd")


@dataclass
class Measured:
    """One batch of pods: seconds of processor time for it, and MiB of memory after it, by part.

    ``requests``: of the suite, a watch being one.
    """

    pods_per_second: float
    cpu: dict[str, float]
    memory: dict[str, int]
    latency: Latency | None
    requests: int = 0


class _Counted(Connection):
    """Counts requests; one that is repeated counts once."""

    def __init__(self, config: ClientConfig) -> None:
        super().__init__(config)
        self._lock = Lock()
        self.sent = 0

    def read_text(self, *args: Any, **options: Any) -> bytes:
        with self._lock:
            self.sent += 1
        return super().read_text(*args, **options)

    def stream(self, *args: Any, **options: Any) -> Stream:
        with self._lock:
            self.sent += 1
        return super().stream(*args, **options)


class Plane:
    """A control plane with hollow nodes, started here and for this alone."""

    def __init__(
        self, version: str, connection: _Counted, cluster: LocalCluster, nodes: int
    ) -> None:
        self.version, self.nodes = version, nodes
        self.connection, self.cluster = connection, cluster
        self._api = Api(connection)
        self._pool = ThreadPoolExecutor(_AT_ONCE)
        self._hollow = HollowNodes(connection, _RENEWAL)
        self._bound: dict[str, float] = {}
        self._created = 0

    def furnish(self) -> None:
        """Make the namespace and the nodes."""
        namespace = {"metadata": {"name": NAMESPACE, "labels": LABELS}}
        self._make({"apiVersion": "v1", "kind": "Namespace", **namespace})
        list(self._pool.map(self._node, range(self.nodes)))
        accounts = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts"
        _until(lambda: self.connection.request("GET", accounts)["items"], "service account")

    def measure(
        self, workload: Workload, pods: int, scheduler: str, fills: Sequence[str] = FILLS
    ) -> dict[str, Measured]:
        """Each fill -> what came of a batch, up to the first that is not done in time.

        Raises SystemExit: an allocation breaks a rule.
        """
        room = self.nodes * PODS_ON_A_NODE
        list(self._pool.map(self._make, workload.objects(self.nodes)))
        self._created, found = 0, {}
        self._bound.clear()
        with self._followed() as latencies:
            for fill, before in zip(FILLS, (0, room // 2, room - pods), strict=True):
                if fill not in fills:
                    continue
                in_time = self._schedule(workload, before - self._created, scheduler)
                latencies.seconds.clear()
                used, sent, began = self._processor(), self.connection.sent, time.monotonic()
                if not in_time or not self._schedule(workload, pods, scheduler):
                    print(f"{workload.name}, {fill}: {self._missing()}", file=sys.stderr)
                    break
                rate = round(pods / (time.monotonic() - began), 2)
                now = self._processor()
                spent = {name: round(now[name] - used[name], 3) for name in now}
                latency = Latency.of(latencies.seconds)
                asked = self.connection.sent - sent
                found[fill] = Measured(rate, spent, self._memory(), latency, asked)
        self._judge(workload, whole=len(found) == len(fills))
        self._empty()
        return found

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)
        self._hollow.close()

    # -- one batch -----------------------------------------------------------------------------

    def _schedule(self, workload: Workload, pods: int, scheduler: str) -> bool:
        """Make so many pods; whether all that were made are bound in time."""
        numbers = range(self._created, self._created + max(0, pods))
        list(self._pool.map(self._make, (workload.pod(one, scheduler) for one in numbers)))
        self._created += len(numbers)
        return _within(lambda: len(self._bound) >= self._created)

    def _missing(self) -> str:
        return (
            f"{self._created - len(self._bound)} of {self._created} pods wait after {_LONGEST:g} s"
        )

    @contextmanager
    def _followed(self) -> Iterator[ClaimLatencies]:
        latencies = ClaimLatencies(NAMESPACE)
        pods = Informer(self.connection, self._api.discovery.find("v1", "Pod"), NAMESPACE)
        claims = Informer(
            self.connection, self._api.discovery.find(DRA, "ResourceClaim"), NAMESPACE
        )

        def hear(change: str, pod: Json) -> None:
            latencies.hear_pod(change, pod)
            if change != "LISTED" and pod.get("spec", {}).get("nodeName"):
                self._bound.setdefault(pod["metadata"]["uid"], time.monotonic())

        pods.listen(hear)
        claims.listen(latencies.hear_claim)
        pods.start()
        claims.start()
        try:
            yield latencies
        finally:
            pods.stop()
            claims.stop()

    def _judge(self, workload: Workload, whole: bool) -> None:
        """Every allocation keeps the rules, by the reference; a ``whole`` one for each pod."""
        version = self.version.removeprefix("v")
        gates = feature_gates(self._api, version)
        document = snapshot_of(self._api, version, gates, lambda _: None)
        allocated = len(document["allocated"])
        wrong = [str(one) for one in audit(document)]
        if whole and allocated != self._created:
            wrong.append(f"{allocated} claims are allocated for {self._created} pods")
        if wrong:
            raise SystemExit(f"{workload.name}, Kubernetes {self.version}: {'; '.join(wrong[:5])}")

    def _empty(self) -> None:
        """Remove all but the nodes, and wait until it is gone."""
        kinds = ("Pod", "ResourceClaim", "ResourceClaimTemplate", "ResourceSlice", "DeviceClass")
        for kind in kinds:
            resource = self._api.discovery.find("v1" if kind == "Pod" else DRA, kind)
            place = NAMESPACE if resource.namespaced else None
            query = {} if kind == "ResourceClaim" else {"labelSelector": f"{RUN_LABEL}=bench"}
            path = resource.path(place)
            self.connection.request("DELETE", path, query, patience=_LONGEST)
            _until(lambda: not self._api.list(resource, place), f"{kind} to go")  # noqa: B023

    def _node(self, number: int) -> None:
        made = node(number)
        status = made.pop("status")
        self._hollow.adopt(self._make(made), status)

    def _make(self, obj: Json) -> Json:
        resource = self._api.discovery.find(obj["apiVersion"], obj["kind"])
        path = resource.path(obj["metadata"].get("namespace"))
        found: Json = self.connection.request("POST", path, None, obj)
        return found

    def _processor(self) -> dict[str, float]:
        """Seconds of processor time so far, by part."""
        times = {name: one.cpu_times() for name, one in self._processes().items()}
        return {name: one.user + one.system for name, one in times.items()}

    def _memory(self) -> dict[str, int]:
        """MiB of memory at the moment, by part."""
        return {name: one.memory_info().rss >> 20 for name, one in self._processes().items()}

    def _processes(self) -> dict[str, psutil.Process]:
        """The control plane's parts, and this process (``suite``)."""
        of = {row.name: row.pid for row in self.cluster.status() if row.name in _PARTS}
        return {name: psutil.Process(pid) for name, pid in of.items()} | {"suite": psutil.Process()}


def _within(condition: Callable[[], Any]) -> bool:
    end = time.monotonic() + _LONGEST
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def _until(condition: Callable[[], Any], what: str) -> None:
    if not _within(condition):
        raise SystemExit(f"waited {_LONGEST:g} s for {what}")


@contextmanager
def plane(version: str, nodes: int, command: tuple[str, ...] | None) -> Iterator[Plane]:
    """A control plane of a version, with its nodes; on loopback alone, and gone at the end.

    ``command``: of another scheduler beside its own.
    """
    cluster = LocalCluster(
        LocalOptions(
            name=f"bench-{version.split('.')[1]}",
            kubernetes=version,
            nodes=0,
            scheduler_command=command,
        )
    )
    access = cluster.up(lambda line: print(line, file=sys.stderr))
    try:
        connection = _Counted(load_config(access.kubeconfig, access.context))
        found = Plane(version, connection, cluster, nodes)
        try:
            found.furnish()
            yield found
        finally:
            found.close()
            connection.close()
    finally:
        cluster.down()
