"""Developer's entry point: `python -m conformance.clusters.local up|down|status|restart|kill`.

The product's command is `dra-conformance cluster`; this one needs nothing above this package.
"""

from __future__ import annotations

import argparse
import shlex
import sys
import time
from pathlib import Path

from conformance.clusters.base import ClusterError, ClusterUsageError
from conformance.clusters.local.cluster import LocalCluster
from conformance.clusters.local.options import LocalOptions


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m conformance.clusters.local")
    parser.add_argument("action", choices=("up", "down", "status", "restart", "kill"))
    parser.add_argument("component", nargs="?", default="", help="for restart and kill")
    parser.add_argument("--name", default="default")
    parser.add_argument("--state-dir", type=Path)
    parser.add_argument("--binaries", type=Path)
    parser.add_argument("--nodes", type=int, default=1)
    parser.add_argument("--no-driver", action="store_true")
    parser.add_argument("--driver-command", type=shlex.split)
    parser.add_argument("--driver-name", default="gpu.nvidia.com")
    parser.add_argument("--feature-gate", action="append", default=[], metavar="NAME=true|false")
    return parser


def _gates(texts: list[str]) -> dict[str, bool]:
    gates = {}
    for text in texts:
        name, _, value = text.partition("=")
        if value not in ("true", "false"):
            raise ClusterUsageError(f"feature gate {text!r}: write NAME=true or NAME=false")
        gates[name] = value == "true"
    return gates


def main(arguments: list[str]) -> int:
    """Do one action; returns the exit code."""
    given = _parser().parse_intermixed_args(arguments)
    started = time.monotonic()

    def progress(line: str) -> None:
        print(f"[{time.monotonic() - started:5.1f} s] {line}", file=sys.stderr, flush=True)

    try:
        cluster = LocalCluster(
            LocalOptions(
                name=given.name,
                state_dir=given.state_dir,
                binaries=given.binaries,
                nodes=given.nodes,
                feature_gates=_gates(given.feature_gate),
                driver=not given.no_driver,
                driver_command=tuple(given.driver_command) if given.driver_command else None,
                driver_name=given.driver_name,
                persistent=True,
            )
        )
        if given.action == "up":
            access = cluster.up(progress)
            progress(f"ready: Kubernetes {access.kubernetes_version}, context {access.context}")
            print(access.kubeconfig)
        elif given.action == "down":
            cluster.down(progress)
            progress("removed")
        elif given.action == "status":
            for one in cluster.status():
                state = "running" if one.running else "stopped"
                print(f"{one.name:28} {state}  pid {one.pid:<8} {one.log}")
        else:
            getattr(cluster, given.action)(given.component)
            progress("done")
    except ClusterUsageError as error:
        print(error, file=sys.stderr)
        return 2
    except ClusterError as error:
        print(error, file=sys.stderr)
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
