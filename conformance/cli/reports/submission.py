"""``submit`` writes a submission; ``verify`` checks one or a folder; ``page`` shows a folder."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Literal

import typer

from conformance.certify.build import build_report
from conformance.certify.page import INDEX, Entry, find_clashes, pages, write_pages
from conformance.certify.profiles import load_profiles
from conformance.certify.submission import (
    EVIDENCE,
    Checked,
    check_evidence,
    check_folder,
    folder_of,
    submissions,
    write_submission,
)
from conformance.certify.verify import verify_report
from conformance.cli.output import printable
from conformance.cli.reports.report import Certified, Results, catalogue, no_folder, summary
from conformance.errors import ConformanceError, ExitCode, UsageError
from conformance.resultfile.read import load_results
from conformance.text import counted
from kube.base.commandline import add_options


@add_options("about", Certified)
def submit(
    results: Results,
    about: Certified,
    into: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder of all submissions.")] = Path(
        "reports"
    ),
    sign: Annotated[Path | None, typer.Option(metavar="KEY", help="SSH key to sign with.")] = None,
    reproduce: Annotated[
        str, typer.Option(metavar="COMMANDS", help="How to reproduce the run, for the README.")
    ] = "",
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace the submission of another run.")
    ] = False,
) -> None:
    """Write a submission: report, evidence in one file, README, signature.

    Writes to MINOR/ORGANIZATION-PROJECT below --into. Exit code: as for `report`.
    """
    profiles, implementation = about.profiles, about.implementation
    no_folder(results)
    result, shipped, checked = load_results(results), catalogue(), about.checked
    made = build_report(result, implementation, profiles, shipped, checked)
    folder = into / folder_of(made)
    overwritten = write_submission(
        folder,
        made,
        result,
        load_profiles(),
        shipped,
        checked=checked,
        key=sign,
        reproduce=reproduce,
        overwrite=replace,
    )
    for line in summary(made):
        typer.echo(printable(line))
    size = (folder / EVIDENCE).stat().st_size
    said = ", replacing that of another run" if overwritten else ""
    typer.echo(printable(f"submission in {folder}{said} (evidence: {size / 1024:.0f} KiB)"))
    raise typer.Exit(made.exit_code)


def verify(
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
    most, codes = _days(max_age), []
    load_profiles().named(require_profile or ())
    for one in _checked(path, results, driver_check, require_signature):
        if isinstance(one, ConformanceError):
            typer.echo(printable(f"refused: {one}"))
            codes.append(one.exit_code)
            continue
        found = one.verification
        required: dict[str, Iterable[str]] = {}
        if require is not None:
            required["--require success"] = found.no_success()
        for name in require_profile or ():
            required[f"--require-profile {name}"] = found.no_success_of(name)
        if require_compare:
            required["--require-compare"] = found.not_compared()
        if require_hardware:
            required["--require-hardware"] = found.no_hardware()
        if require_suite is not None:
            required[f"--require-suite {require_suite}"] = found.other_suite(require_suite)
        if require_signature is not None:
            required["--require-signature"] = ["not signed"] if one.signature is None else []
        if most is not None:
            required[f"--max-age {most.days}"] = found.too_old(most, datetime.now(UTC))
        unmet = [f"{option}: {why}" for option, reasons in required.items() for why in reasons]
        for line in (*_lines(one), *(f"not met: {text}" for text in unmet)):
            typer.echo(printable(line))
        codes.append(ExitCode.NOT_CONFORMANT if unmet else found.exit_code)
    raise typer.Exit(next((code for code in codes if code), ExitCode.CONFORMANT))


def _checked(
    path: Path, results: Path | None, driver_check: Path | None, signers: Path | None
) -> Iterator[Checked | ConformanceError]:
    """Each check; in a folder, an unreadable submission does not stop the rest."""
    profiles, shipped = load_profiles(), catalogue()
    if driver_check is not None and results is None:
        raise UsageError(f"--driver-check {driver_check}: is for a report and its RESULTS")
    if results is not None:
        no_folder(results)
        found = verify_report(path, results, profiles, shipped, driver_check)
        yield Checked(path, found, None)
    elif path.is_dir():
        for folder in submissions(path):
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


def _lines(one: Checked) -> Iterator[str]:
    """What is printed of one submission."""
    found = one.verification
    about = found.report.implementation
    yield f"{one.path}: {about.organization}: {about.project} {about.version}"
    yield from (f"differs: {item}" for item in found.discrepancies)
    yield from (f"note: {text}" for text in found.notes)
    yield from (f"other suite: {text}" for text in found.departures)
    if one.signature is not None:
        who = one.signature.identity or "an unknown signer (see --require-signature)"
        yield f"signed with key {one.signature.key} of {who}"
    yield from summary(found.report)
    said = "does not match" if found.discrepancies else "matches"
    yield f"the report {said} the result file"


def _days(text: str | None) -> timedelta | None:
    if text is None:
        return None
    match = re.fullmatch(r"(\d{1,5})d?", text)
    if match is None:
        raise UsageError(f"--max-age {text!r:.40}: must be a number of days, like 90 or 90d")
    return timedelta(days=int(match[1]))


def page(
    reports: Annotated[Path, typer.Argument(metavar="FOLDER", help="Folder of submissions.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FOLDER", help="Folder of the site.")
    ],
    signers: Annotated[
        Path | None,
        typer.Option(metavar="ALLOWED_SIGNERS", help="ssh-keygen allowed signers file."),
    ] = None,
) -> None:
    """Write a static site: drivers and features for each Kubernetes minor, and badges.

    Submissions that fail verification, or share name and minor with another one, are listed and
    left out; the exit code is then 1.
    """
    profiles, shipped = load_profiles(), catalogue()
    entries: list[Entry] = []
    refused: list[str] = []
    for folder in submissions(reports):
        try:
            checked = check_folder(folder, profiles, shipped, signers)
            wrong = [str(item) for item in checked.verification.discrepancies]
        except ConformanceError as error:
            wrong = [str(error)]
        if wrong:
            refused.append(f"{folder}: {wrong[0]}")
            continue
        of = checked.signature
        signed = "" if of is None else of.identity or f"the key {of.key}"
        found = checked.verification
        entries.append(Entry(folder, found.report, signed, found.departures))
    clashes = find_clashes(entries)
    for folder, others in clashes.items():
        refused.append(
            f"{folder}: {', '.join(map(str, others))} would have the same badges; keep one of them,"
            " or give them other names"
        )
    for text in refused:
        typer.echo(printable(f"left out: {text}"), err=True)
    entries = [entry for entry in entries if entry.folder not in clashes]
    try:
        write_pages(output, pages(entries))
    except OSError as error:
        raise UsageError(f"{output}: cannot be written: {error.strerror}") from None
    typer.echo(printable(f"{counted(len(entries), 'submission')} in {output / INDEX}"))
    raise typer.Exit(ExitCode.NOT_CONFORMANT if refused else ExitCode.CONFORMANT)
