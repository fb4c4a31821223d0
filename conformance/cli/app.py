"""Assembles the commands; ``conformance.cli.entry`` runs them."""

from __future__ import annotations

import sys

import typer

from conformance import __version__
from conformance.cli import cleanup, cluster, explain, oracle, report, run, scenarios
from conformance.errors import UsageError

app = typer.Typer(
    name="dra-conformance",
    help="Conformance tests for Kubernetes Dynamic Resource Allocation (DRA).\n\n"
    "Exit codes: 0 conformant, 1 not conformant, 2 usage or scenario error, 3 inconclusive"
    " (infrastructure, interrupted), 4 partial (something core was skipped; a report: or the run"
    " can certify nothing).",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80},
)
app.command("run")(run.run)
app.command("list")(scenarios.list_scenarios)
app.command("lint")(scenarios.lint)
app.command("schema")(scenarios.schema)
app.command("report")(report.report)
app.command("verify")(report.verify)
app.command("replay")(report.replay)
app.command("explain")(explain.explain)
app.command("cleanup")(cleanup.cleanup)
app.command("allocate")(oracle.allocate)
app.command("cel")(oracle.cel)
app.add_typer(cluster.app, name="cluster")


def _version(value: bool) -> None:
    if value:
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
