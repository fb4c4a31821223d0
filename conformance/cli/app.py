"""The commands by name; each is imported when it is asked for, so that the others cost nothing."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup

from conformance.errors import UsageError

COMMANDS = {
    "run": "run:run",
    "list": "scenarios:list_scenarios",
    "lint": "scenarios:lint",
    "schema": "scenarios:schema",
    "report": "report:report",
    "verify": "report:verify",
    "replay": "report:replay",
    "explain": "explain:explain",
    "cleanup": "cleanup:cleanup",
    "allocate": "oracle:allocate",
    "cel": "oracle:cel",
    "cluster": "cluster:app",
}
"""Command -> module of this package, and what in it: a function, or an app with commands."""

_SETTINGS: dict[str, Any] = {
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
            return None
        module, _, attribute = COMMANDS[cmd_name].partition(":")
        found = getattr(import_module(f"conformance.cli.{module}"), attribute)
        if isinstance(found, typer.Typer):
            command = typer.main.get_command(found)
        else:
            alone = typer.Typer(**_SETTINGS)
            alone.command(cmd_name)(found)
            command = typer.main.get_command(alone)
        command.name = cmd_name
        return command


app = typer.Typer(
    name="dra-conformance",
    cls=_Commands,
    help="Conformance tests for Kubernetes Dynamic Resource Allocation (DRA).\n\n"
    "Exit codes: 0 conformant, 1 not conformant, 2 usage or scenario error, 3 inconclusive"
    " (infrastructure, interrupted), 4 partial (something core was skipped; a report: or the run"
    " can certify nothing).",
    no_args_is_help=True,
    **_SETTINGS,
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

    Raises:
        UsageError: an argument is empty; as a path it would be the current folder.
    """
    for argument in sys.argv[1:]:
        if not argument or (argument.startswith("--") and argument.endswith("=")):
            what = f"the option {argument} has no value" if argument else "an argument is empty"
            raise UsageError(f"{what}; is a shell variable unset?")
