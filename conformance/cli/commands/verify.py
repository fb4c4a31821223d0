"""``dra-conformance verify``: recomputes reports from their evidence, and checks requirements."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Annotated, Literal

import typer

from conformance.certify.profiles import load_profiles
from conformance.certify.submission import (
    EVIDENCE,
    Checked,
    check_evidence,
    check_folder,
    find_submissions,
)
from conformance.certify.verify import verify_report
from conformance.cli.certifying import list_shipped_scenarios, refuse_folder, summarize_report
from conformance.cli.output import printable
from kube.base.errors import ConformanceError, ExitCode, UsageError


def verify_command(
    path: Annotated[
        Path,
        typer.Argument(
            metavar="PATH", help="Evidence file, folder of submissions, or report (with RESULTS)."
        ),
    ],
    results: Annotated[
        Path | None, typer.Argument(metavar="RESULTS", help="Result file of the report.")
    ] = None,
    driver_check: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="With RESULTS: the report's result of driver-check."),
    ] = None,
    require: Annotated[
        Literal["success"] | None,
        typer.Option(
            help="Fail unless every profile's result is success, the core under them included."
        ),
    ] = None,
    require_profile: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="Fail unless this profile's result is success (repeatable)."
        ),
    ] = None,
    require_compare: Annotated[
        bool, typer.Option("--require-compare", help="Fail unless allocations were compared.")
    ] = False,
    require_hardware: Annotated[
        bool, typer.Option("--require-hardware", help="Fail unless hardware was shown.")
    ] = False,
    require_suite: Annotated[
        str | None,
        typer.Option(
            metavar="VERSION",
            help="Fail unless produced by this suite version, with its scenarios.",
        ),
    ] = None,
    require_signature: Annotated[
        Path | None,
        typer.Option(
            metavar="ALLOWED_SIGNERS", help="Fail unless signed by someone in this ssh-keygen file."
        ),
    ] = None,
    max_age: Annotated[
        str | None, typer.Option(metavar="DAYS", help="Fail if the run is older (90 or 90d).")
    ] = None,
) -> None:
    """Check submissions offline: recompute each report and list discrepancies.

    Exit code: 0 every report matches its evidence and meets the requirements; 1 one does not.
    """
    age_limit, codes = _parse_days(max_age), []
    load_profiles().select(require_profile or ())
    for checked in _check_all(path, results, driver_check, require_signature):
        if isinstance(checked, ConformanceError):
            typer.echo(printable(f"refused: {checked}"))
            codes.append(checked.exit_code)
            continue
        verification = checked.verification
        required: dict[str, Iterable[str]] = {}
        if require is not None:
            required["--require success"] = verification.no_success()
        for name in require_profile or ():
            required[f"--require-profile {name}"] = verification.no_success_of(name)
        if require_compare:
            required["--require-compare"] = verification.not_compared()
        if require_hardware:
            required["--require-hardware"] = verification.no_hardware()
        if require_suite is not None:
            required[f"--require-suite {require_suite}"] = verification.other_suite(require_suite)
        if require_signature is not None:
            required["--require-signature"] = ["not signed"] if checked.signature is None else []
        if age_limit is not None:
            required[f"--max-age {age_limit.days}"] = verification.too_old(
                age_limit, datetime.now(UTC)
            )
        unmet = [f"{option}: {why}" for option, reasons in required.items() for why in reasons]
        for line in (*_describe(checked), *(f"not met: {text}" for text in unmet)):
            typer.echo(printable(line))
        codes.append(ExitCode.NOT_CONFORMANT if unmet else verification.exit_code)
    raise typer.Exit(next((code for code in codes if code), ExitCode.CONFORMANT))


def _check_all(
    path: Path, results: Path | None, driver_check: Path | None, signers: Path | None
) -> Iterator[Checked | ConformanceError]:
    """Check each report; in a folder, an unreadable submission does not stop the others."""
    profiles, shipped = load_profiles(), cache(list_shipped_scenarios)
    if driver_check is not None and results is None:
        raise UsageError(f"--driver-check {driver_check}: is for a report and its RESULTS")
    if results is not None:
        refuse_folder(results)
        verification = verify_report(path, results, profiles, shipped(), driver_check)
        yield Checked(path, verification, None)
    elif path.is_dir():
        for folder in find_submissions(path):
            try:
                yield check_folder(folder, profiles, shipped, signers)
            except ConformanceError as error:
                yield error
    elif path.suffix in {".yaml", ".yml"}:
        raise UsageError(
            f"{path}: is a report; also give its result file, or give the evidence file alone"
            f" ({EVIDENCE})"
        )
    else:
        yield check_evidence(path, profiles, shipped, signers)


def _describe(checked: Checked) -> Iterator[str]:
    """List what is printed of a submission, as lines."""
    verification = checked.verification
    maker = verification.report.implementation
    yield f"{checked.path}: {maker.organization}: {maker.project} {maker.version}"
    yield from (f"differs: {item}" for item in verification.discrepancies)
    yield from (f"note: {text}" for text in verification.notes)
    yield from (f"other suite: {text}" for text in verification.departures)
    if checked.signature is not None:
        signer = checked.signature.identity or "an unknown signer (see --require-signature)"
        yield f"signed with key {checked.signature.key} of {signer}"
    yield from summarize_report(verification.report)
    verb = "does not match" if verification.discrepancies else "matches"
    yield f"the report {verb} the result file"


def _parse_days(text: str | None) -> timedelta | None:
    """Return the time that --max-age names. Raises UsageError: it is none."""
    if text is None:
        return None
    match = re.fullmatch(r"(\d{1,5})d?", text)
    if match is None:
        raise UsageError(f"--max-age {text!r:.40}: must be a number of days, like 90 or 90d")
    return timedelta(days=int(match[1]))
