"""A submission of genuine evidence, to be forged."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from conformance.certify.archive import read_archive, write_archive
from conformance.certify.build import build_report
from conformance.certify.profiles import CORE
from conformance.certify.submission import (
    EVIDENCE,
    Checked,
    check_folder,
    folder_of,
    write_submission,
)
from conformance.engine.events import PlannedScenario
from conformance.resultfile.read import load_results
from conformance.scenario.loader import LoadedScenario
from conformance.scenario.selection import select
from tests.certify.evidence import IMPLEMENTATION, PROFILES

WHO = "certifier@example.com"


needs_ssh_keygen = pytest.mark.skipif(
    shutil.which("ssh-keygen") is None and os.environ.get("CI") != "true",
    reason="this machine has no ssh-keygen (OpenSSH's client)",
)


@cache
def shipped() -> list[LoadedScenario]:
    return select()


class Submitted:
    """A submission below a folder, as ``submit`` writes it."""

    def __init__(self, folder: Path, results: Path, catalogue: list[PlannedScenario]) -> None:
        self.root = folder / "reports"
        self.results = results
        self.catalogue = catalogue
        self.key = folder / "key"
        self.signers = folder / "allowed"
        result = load_results(results)
        report = build_report(result, IMPLEMENTATION, PROFILES.named([CORE]), catalogue)
        self.folder = self.root / folder_of(report)

    def write(
        self, *, sign: bool = False, replace: bool = False, results: Path | None = None
    ) -> bool:
        if sign and not self.signers.exists():
            new_key(self.key)
            self.signers.write_text(f"{WHO} {public(self.key)}\n")
        result = load_results(results or self.results)
        report = build_report(result, IMPLEMENTATION, PROFILES.named([CORE]), self.catalogue)
        ids = {item.id for item in self.catalogue}
        return write_submission(
            self.folder,
            report,
            result,
            PROFILES,
            [item for item in shipped() if item.id in ids],
            key=self.key if sign else None,
            replace=replace,
        )

    def change(self, edit: Callable[[dict[str, bytes]], None]) -> None:
        """Change what is in the bundle, and the report beside it with it."""
        files = read_archive(self.folder / EVIDENCE)
        edit(files)
        write_archive(self.folder / EVIDENCE, files)
        (self.folder / "report.yaml").write_bytes(files["report.yaml"])

    def check(self, signers: Path | None = None) -> Checked:
        return check_folder(self.folder, PROFILES, self.catalogue, signers)


def new_key(path: Path) -> Path:
    command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", WHO, "-f", str(path)]
    subprocess.run(command, check=True)
    return path


def public(key: Path) -> str:
    return " ".join(key.with_suffix(".pub").read_text().split()[:2])
