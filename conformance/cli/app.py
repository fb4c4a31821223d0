"""The commands by name; each is imported on demand, so that the others cost nothing."""

from __future__ import annotations

import sys
from difflib import get_close_matches
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup

from kube.base.commandline import HelpCommand
from kube.base.errors import UsageError

COMMANDS = {
    "run": "Run scenarios and report: terminal, JUnit XML, Allure, HTML.",
    "list": "List scenarios.",
    "show": "Print a scenario in full, as YAML for kubectl.",
    "lint": "Check scenarios, profiles and Kubernetes manifests.",
    "new": "Write a driver profile or scenario to start from.",
    "schema": "Print the JSON Schema of a kind of document.",
    "driver-check": "Check a driver's contract with the kubelet, without a cluster.",
    "render": "Regenerate a run's reports from its result file.",
    "report": "Turn a result file into a conformance report (YAML).",
    "merge": "Join the result files of all shards of a run.",
    "page": "Write a static site of submissions, and badges.",
    "submit": "Write a submission: report, evidence, README, signature.",
    "verify": "Check submissions offline, or a report with its result file.",
    "replay": "Judge saved decisions again, without a cluster.",
    "capture": "Write a snapshot of a cluster, for explain and replay.",
    "explain": "Explain why a claim is pending.",
    "audit": "Judge all allocations of a cluster.",
    "fuzz": "Give a scheduler random problems, judged by the reference.",
    "shrink": "Make a snapshot small; its verdict stays the same.",
    "allocators": "Judge the allocators of others, without a cluster.",
    "cleanup": "Delete what runs of the suite left in a cluster.",
    "allocate": "Allocate devices for problems read as JSON lines.",
    "cel": "Evaluate CEL device selectors read as JSON lines.",
    "cluster": "Manage a local cluster, without a container engine.",
}
"""Command -> its line in the help, in the order of the help; its module is named as it."""

SETTINGS: dict[str, Any] = {
    "add_completion": False,
    "rich_markup_mode": None,
    "pretty_exceptions_enable": False,
    "context_settings": {"help_option_names": ["-h", "--help"], "max_content_width": 80},
}


def load_command(name: str) -> Any:
    """Import a command: a function, or an app that has commands of its own."""
    name = name.replace("-", "_")
    return getattr(import_module(f"conformance.cli.commands.{name}"), f"{name}_command")


class _Commands(TyperGroup):
    """The group of all commands, each of which is imported when it is called."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 -- click's signature
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002 -- click's signature
        if cmd_name not in COMMANDS:
            near = get_close_matches(cmd_name, COMMANDS, n=1)
            meant = f"did you mean {near[0]}?" if near else "see `dra-conformance --help`"
            raise UsageError(f"unknown command {cmd_name!r}; {meant}")
        command = load_command(cmd_name)
        app = command if isinstance(command, typer.Typer) else typer.Typer(**SETTINGS)
        if app is not command:
            app.command(cmd_name)(command)
        for registered in app.registered_commands:
            registered.cls = HelpCommand
        built = typer.main.get_command(app)
        built.name = cmd_name
        return built

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 -- as above
        """Name the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


app = typer.Typer(
    name="dra-conformance",
    cls=_Commands,
    help="Conformance tests for Kubernetes Dynamic Resource Allocation (DRA).\n\n"
    "Exit codes: 0 conformant, 1 not conformant, 2 usage or scenario error, 3 inconclusive"
    " (infrastructure error, interrupted), 4 partial (a core scenario was skipped; for reports"
    " also: the run cannot be certified).",
    no_args_is_help=True,
    **SETTINGS | {"add_completion": True},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from conformance import __version__

        typer.echo(f"dra-conformance {__version__}")
        raise typer.Exit


@app.callback()
def _begin(
    _version: bool = typer.Option(
        False,
        "--version",
        callback=_print_version,
        is_eager=True,
        help="Print the version and exit.",
    ),
) -> None:
    """Refuse empty arguments; the parameters are the options of every command.

    Raises UsageError: an argument is empty; as a path it would be the current folder.
    """
    for argument in sys.argv[1:]:
        if not argument or (argument.startswith("--") and argument.endswith("=")):
            problem = f"the option {argument} has no value" if argument else "an argument is empty"
            raise UsageError(f"{problem}; is a shell variable unset?")
