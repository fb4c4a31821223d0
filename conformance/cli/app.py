"""The commands by name; each is imported on demand, so that the others cost nothing."""

from __future__ import annotations

import sys
from difflib import get_close_matches
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup

from conformance.errors import UsageError
from kube.base.commandline import HelpCommand

COMMANDS = {
    "run": ("running.run:run", "Run scenarios and report: terminal, JUnit XML, Allure, HTML."),
    "list": ("scenarios.listing:list_scenarios", "List scenarios."),
    "show": ("scenarios.show:show", "Print a scenario in full, as YAML for kubectl."),
    "lint": ("scenarios.lint:lint", "Check scenarios, profiles and Kubernetes manifests."),
    "new": ("scenarios.new:app", "Write a driver profile or scenario to start from."),
    "schema": ("scenarios.schemas:schema", "Print the JSON Schema of a kind of document."),
    "driver-check": (
        "driver_check:driver_check",
        "Check a driver's contract with the kubelet, without a cluster.",
    ),
    "render": ("running.render:render", "Regenerate a run's reports from its result file."),
    "report": ("reports.report:report", "Turn a result file into a conformance report (YAML)."),
    "merge": ("running.render:merge", "Join the result files of all shards of a run."),
    "page": ("reports.submission:page", "Write a static site of submissions, and badges."),
    "submit": (
        "reports.submission:submit",
        "Write a submission: report, evidence, README, signature.",
    ),
    "verify": (
        "reports.submission:verify",
        "Check submissions offline, or a report with its result file.",
    ),
    "replay": ("reports.report:replay", "Judge saved decisions again, without a cluster."),
    "capture": ("diagnosis:capture", "Write a snapshot of a cluster, for explain and replay."),
    "explain": ("diagnosis:explain", "Explain why a claim is pending."),
    "audit": ("diagnosis:audit", "Judge all allocations of a cluster."),
    "fuzz": ("fuzzing:fuzz", "Give a scheduler random problems, judged by the reference."),
    "shrink": ("fuzzing:shrink", "Make a snapshot small; its verdict stays the same."),
    "cleanup": ("cluster:cleanup", "Delete what runs of the suite left in a cluster."),
    "allocate": ("oracle:allocate", "Allocate devices for problems read as JSON lines."),
    "cel": ("oracle:cel", "Evaluate CEL device selectors read as JSON lines."),
    "cluster": ("cluster:app", "Manage a local cluster, without a container engine."),
}
"""Command -> module of this package and what in it (a function, or an app with commands); help."""

SETTINGS: dict[str, Any] = {
    "add_completion": False,
    "rich_markup_mode": None,
    "pretty_exceptions_enable": False,
    "context_settings": {"help_option_names": ["-h", "--help"], "max_content_width": 80},
}


class _Commands(TyperGroup):
    """The group of all commands."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 -- click's signature
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002 -- click's signature
        if cmd_name not in COMMANDS:
            near = get_close_matches(cmd_name, COMMANDS, n=1)
            meant = f"did you mean {near[0]}?" if near else "see `dra-conformance --help`"
            raise UsageError(f"unknown command {cmd_name!r}; {meant}")
        module, _, attribute = COMMANDS[cmd_name][0].partition(":")
        found = getattr(import_module(f"conformance.cli.{module}"), attribute)
        app = found if isinstance(found, typer.Typer) else typer.Typer(**SETTINGS)
        if app is not found:
            app.command(cmd_name)(found)
        for item in app.registered_commands:
            item.cls = HelpCommand
        command = typer.main.get_command(app)
        command.name = cmd_name
        return command

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 -- as above
        """Name the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


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


def _version(value: bool) -> None:
    if value:
        from conformance import __version__

        typer.echo(f"dra-conformance {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    _show: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Print the version and exit."
    ),
) -> None:
    """Options of every command.

    Raises UsageError: an argument is empty; as a path it would be the current folder.
    """
    for argument in sys.argv[1:]:
        if not argument or (argument.startswith("--") and argument.endswith("=")):
            what = f"the option {argument} has no value" if argument else "an argument is empty"
            raise UsageError(f"{what}; is a shell variable unset?")
