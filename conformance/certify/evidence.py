"""The evidence of a submission: all that its report was made from, in one file.

It is one JSON document, compressed by xz: the report, the result file as it is, the profiles that
the report names, and what the suite that ran says of each of its scenarios. So it can be checked
without a cluster, and by another version of the suite than wrote it. The file may come from
anybody: each limit here is far above what a run gives. ``ssh-keygen -Y`` signs it and verifies
that, offline; what a signature is worth is in docs/certifying.md.
"""

from __future__ import annotations

import json
import lzma
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import Field, model_validator

from conformance.certify.driverchecked import DriverChecked, parse_driver_check
from conformance.certify.model import ConformanceReport
from conformance.certify.profiles import ProfileSet
from conformance.certify.values import find_repeated
from conformance.results.events.scenario import PlannedScenario
from conformance.results.read import MAX_LINE, RecordedRun, first_problem, parse_results
from conformance.results.write import FILE_NAME, public_files
from conformance.scenario.base import Strict
from kube.base.errors import ExitCode, UsageError
from kube.base.files import open_regular, read_regular, write_whole
from kube.base.strictjson import bytes_of_character, check_bounds, parse
from kube.base.text import one_line

MAX_PACKED: Final = 64 << 20  # Bytes of the file.
MAX_BYTES: Final = 256 << 20
"""Bytes of the document, as it takes memory; that of the shipped scenarios has 15 MB, on a cluster
of 35 nodes with 8 GPUs each it would have this much."""

MAX_VALUES: Final = 100_000
"""Of the document, the result file in it being one; that of the shipped scenarios has 8,600."""

MAX_MEMORY: Final = 128 << 20  # Bytes that unpacking may use: xz's own presets need at most 65 MiB.


_PRESET: Final = 7  # Takes 186 MiB to pack; 9 takes 674 MiB, and packs a run no smaller.
_PIECE: Final = 1 << 20  # Bytes that are unpacked at a time.


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
        if twice := find_repeated(item.id for item in self.catalogue):
            raise ValueError(f"scenarios that are in the catalogue twice: {', '.join(twice[:3])}")
        return self

    def run(self, path: Path) -> RecordedRun:
        """Return the run in the result file; messages name it as if ``path`` were a folder.

        Raises:
            UsageError: it is of another version of the format.
            ResultFileError: it is not as a run writes it.
        """
        return parse_results(path / FILE_NAME, self._lines())

    def _lines(self) -> Iterator[bytes]:
        """The lines of the result file with their ends; no whole copy of it is made."""
        start = 0
        while start < len(self.results):
            end = self.results.find("\n", start) + 1 or len(self.results)
            end = min(end, start + MAX_LINE + 1)
            yield self.results[start:end].encode()
            start = end

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
        results="",
        profiles=profiles.model_copy(update={"profiles": named}),
        catalogue=public_files(catalogue),
        driver_check=None if checked is None else checked.text,
        reproduce=reproduce,
    )
    packer = lzma.LZMACompressor(preset=_PRESET)
    packed, size, width = bytearray(), 0, 1
    for piece in _document(evidence, Path(result.path)):
        size += len(piece)
        width = max(width, bytes_of_character(piece))
        packed += packer.compress(piece)
        if size * width > MAX_BYTES:
            break
    packed += packer.flush()
    if size * width > MAX_BYTES or len(packed) > MAX_PACKED:
        raise UsageError(
            f"{path}: would hold more than `verify` reads ({MAX_BYTES >> 20} MiB,"
            f" {MAX_PACKED >> 20} MiB compressed); run fewer scenarios"
        )
    write_whole(path, packed)


def _document(evidence: Evidence, results: Path) -> Iterator[bytes]:
    """The document with the result file in it, of which a line is there at a time."""
    before = evidence.model_dump_json(by_alias=True, include={"report"})
    after = evidence.model_dump_json(by_alias=True, exclude={"report", "results"})
    yield f'{before[:-1]},"results":"'.encode()
    with open_regular(results) as file:
        for line in file:
            yield json.dumps(line.decode())[1:-1].encode()
    yield f'",{after[1:]}'.encode()


def read_evidence(path: Path) -> Evidence:
    """Read an evidence file. Raises UsageError."""
    try:
        document = parse(_text(path))  # refuses what two readers could read differently
        # Without the result file, of which there would be two more copies.
        results = document.get("results") if isinstance(document, dict) else None
        if isinstance(results, str):
            document["results"] = ""
            results.encode()  # refuses text that is no Unicode, as what follows
        # Refuses fields by their names in Python, too, which no other reader of the file knows.
        evidence = Evidence.model_validate_json(json.dumps(document), by_alias=True, by_name=False)
        return evidence.model_copy(update={"results": results})
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}; check the path") from None
    except (ValueError, RecursionError, lzma.LZMAError) as error:
        raise UsageError(
            f"{path}: is not an evidence file ({first_problem(error)});"
            " `dra-conformance submit` writes one"
        ) from None


def _text(path: Path) -> str:
    """The document in an evidence file, within its bounds.

    Raises OSError: it cannot be read; LZMAError or ValueError: it is damaged or too large.
    """
    packed = read_regular(path, MAX_PACKED)
    unpacker = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=MAX_MEMORY)
    document = bytearray()  # grows in place, where joined pieces would be there twice
    while not unpacker.eof:
        piece = unpacker.decompress(packed, _PIECE)
        packed = b""
        document += piece
        if len(document) > MAX_BYTES:
            raise ValueError(f"it holds more than {MAX_BYTES >> 20} MiB")
        if not piece and unpacker.needs_input and not unpacker.eof:
            raise ValueError("it was cut off")
    if unpacker.unused_data:
        raise ValueError("it has more after its end")
    check_bounds(document, MAX_VALUES, MAX_BYTES)
    return document.decode("utf-8-sig")


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
