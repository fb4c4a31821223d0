"""A submission: the folder of one implementation on one Kubernetes minor, below ``reports/``.

``<minor>/<organization>-<project>/`` holds the report, the evidence file that proves it, a README
and, where it was signed, an SSH signature of the evidence.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from conformance.certify.contradictions import Discrepancy
from conformance.certify.driverchecked import DriverChecked
from conformance.certify.evidence import (
    MAX_PACKED,
    Signature,
    read_evidence,
    sign_content,
    verify_signature,
    write_evidence,
)
from conformance.certify.model import ConformanceReport
from conformance.certify.profiles import ProfileSet
from conformance.certify.readme import Readme
from conformance.certify.verify import Verification, verify_evidence
from conformance.results.events.scenario import PlannedScenario
from conformance.results.read import RecordedRun
from conformance.scenario.base import parse_release
from kube.base.errors import UsageError
from kube.base.files import read_regular, write_whole
from kube.base.redaction import redact
from kube.base.text import visible

REPORT: Final = "report.yaml"
EVIDENCE: Final = "evidence.json.xz"
SIGNATURE: Final = f"{EVIDENCE}.sig"
README: Final = "README.md"
FILES: Final = (README, EVIDENCE, SIGNATURE, REPORT)

MAX_REPORT: Final = 8 << 20  # Bytes.
MAX_README: Final = 1 << 20  # Bytes.


@dataclass(frozen=True, slots=True)
class Checked:
    """The outcome of checking an evidence file, alone or in its folder.

    ``signature``: None where there is none.
    """

    path: Path
    verification: Verification
    signature: Signature | None


def folder_of(report: ConformanceReport) -> Path:
    """Return where a submission belongs below ``reports/``. Raises UsageError."""
    version = parse_release(report.kubernetes_version)
    if version is None:
        raise UsageError(f"{report.kubernetes_version!r:.40} is not a Kubernetes version")
    about = report.implementation
    return (
        Path(f"{version.major}.{version.minor}")
        / f"{_slug(about.organization)}-{_slug(about.project)}"
    )


def write_submission(
    folder: Path,
    report: ConformanceReport,
    result: RecordedRun,
    profiles: ProfileSet,
    catalogue: Sequence[PlannedScenario],
    *,
    checked: DriverChecked | None = None,
    key: Path | None = None,
    reproduce: str = "",
    overwrite: bool = False,
) -> bool:
    """Write a submission.

    ``folder``: its own, see :func:`folder_of`.
    ``reproduce``: commands that make the run again; empty for those of the suite.
    Returns whether the submission of another run was overwritten.
    Raises UsageError: the folder has a submission of another run, or a file cannot be written, or
    the key cannot sign.
    """
    other = _is_of_another_run(folder, report)
    if other and not overwrite:
        raise UsageError(
            f"{folder}: has a submission of another run; --replace overwrites it, --into chooses"
            " another place"
        )
    evidence = folder / EVIDENCE
    commands = visible(redact(reproduce))  # bytes of a command line need not be Unicode
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_evidence(evidence, report, result, profiles, catalogue, checked, commands)
        write_whole(folder / REPORT, report.to_yaml().encode())
        readme = Readme(report, result.run.options, commands, EVIDENCE)
        write_whole(folder / README, readme.text().encode())
        (folder / SIGNATURE).unlink(missing_ok=True)
        if key is not None:
            write_whole(folder / SIGNATURE, sign_content(evidence.read_bytes(), key))
    except OSError as error:
        raise UsageError(f"{folder}: cannot be written: {error.strerror}") from None
    return other


def check_evidence(
    path: Path,
    profiles: ProfileSet,
    catalogue: Callable[[], Sequence[PlannedScenario]],
    signers: Path | None = None,
) -> Checked:
    """Check an evidence file, and the signature beside it.

    ``catalogue``: gives every scenario that the suite ships.
    Raises UsageError or SignatureError.
    """
    if signers is not None and not signers.is_file():
        raise UsageError(f"{signers}: is not an allowed signers file; see ssh-keygen(1)")
    verification = verify_evidence(path, profiles, catalogue)
    signature_path = path.with_name(f"{path.name}.sig")
    signature = None
    if signature_path.is_file():
        signature = verify_signature(signature_path, read_regular(path, MAX_PACKED), signers)
    return Checked(path, verification, signature)


def check_folder(
    folder: Path,
    profiles: ProfileSet,
    catalogue: Callable[[], Sequence[PlannedScenario]],
    signers: Path | None = None,
) -> Checked:
    """Check a submission: its evidence, and that all else in its folder fits it.

    Raises UsageError: as :func:`check_evidence`.
    """
    checked = check_evidence(folder / EVIDENCE, profiles, catalogue, signers)
    report = checked.verification.report
    discrepancies = list(checked.verification.discrepancies)
    if not folder.resolve().match(str(folder_of(report))):
        discrepancies.append(
            Discrepancy(str(folder), "folder", f"it belongs in {folder_of(report)}")
        )
    if _read(folder / REPORT) != report.to_yaml().encode():
        text = "is not the report in the evidence"
        discrepancies.append(Discrepancy(str(folder / REPORT), "report-file", text))
    notes = list(checked.verification.notes)
    if (readme := checked.verification.readme) is not None and not readme.ours:
        notes.append(f"{README} was not compared: suite {report.suite.version} wrote it")
    elif readme is not None and (wrong := _check_readme(folder / README, readme)):
        discrepancies.append(Discrepancy(str(folder / README), "readme", wrong))
    discrepancies += [
        Discrepancy(str(path), "stray-file", f"does not belong here; {', '.join(FILES)} do")
        for path in sorted(folder.iterdir())
        if path.name not in FILES or path.is_symlink() or not path.is_file()
    ]
    verification = replace(
        checked.verification, discrepancies=tuple(discrepancies), notes=tuple(notes)
    )
    return replace(checked, verification=verification)


def find_submissions(folder: Path) -> Iterator[Path]:
    """Yield every folder of a submission below one, itself included, in the order of their paths.

    Raises UsageError: there is none.
    """
    if not folder.is_dir():
        raise UsageError(f"{folder}: is not a folder; give the folder of submissions")
    folders = sorted({path.parent for path in folder.rglob(EVIDENCE)})
    strays = {path.parent for path in folder.rglob(REPORT)} - set(folders)
    for stray in sorted(strays):
        raise UsageError(f"{stray}: has a report without its {EVIDENCE}; remove it or add that")
    if not folders:
        raise UsageError(f"{folder}: has no submission ({EVIDENCE}) in it")
    yield from folders


def _is_of_another_run(folder: Path, report: ConformanceReport) -> bool:
    """Return whether a folder has the submission of another run, or one that cannot be read."""
    if not (folder / EVIDENCE).exists() and not (folder / REPORT).exists():
        return False
    try:
        return read_evidence(folder / EVIDENCE).report.evidence != report.evidence
    except UsageError:
        return True


def _check_readme(path: Path, readme: Readme) -> str | None:
    """Return why a file is not the README that the evidence gives; None where it is."""
    if path.is_symlink():
        return "is a link, and must be the file itself"
    try:
        return readme.find_difference(read_regular(path, MAX_README))
    except FileNotFoundError:
        return "is missing; `dra-conformance submit` writes it"
    except OSError as error:
        return f"cannot be read: {error.strerror}"


def _read(path: Path) -> bytes | None:
    try:
        return read_regular(path, MAX_REPORT)
    except OSError:
        return None


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9.]+", "-", text.lower()).strip("-.") or "unnamed"
