"""A submission of genuine evidence, to be forged."""

from __future__ import annotations

import json
import lzma
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conformance.certify.build import build_report
from conformance.certify.driverchecked import DriverChecked
from conformance.certify.submission import (
    EVIDENCE,
    Checked,
    check_folder,
    folder_of,
    write_submission,
)
from conformance.results.events.scenario import PlannedScenario
from conformance.results.read import load_results
from tests.certify.evidence import CORE, IMPLEMENTATION, PROFILES

SIGNER = "certifier@example.com"
needs_ssh_keygen = pytest.mark.skipif(
    shutil.which("ssh-keygen") is None and os.environ.get("CI") != "true",
    reason="this machine has no ssh-keygen (OpenSSH's client)",
)


class Submitted:
    """A submission below a folder, as ``submit`` writes it."""

    def __init__(self, folder: Path, results: Path, catalogue: list[PlannedScenario]) -> None:
        self.root = folder / "reports"
        self.results = results
        self.catalogue = catalogue
        self.key = folder / "key"
        self.signers = folder / "allowed"
        self.checked: DriverChecked | None = None
        self.profiles = [CORE]
        report = build_report(
            load_results(results), IMPLEMENTATION, PROFILES.select([CORE]), catalogue
        )
        self.folder = self.root / folder_of(report)
        self.evidence = self.folder / EVIDENCE

    def write(
        self,
        *,
        sign: bool = False,
        overwrite: bool = False,
        results: Path | None = None,
        reproduce: str = "",
    ) -> bool:
        if sign and not self.signers.exists():
            new_key(self.key)
            self.signers.write_text(f"{SIGNER} {public(self.key)}\n")
        result = load_results(results or self.results)
        return write_submission(
            self.folder,
            build_report(
                result, IMPLEMENTATION, PROFILES.select(self.profiles), self.catalogue, self.checked
            ),
            result,
            PROFILES,
            self.catalogue,
            checked=self.checked,
            key=self.key if sign else None,
            reproduce=reproduce,
            overwrite=overwrite,
        )

    def change(self, edit: Callable[[dict[str, Any]], object]) -> None:
        """Change the document in the evidence."""
        document = json.loads(lzma.decompress(self.evidence.read_bytes()))
        edit(document)
        self.evidence.write_bytes(lzma.compress(json.dumps(document).encode(), preset=0))

    def check(self, signers: Path | None = None) -> Checked:
        return check_folder(self.folder, PROFILES, lambda: self.catalogue, signers)


def new_key(path: Path) -> Path:
    command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", SIGNER, "-f", str(path)]
    subprocess.run(command, check=True)
    return path


def public(key: Path) -> str:
    return " ".join(key.with_suffix(".pub").read_text().split()[:2])
