"""What `replay --questions` takes for a line about a large cluster, and what part of the whole.

    python -m benchmarks.questions [NODES [DEVICES [CLAIMS]]]

A pod is asked about that would fit a node to come, and one that would not. Each is answered by the
part of the snapshot that it depends on; the same question answered by the whole of it is the
measure. Prints the milliseconds of a line, the median of several, and its share of the whole's.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from benchmarks.snapshots import make_document
from conformance.compare.asking import answer_question, explain_by_all
from conformance.compare.evidence import Obj
from conformance.compare.explain import read_snapshot
from conformance.compare.following import FollowedSnapshot
from tests.compare import cluster

_TIMES = 20


def main(*sizes: str) -> None:
    """Measure on a cluster of so many nodes, devices of each and claims."""
    nodes, devices, claims = (*map(int, sizes), *(5000, 8, 20_000)[len(sizes) :])
    document = make_document(nodes, devices, claims)
    document["claims"].append(cluster.claim("few", 2))
    entries = [{"name": "gpu", "resourceClaimName": "few"}]
    document["pods"].append(cluster.pod("pod-fits", resourceClaims=entries))
    followed = FollowedSnapshot(read_snapshot(json.loads(json.dumps(document))))
    number = 0

    def ask(pod: str) -> None:
        nonlocal number
        number += 1
        added = [cluster.node(f"new-{number}")]
        added.append(cluster.resource_slice(f"new-{number}", ["40Gi"] * devices))
        line = json.dumps({"id": str(number), "pod": f"ns/{pod}", "add": added}).encode()
        [told] = json.loads(answer_question(followed, line))["pods"]
        if bool(told["fits"]) != (pod == "pod-fits"):
            raise RuntimeError(f"{pod}: {told}")

    def tell(kind: str, obj: Obj) -> None:
        events: list[Any] = [{"type": kind, "object": obj}]
        answer_question(followed, json.dumps({"id": "e", "events": events}).encode())

    def ask_after_event() -> None:
        tell("DELETED", document["allocated"][number])
        ask("pod-fits")

    print(f"first of all: {_take(lambda: ask('pod-fits')):.0f} ms")
    whole = {pod: _take(partial(_ask_whole, followed, pod, devices)) for pod in _PODS}
    for name, pod, question in (
        ("does not fit", "pod-waits", partial(ask, "pod-waits")),
        ("fits", "pod-fits", partial(ask, "pod-fits")),
        ("fits, after a claim has gone", "pod-fits", ask_after_event),
    ):
        taken = statistics.median(_take(question) for _ in range(_TIMES))
        print(f"{name}: {taken:.1f} ms, {taken / whole[pod]:.4f} of the whole's")


_PODS = ("pod-waits", "pod-fits")


def _ask_whole(followed: FollowedSnapshot, pod: str, devices: int) -> None:
    added = [cluster.node("new"), cluster.resource_slice("new", ["40Gi"] * devices)]
    explain_by_all(followed, f"ns/{pod}", added, (), ())


def _take(act: Callable[[], None]) -> float:
    """Return the milliseconds of a processor that something takes."""
    start = time.process_time()
    act()
    return (time.process_time() - start) * 1000


if __name__ == "__main__":
    main(*sys.argv[1:])
