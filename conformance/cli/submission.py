"""Commands about submissions: ``submit`` writes one, ``verify`` checks one, or all in a folder."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Literal

import typer

from conformance.certify.build import build_report
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
from conformance.cli.certified import Certified, Results, catalogue, no_folder, summary
from conformance.cli.options import takes
from conformance.cli.printable import printable
from conformance.errors import ConformanceError, ExitCode, UsageError
from conformance.redaction import redact
from conformance.resultfile.read import load_results


@takes("about", Certified)
def submit(
    results: Results,
    about: Certified,
    into: Annotated[Path, typer.Option(help="Folder of all submissions.")] = Path("reports"),
    sign: Annotated[
        Path | None, typer.Option(metavar="KEY", help="SSH key to sign with (ssh-keygen -Y).")
    ] = None,
    reproduce: Annotated[
        str, typer.Option(metavar="COMMANDS", help="For the README: how to make it again.")
    ] = "",
    replace: Annotated[
        bool, typer.Option("--replace", help="Overwrite the submission of another run.")
    ] = False,
) -> None:
    """Write a submission: report, evidence in one file, README, signature.

    It goes to MINOR/ORGANIZATION-PROJECT below --into. Exit code: as `report`.
    """
    profiles, implementation = about.profiles, about.implementation
    no_folder(results)
    result, shipped = load_results(results), catalogue()
    made = build_report(result, implementation, profiles, shipped)
    folder = into / folder_of(made)
    overwritten = write_submission(
        folder,
        made,
        result,
        load_profiles(),
        shipped,
        key=sign,
        reproduce=redact(reproduce),
        overwrite=replace,
    )
    for line in summary(made):
        typer.echo(printable(line))
    size = (folder / EVIDENCE).stat().st_size
    said = ", which had that of another run" if overwritten else ""
    typer.echo(printable(f"submission in {folder}{said} (evidence: {size / 1024:.0f} KiB)"))
    raise typer.Exit(made.exit_code)


def verify(
    path: Annotated[
        Path,
        typer.Argument(
            metavar="PATH", help="Evidence file; folder of submissions; or report, with RESULTS."
        ),
    ],
    results: Annotated[
        Path | None, typer.Argument(help="Result file that the report was made from.")
    ] = None,
    require: Annotated[
        Literal["success"] | None,
        typer.Option(
            help="Every profile must be a success, by the scenarios of this suite, on real devices."
        ),
    ] = None,
    require_signature: Annotated[
        Path | None,
        typer.Option(
            metavar="ALLOWED_SIGNERS", help="Somebody in this file (ssh-keygen) must have signed."
        ),
    ] = None,
    max_age: Annotated[
        str | None, typer.Option(metavar="DAYS", help="The run must be no older: 90 or 90d.")
    ] = None,
) -> None:
    """Check submissions offline: work each report out again, say every discrepancy.

    Exit code: 0 it says what its evidence says, whatever that is, and meets what is required; 1 it
    does not.
    """
    most, codes = _days(max_age), []
    for one in _checked(path, results, require_signature):
        if isinstance(one, ConformanceError):
            typer.echo(printable(f"refused: {one}"))
            codes.append(one.exit_code)
            continue
        found, unmet = one.verification, list[str]()
        if require is not None:
            unmet += [f"--require success: {text}" for text in found.no_success()]
        if most is not None:
            too_old = found.too_old(most, datetime.now(UTC))
            unmet += [f"--max-age {most.days}: {text}" for text in too_old]
        if require_signature is not None and one.signature is None:
            unmet.append("--require-signature: nobody signed it")
        for line in (*_lines(one), *(f"not met: {text}" for text in unmet)):
            typer.echo(printable(line))
        codes.append(ExitCode.NOT_CONFORMANT if unmet else found.exit_code)
    raise typer.Exit(next((code for code in codes if code), ExitCode.CONFORMANT))


def _checked(
    path: Path, results: Path | None, signers: Path | None
) -> Iterator[Checked | ConformanceError]:
    """What was found; in a folder one that cannot be read does not end the others."""
    profiles, shipped = load_profiles(), catalogue()
    if results is not None:
        no_folder(results)
        yield Checked(path, verify_report(path, results, profiles, shipped), None)
    elif path.is_dir():
        for folder in submissions(path):
            try:
                yield check_folder(folder, profiles, shipped, signers)
            except ConformanceError as error:
                yield error
    elif path.suffix in {".yaml", ".yml"}:
        raise UsageError(
            f"{path}: is a report; give the result file that it was made from beside it, or the"
            f" evidence file alone ({EVIDENCE})"
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
        who = (
            one.signature.identity or "an unknown signer (--require-signature names the known ones)"
        )
        yield f"signed with key {one.signature.key} of {who}"
    yield from summary(found.report)
    says = "does not say" if found.discrepancies else "says"
    yield f"the report {says} what the result file says"


def _days(text: str | None) -> timedelta | None:
    if text is None:
        return None
    match = re.fullmatch(r"(\d{1,5})d?", text)
    if match is None:
        raise UsageError(f"--max-age {text!r:.40}: must be a number of days, like 90 or 90d")
    return timedelta(days=int(match[1]))
