"""The command line of ``python -m kubesim``.

It is read by argparse, because to import another reader took a sixth of the time until a server
answers.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

from kube.base.errors import ConformanceError, ExitCode, UsageError
from kube.base.folders import state_folder
from kube.base.signals import interrupted_by_signals
from kubesim.front.serving import Served, seconds_since_epoch
from kubesim.nodes.node import Node
from kubesim.world import KUBERNETES, World


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}; see {self.prog} --help")


def _build_parser() -> argparse.ArgumentParser:
    parser = _Parser(
        "python -m kubesim",
        description="A Kubernetes in one process: API server, scheduler, controllers and kubelets.",
        allow_abbrev=False,
    )
    text = "Serve a simulated Kubernetes until Ctrl-C or SIGTERM, and print how to use it."
    commands = parser.add_subparsers(dest="command", metavar="serve", required=True)
    command = commands.add_parser("serve", help=text, description=text, allow_abbrev=False)
    default = "[default: %(default)s]"
    command.add_argument(
        "--name", default="default", help=f"name; it is part of the context's {default}"
    )
    command.add_argument(
        "--nodes",
        type=_number_type(1000),
        default=1,
        metavar="N",
        help=f"nodes with a kubelet {default}",
    )
    command.add_argument(
        "--kubernetes",
        default=KUBERNETES,
        metavar="VERSION",
        help=f"version whose rules apply {default}",
    )
    command.add_argument(
        "--feature-gate",
        action="append",
        default=[],
        metavar="NAME=true|false",
        help="feature gate to set; can be repeated",
    )
    command.add_argument(
        "--port", type=_number_type(65535), default=0, help="port of loopback; 0, the default: any"
    )
    command.add_argument(
        "--kubeconfig",
        type=Path,
        metavar="FILE",
        help="new file to write the kubeconfig to [default: one of its own]",
    )
    return parser


def _number_type(most: int) -> Callable[[str], int]:
    """Return what reads a number from 0 to another."""

    def read(text: str) -> int:
        if text.isascii() and text.isdigit() and len(text) < 10 and int(text) <= most:
            return int(text)
        raise argparse.ArgumentTypeError(f"{text!r}: must be a number from 0 to {most}")

    return read


def serve(
    name: str,
    nodes: int,
    kubernetes: str,
    gates: Sequence[str],
    port: int,
    kubeconfig: Path | None,
) -> None:
    """Serve a simulated Kubernetes until Ctrl-C or SIGTERM, and print how to use it.

    Args:
        name: part of its context's name.
        nodes: how many with a kubelet.
        kubernetes: the version whose rules apply.
        gates: feature gates as ``NAME=true`` or ``NAME=false``.
        port: of loopback; 0 is any free one.
        kubeconfig: a new file to write the kubeconfig to; None: only to one of its own.

    Raises UsageError: one of these cannot be used.
    """
    if kubeconfig is not None and kubeconfig.exists():
        raise UsageError(f"--kubeconfig {kubeconfig} exists; name another file, or remove it first")
    served = Served(name, state_folder() / "kubesim" / name, "simulated Kubernetes", "`kill {pid}`")
    try:
        world = World(
            kubernetes_version=kubernetes,
            gates=dict(map(_gate, gates)),
            start=seconds_since_epoch(),
            nodes=[Node(f"node-{number}") for number in range(1, nodes + 1)],
        )
    except ValueError as error:
        raise UsageError(str(error)) from None
    with served.serving(world, port=port) as backend:
        if kubeconfig is not None:
            _write_new(kubeconfig, served.kubeconfig.read_bytes())
        try:
            print(f"export KUBECONFIG={kubeconfig or served.kubeconfig}", flush=True)
            backend.run()
        except KeyboardInterrupt:
            print(f"ended the simulated Kubernetes {name}", file=sys.stderr)
        finally:
            if kubeconfig is not None:
                kubeconfig.unlink(missing_ok=True)


def _gate(text: str) -> tuple[str, bool]:
    """Return a feature gate and its value. Raises UsageError."""
    gate, _, value = text.partition("=")
    if not gate or value not in {"true", "false"}:
        raise UsageError(f"--feature-gate {text!r}: must be NAME=true or NAME=false")
    return gate, value == "true"


def _write_new(file: Path, content: bytes) -> None:
    """Write a file that only its owner may read, unless there is one. Raises UsageError."""
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
    except OSError as error:
        raise UsageError(
            f"--kubeconfig {file} cannot be written: {error.strerror}; name another file"
        ) from None


def main() -> int:
    """Run the command line; bad input is one message. Returns the exit code."""
    try:
        with interrupted_by_signals():
            options = _build_parser().parse_args()
            serve(
                options.name,
                options.nodes,
                options.kubernetes,
                options.feature_gate,
                options.port,
                options.kubeconfig,
            )
    except ConformanceError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("error: interrupted", file=sys.stderr)
        return ExitCode.INCONCLUSIVE
    return ExitCode.CONFORMANT
