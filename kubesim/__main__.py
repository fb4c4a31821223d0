"""``python -m kubesim serve``: a simulated Kubernetes over HTTPS, for kubectl and any client."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from kube.base.commandline import HelpCommand
from kube.base.errors import ConformanceError, ExitCode, UsageError
from kube.base.folders import state_folder
from kube.base.signals import interrupted_by_signals
from kubesim.front.serving import Served, seconds_since_epoch
from kubesim.nodes.node import Node
from kubesim.world import KUBERNETES, World

app = typer.Typer(
    help="A Kubernetes in one process: API server, scheduler, controllers and kubelets.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


@app.callback()
def _command() -> None:
    """Have a name before the options, though there is one command: ``kubesim serve``."""


@app.command(cls=HelpCommand, short_help="Serve it until Ctrl-C or SIGTERM.")
def serve(
    name: Annotated[
        str, typer.Option(metavar="NAME", help="Name; it is part of the context's.")
    ] = "default",
    nodes: Annotated[int, typer.Option(min=0, max=1000, help="Nodes with a kubelet.")] = 1,
    kubernetes: Annotated[
        str, typer.Option(metavar="VERSION", help="Version whose rules apply.")
    ] = KUBERNETES,
    feature_gate: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=true|false", help="Feature gate to set; can be repeated."),
    ] = None,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port of loopback; 0: any free one.")
    ] = 0,
    kubeconfig: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="New file to write the kubeconfig to. [default: one of its own]"
        ),
    ] = None,
) -> None:
    """Serve a simulated Kubernetes until Ctrl-C or SIGTERM, and print how to use it."""
    if kubeconfig is not None and kubeconfig.exists():
        raise UsageError(f"--kubeconfig {kubeconfig} exists; name another file, or remove it first")
    served = Served(name, state_folder() / "kubesim" / name, "simulated Kubernetes", "`kill {pid}`")
    try:
        world = World(
            kubernetes_version=kubernetes,
            gates=dict(map(_gate, feature_gate or ())),
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
            app(standalone_mode=True)
    except ConformanceError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("error: interrupted", file=sys.stderr)
        return ExitCode.INCONCLUSIVE
    return ExitCode.CONFORMANT


if __name__ == "__main__":
    sys.exit(main())
