"""``dra-conformance driver-check``: a driver's contract with the kubelet."""

from __future__ import annotations

import shlex
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from conformance.cli.output import printable, write_named
from conformance.targets.opening.conversions import words_of
from kube.base.errors import UsageError
from kube.base.text import fold

_LONGEST_FOLDER = 30
"""Characters of the folder's path: a socket's path below it must be short."""


def driver_check_command(
    driver_command: Annotated[
        str,
        typer.Option(
            metavar="COMMAND",
            help="Command that starts the driver; up to three processes of it run beside one "
            "another, with folders of their own. Without it, start the driver yourself with the "
            "environment variables that are printed.",
        ),
    ] = "",
    next_driver_command: Annotated[
        str,
        typer.Option(
            metavar="COMMAND",
            help="Command that starts another version of the driver: what either prepared, the "
            "other must know.",
        ),
    ] = "",
    check: Annotated[
        list[str] | None,
        typer.Option(
            "--check",
            "-k",
            metavar="NAME|GLOB",
            help="Only these checks: prepare, or cdi/ids-* (repeatable).",
        ),
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="For sockets, CDI specs and the log. [default: a temporary folder]",
        ),
    ] = None,
    cdi_dir: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FOLDER",
            help="Folder with CDI specs of the driver besides CDI_ROOT (repeatable).",
        ),
    ] = None,
    rbac: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="YAML with the driver's ClusterRoles, Roles and bindings, such as a rendered "
            "chart: what they do not allow is refused. [default: everything is allowed]",
        ),
    ] = None,
    service_account: Annotated[
        str,
        typer.Option(
            metavar="[NAMESPACE/]NAME",
            help="The driver's service account in the file of --rbac. [default: that of the file's "
            "DaemonSet, or the only one that is bound]",
        ),
    ] = "",
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write the result as JSON."),
    ] = None,
    junit: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the result as JUnit XML.")
    ] = None,
    write_profile: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Write a driver profile to start from, with the published devices."
        ),
    ] = None,
    list_checks: Annotated[bool, typer.Option("--list", help="List checks and exit.")] = False,
) -> None:
    """Check a driver's contract with the kubelet, without a cluster.

    What came of it is printed; files are written where -o (JSON) and --junit (XML) name them. There
    is no HTML.

    Exit code: 0 all required checks passed, 1 one failed, 2 usage error, 3 a check could not be
    completed, 4 a required check was skipped.
    """
    from conformance.cli.commands.new import write_profile as write_driver_profile
    from conformance.drivercheck.bench import Bench
    from conformance.drivercheck.driver import DriverUnderCheck
    from conformance.drivercheck.objects import NODE
    from conformance.drivercheck.process import CommandStarter
    from conformance.drivercheck.rbac.policy import read_policy
    from conformance.drivercheck.result import (
        describe_access,
        junit_xml,
        lines_of,
        summarize_result,
    )
    from conformance.drivercheck.run import choose_checks, run

    checks = choose_checks(check or ())
    if list_checks:
        for listed in checks:
            typer.echo(f"{listed.name} ({listed.level})")
            for text in (listed.summary, listed.source):
                _print_lines(fold(text, "    ", "    "))
        return
    starter = CommandStarter(words_of(driver_command)) if driver_command else None
    next_starter = None
    if next_driver_command:
        if starter is None:
            raise UsageError("--next-driver-command needs --driver-command, the version before it")
        option = "--next-driver-command"
        next_starter = CommandStarter(words_of(next_driver_command, option), option=option)
    if starter is None and folder is None:
        raise UsageError("give --driver-command, or --folder for a driver that you start yourself")
    if write_profile is not None and write_profile.exists():
        raise UsageError(f"--write-profile {write_profile}: already exists; name another file")
    if service_account and rbac is None:
        raise UsageError("--service-account is about the file of --rbac; give that, too")
    policy = read_policy(rbac, service_account, NODE) if rbac is not None else None
    start = time.monotonic()
    with _open_folder(folder) as work_folder:
        bench = Bench(
            DriverUnderCheck(
                work_folder,
                starter,
                cdi_folders=tuple(cdi_dir or ()),
                policy=policy,
                next_starter=next_starter,
            )
        )
        try:
            if starter is None:
                typer.echo("start the driver with these variables:")
                for name, value in bench.driver.environment.items():
                    typer.echo(f"{name}={shlex.quote(value)}")
            result = run(bench, checks, lambda outcome: _print_lines(lines_of(outcome)))
            slices = bench.driver.list_slices() if bench.driver.info is not None else []
        finally:
            bench.driver.close()
    _print_lines(describe_access(result))
    _print_lines(summarize_result(result, time.monotonic() - start))
    if output is not None:
        text = result.model_dump_json(by_alias=True, indent=2)
        write_named(output, f"{text}\n".encode())
    if junit is not None:
        write_named(junit, junit_xml(result))
    if write_profile is not None and not slices:
        typer.echo(f"{write_profile} is not written: no ResourceSlice was published", err=True)
    elif write_profile is not None:
        write_driver_profile(write_profile, result.driver, slices, "--write-profile")
    raise typer.Exit(result.exit_code)


def _print_lines(lines: Iterable[str]) -> None:
    for line in lines:
        typer.echo(printable(line))


@contextmanager
def _open_folder(folder: Path | None) -> Iterator[Path]:
    """Open the folder to work in: the named one, which is kept, or a temporary one."""
    if folder is None:
        # In /tmp wherever TMPDIR is: the path of a socket has at most 107 bytes.
        with tempfile.TemporaryDirectory(prefix="dra-", dir="/tmp") as temporary:
            yield Path(temporary)
        return
    path = folder.absolute()
    if len(str(path)) > _LONGEST_FOLDER:
        raise UsageError(
            f"--folder {path}: is too long for sockets in it (their paths have at most 107 bytes);"
            f" use at most {_LONGEST_FOLDER} characters"
        )
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise UsageError(f"--folder {path}: is not an empty folder")
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"--folder {path}: {error.strerror}") from None
    yield path
