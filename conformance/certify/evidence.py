"""The evidence of a submission: all that its report was made from, in one file.

It is one JSON document, compressed by xz: the report, the result file as it is, the profiles that
the report names, and what the suite that ran says of each of its scenarios. So it can be checked
without a cluster, and by another version of the suite than wrote it. The file may come from
anybody: each limit here is far above what a run gives. ``ssh-keygen -Y`` signs it and verifies
that, offline; what a signature is worth is in docs/certifying.md.
"""

from __future__ import annotations

import lzma
import subprocess
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import Field, model_validator

from conformance.certify.driverchecked import DriverChecked, parse_driver_check
from conformance.certify.model import ConformanceReport
from conformance.certify.profiles import ProfileSet
from conformance.engine.events.scenario import PlannedScenario
from conformance.errors import ExitCode, UsageError
from conformance.files import read_regular, write_whole
from conformance.resultfile.read import RecordedRun, first_problem, parse_results
from conformance.resultfile.write import FILE_NAME, public_files
from conformance.scenario.base import Strict
from conformance.strictjson import loads
from conformance.text import one_line

MAX_PACKED: Final = 64 << 20  # Bytes of the file.
MAX_BYTES: Final = 64 << 20  # Bytes of the document; that of the shipped scenarios has 15 MB.
MAX_VALUES: Final = 100_000
"""Of the document, the result file in it being one; that of the shipped scenarios has 8,600."""

MAX_MEMORY: Final = 128 << 20  # Bytes that unpacking may use: xz's own presets need at most 65 MiB.


class Evidence(Strict):
    """The document in an evidence file."""

    report: ConformanceReport
    results: str = Field(description="the result file, byte by byte")
    profiles: ProfileSet
    catalogue: tuple[PlannedScenario, ...] = Field(
        description="every scenario that the suite which ran ships"
    )
    driver_check: str | None = Field(
        default=None, description="the result of driver-check, byte by byte"
    )
    reproduce: str | None = Field(
        default=None, description="the submitter's commands that make the run again"
    )

    @model_validator(mode="after")
    def _unique(self) -> Evidence:
        """Refuse a scenario that is there twice: who looks it up would see one, who counts both."""
        counts = Counter(item.id for item in self.catalogue)
        twice = sorted(name for name, number in counts.items() if number > 1)
        if twice:
            raise ValueError(f"scenarios that are in the catalogue twice: {', '.join(twice[:3])}")
        return self

    def run(self, path: Path) -> RecordedRun:
        """Return the run in the result file; messages name it as if ``path`` were a folder.

        Raises:
            UsageError: it is of another version of the format.
            ResultFileError: it is not as a run writes it.
        """
        return parse_results(path / FILE_NAME, self.results.encode())

    def checked(self, path: Path) -> DriverChecked | None:
        """Return the result of driver-check. Raises UsageError: it is none."""
        if self.driver_check is None:
            return None
        return parse_driver_check(f"{path}: driverCheck", self.driver_check.encode())


def write_evidence(
    path: Path,
    report: ConformanceReport,
    result: RecordedRun,
    profiles: ProfileSet,
    catalogue: Sequence[PlannedScenario],
    checked: DriverChecked | None = None,
    reproduce: str = "",
) -> None:
    """Write an evidence file; the same contents give the same bytes.

    Args:
        result: the run; its file is read again.
        profiles: those that the suite ships; written are those that the report names.

    Raises:
        OSError: it cannot be written.
        UsageError: it would be refused for its size when it is read.
    """
    named = profiles.select([item.name for item in report.profiles])
    evidence = Evidence(
        report=report,
        results=Path(result.path).read_bytes().decode(),
        profiles=profiles.model_copy(update={"profiles": named}),
        catalogue=public_files(catalogue),
        driver_check=None if checked is None else checked.text,
        reproduce=reproduce,
    )
    document = evidence.model_dump_json(by_alias=True).encode()
    packed = lzma.compress(document, preset=9) if len(document) <= MAX_BYTES else b""
    if not packed or len(packed) > MAX_PACKED:
        raise UsageError(
            f"{path}: would hold {len(document) >> 20} MiB, more than `verify` reads"
            f" ({MAX_BYTES >> 20} MiB, {MAX_PACKED >> 20} MiB compressed); run fewer scenarios"
        )
    write_whole(path, packed)


def read_evidence(path: Path) -> Evidence:
    """Read an evidence file. Raises UsageError."""
    try:
        document = _unpack(path)
        loads(document, MAX_VALUES, MAX_BYTES)  # refuses what two readers could read differently
        # Refuses text that is no Unicode, and fields by their names in Python, which no other
        # reader of the file knows.
        return Evidence.model_validate_json(document, by_alias=True, by_name=False)
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}; check the path") from None
    except (ValueError, RecursionError, lzma.LZMAError) as error:
        raise UsageError(
            f"{path}: is not an evidence file ({first_problem(error)});"
            " `dra-conformance submit` writes one"
        ) from None


def _unpack(path: Path) -> bytes:
    unpacker = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=MAX_MEMORY)
    document = unpacker.decompress(read_regular(path, MAX_PACKED), MAX_BYTES + 1)
    if len(document) > MAX_BYTES:
        raise ValueError(f"it holds more than {MAX_BYTES >> 20} MiB")
    if not unpacker.eof:
        raise ValueError("it was cut off")
    if unpacker.unused_data:
        raise ValueError("it has more after its end")
    return document


NAMESPACE: Final = "dra-conformance"
"""Of SSH signatures: one that was made for something else is refused."""


class SignatureError(UsageError):
    """A signature that is not good; names the file and what is wrong."""

    exit_code = ExitCode.NOT_CONFORMANT


@dataclass(frozen=True, slots=True)
class Signature:
    """A signature that is good.

    ``identity``: the signer's name in the file of allowed signers; None where none was given.
    """

    key: str
    identity: str | None


def sign_content(content: bytes, key: Path) -> bytes:
    """Return the SSH signature of these bytes, armoured.

    ``key``: an SSH private key; or a public one whose private key is in an agent.
    Raises UsageError: there is no ssh-keygen, or it cannot sign with that key.
    """
    return _ssh_keygen(
        ["-Y", "sign", "-n", NAMESPACE, "-f", str(key)], content, f"--sign {key}"
    ).encode()


def verify_signature(signature: Path, content: bytes, signers: Path | None) -> Signature:
    """Check the signature of these bytes.

    ``signers``: ssh-keygen's file of allowed signers; None: anybody may have signed.

    Raises:
        SignatureError: it is no good signature of these bytes, or its signer is not allowed.
        UsageError: there is no ssh-keygen.
    """
    about = ["-n", NAMESPACE, "-s", str(signature)]
    output = _ssh_keygen(["-Y", "check-novalidate", *about], content, str(signature))
    key = next((word for word in output.split() if word.startswith("SHA256:")), "?")
    if signers is None:
        return Signature(key, None)
    allowed = ["-s", str(signature), "-f", str(signers)]
    find = ["-Y", "find-principals", *allowed]
    identity = _ssh_keygen(find, b"", f"{signature}: {key}").splitlines()[0]
    verify = ["-Y", "verify", "-n", NAMESPACE, *allowed, "-I", identity]
    _ssh_keygen(verify, content, f"{signature}: {identity}")
    return Signature(key, identity)


def _ssh_keygen(arguments: list[str], given: bytes, what: str) -> str:
    try:
        completed = subprocess.run(
            ["ssh-keygen", *arguments], input=given, capture_output=True, timeout=60, check=False
        )
    except FileNotFoundError:
        raise UsageError("ssh-keygen is not installed; it is part of OpenSSH's client") from None
    except subprocess.TimeoutExpired:
        raise UsageError(
            f"{what}: ssh-keygen does not answer; does it ask for a passphrase?"
        ) from None
    if completed.returncode:
        error_text = one_line(
            (completed.stderr or completed.stdout).decode("utf-8", "replace"), 200
        )
        raise SignatureError(f"{what}: ssh-keygen refuses it: {error_text or 'no reason given'}")
    return completed.stdout.decode("utf-8", "replace")
