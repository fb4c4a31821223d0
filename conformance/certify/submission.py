"""A submission: the folder of one implementation on one Kubernetes minor, below ``reports/``.

``<minor>/<organization>-<project>/`` holds the report, the bundle that proves it, a README and,
where it was signed, the attestation.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from conformance.certify import bundle
from conformance.certify.attestation import Signature, signed, statement, verified
from conformance.certify.contradictions import Discrepancy
from conformance.certify.markdown import rendered
from conformance.certify.model import ConformanceReport, Support
from conformance.certify.profiles import ProfileSet
from conformance.certify.verify import Verification, verify_bundle
from conformance.engine.events import PlannedScenario
from conformance.errors import UsageError
from conformance.files import read_regular, write_whole
from conformance.resultfile.read import RecordedRun
from conformance.scenario.base import release
from conformance.scenario.loader import LoadedScenario

REPORT: Final = bundle.REPORT
EVIDENCE: Final = f"evidence{bundle.SUFFIX}"
ATTESTATION: Final = "attestation.json"
README: Final = "README.md"
FILES: Final = frozenset({REPORT, EVIDENCE, ATTESTATION, README})

MAX_REPORT: Final = 8 << 20
"""Bytes."""


@dataclass(frozen=True, slots=True)
class Checked:
    """What became of checking a bundle, alone or in its folder.

    Attributes:
        path: of the bundle.
        verification: of what is in it, and of the files beside it.
        signature: None where there is none.
    """

    path: Path
    verification: Verification
    signature: Signature | None


def folder_of(report: ConformanceReport) -> Path:
    """Where a submission belongs below ``reports/``.

    Raises:
        UsageError: its Kubernetes version is none.
    """
    version = release(report.kubernetes_version)
    if version is None:
        raise UsageError(f"{report.kubernetes_version!r:.40} is no Kubernetes version")
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
    scenarios: Sequence[LoadedScenario],
    *,
    key: Path | None = None,
    reproduce: str = "",
    replace: bool = False,
) -> bool:
    """Write a submission.

    Args:
        folder: its own, see :func:`folder_of`.
        report: what was made of the result.
        result: the run.
        profiles: those that the suite ships.
        scenarios: all that the suite ships.
        key: SSH key to sign with.
        reproduce: the commands that make it again.
        replace: overwrite what is there of another run.

    Returns:
        Whether something of another run was overwritten.

    Raises:
        UsageError: the folder has a submission of another run, or a file cannot be written, or the
            key cannot sign.
    """
    other = _evidence_in(folder) not in (None, report.evidence.digest)
    if other and not replace:
        raise UsageError(
            f"{folder}: has a submission of another run; --replace overwrites it, --into chooses"
            " another place"
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        bundle.write_bundle(folder / EVIDENCE, report, result, profiles, scenarios)
        write_whole(folder / REPORT, report.to_yaml().encode())
        write_whole(folder / README, _readme(report, result, reproduce).encode())
        (folder / ATTESTATION).unlink(missing_ok=True)
        if key is not None:
            said = statement(report, _digests(folder / EVIDENCE))
            write_whole(folder / ATTESTATION, signed(said, key).encode())
    except OSError as error:
        raise UsageError(f"{folder}: cannot be written: {error.strerror}") from None
    return other


def check_bundle(
    path: Path,
    profiles: ProfileSet,
    catalogue: Sequence[PlannedScenario],
    signers: Path | None = None,
) -> Checked:
    """Check a bundle, and the attestation beside it.

    Args:
        path: of the bundle.
        profiles: the profiles that this suite knows.
        catalogue: every scenario that this suite ships.
        signers: ssh-keygen's file of allowed signers.

    Raises:
        UsageError: as :func:`~conformance.certify.verify.verify_bundle`; or its attestation is not
            good.
    """
    found = verify_bundle(path, profiles, catalogue)
    attestation = path.with_name(ATTESTATION)
    signature = None
    if attestation.is_file():
        signature = verified(attestation, found.report, _digests(path), signers)
    return Checked(path, found, signature)


def check_folder(
    folder: Path,
    profiles: ProfileSet,
    catalogue: Sequence[PlannedScenario],
    signers: Path | None = None,
) -> Checked:
    """Check a submission: its bundle, and that all else in its folder fits it.

    Raises:
        UsageError: as :func:`check_bundle`.
    """
    checked = check_bundle(folder / EVIDENCE, profiles, catalogue, signers)
    report = checked.verification.report
    found = list(checked.verification.discrepancies)
    if not folder.resolve().match(str(folder_of(report))):
        found.append(Discrepancy(str(folder), f"it belongs in {folder_of(report)}"))
    if _read(folder / REPORT) != report.to_yaml().encode():
        found.append(Discrepancy(str(folder / REPORT), "is not the report in the bundle"))
    belong = ", ".join(sorted(FILES))
    found += [
        Discrepancy(str(path), f"does not belong here; {belong} do")
        for path in sorted(folder.iterdir())
        if path.name not in FILES or path.is_symlink() or not path.is_file()
    ]
    return Checked(
        checked.path,
        checked.verification.with_discrepancies(found),
        checked.signature,
    )


def submissions(folder: Path) -> Iterator[Path]:
    """Every folder of a submission below one, itself included, in the order of their paths.

    Raises:
        UsageError: there is none.
    """
    found = sorted({path.parent for path in folder.rglob(EVIDENCE)})
    strays = {path.parent for path in folder.rglob(REPORT)} - set(found)
    for stray in sorted(strays):
        raise UsageError(f"{stray}: has a report without its {EVIDENCE}; remove it or add that")
    if not found:
        raise UsageError(f"{folder}: has no submission ({EVIDENCE}) in it")
    yield from found


def _evidence_in(folder: Path) -> str | None:
    """The digest of the evidence of what is there, "?" where it cannot be told."""
    if not (folder / EVIDENCE).exists() and not (folder / REPORT).exists():
        return None
    try:
        with bundle.opened_bundle(folder / EVIDENCE) as opened:
            return f"sha256:{hashlib.sha256(opened.results.read_bytes()).hexdigest()}"
    except UsageError:
        return "?"


def _digests(path: Path) -> dict[str, str]:
    """What is vouched for: the bundle, which has all else in it."""
    return {EVIDENCE: f"sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}"}


def _read(path: Path) -> bytes | None:
    try:
        return read_regular(path, MAX_REPORT)
    except OSError:
        return None


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9.]+", "-", text.lower()).strip("-.") or "unnamed"


def _readme(report: ConformanceReport, result: RecordedRun, reproduce: str) -> str:
    features = {
        str(support): [item.name for item in report.features if item.support is support]
        for support in Support
    }
    commands = reproduce or (
        f"pip install dra-conformance=={report.suite.version}\n"
        "dra-conformance run --target cluster ... --compare -o results   # with the options below\n"
        "dra-conformance submit results/results.ndjson ..."
    )
    return rendered(
        "README.md.j2",
        report=report,
        about=report.implementation,
        features=features,
        bundle=EVIDENCE,
        reproduce=commands,
        options=json.dumps(dict(result.run.options), sort_keys=True),
    )
