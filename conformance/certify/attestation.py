"""Who vouches for a submission: an in-toto statement, signed with an SSH key.

Nothing here is cryptography of our own. The statement is in-toto's (v1) with its predicate for test
results (v0.1), its envelope is DSSE (v1), and ``ssh-keygen -Y`` signs and verifies, without a
network (https://github.com/in-toto/attestation, https://github.com/secure-systems-lab/dsse,
ssh-keygen(1)). What a signature is worth is in docs/certifying.md.
"""

from __future__ import annotations

import base64
import json
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from conformance.certify.model import ConformanceReport
from conformance.certify.values import Result
from conformance.errors import ExitCode, UsageError
from conformance.strictjson import loads, read_object
from conformance.text import one_line

STATEMENT: Final = "https://in-toto.io/Statement/v1"
PREDICATE: Final = "https://in-toto.io/attestation/test-result/v0.1"
PAYLOAD: Final = "application/vnd.in-toto+json"
NAMESPACE: Final = "dra-conformance"
"""Of SSH signatures: one that was made for something else is none."""
MAX_BYTES: Final = 1 << 20

_BEGIN, _END = "-----BEGIN SSH SIGNATURE-----", "-----END SSH SIGNATURE-----"
_RESULTS = {Result.SUCCESS: "PASSED", Result.FAILURE: "FAILED"}


class AttestationError(UsageError):
    """A signature that is none, or of something else; says the file and what is wrong."""

    exit_code = ExitCode.NOT_CONFORMANT


@dataclass(frozen=True, slots=True)
class Signature:
    """A signature that is good.

    Attributes:
        key: the fingerprint of its key.
        identity: who that is by the file of allowed signers; None where none was given.
    """

    key: str
    identity: str | None


def statement(report: ConformanceReport, files: Mapping[str, str]) -> dict[str, Any]:
    """The in-toto statement on a submission.

    Args:
        report: what it comes to.
        files: name -> ``sha256:`` digest.
    """
    subjects = [_described(name, digest) for name, digest in sorted(files.items())]
    if report.implementation.image is not None:
        name, _, digest = report.implementation.image.partition("@")
        subjects.append(_described(name, digest))
    tested = [_described("scenario set", report.suite.scenario_set_digest)]
    if report.driver_profile is not None:
        tested.append(_described("driver profile", report.driver_profile.digest))
    of = {
        word: [item.name for item in report.profiles if _word(item.result) == word]
        for word in ("PASSED", "WARNED", "FAILED")
    }
    return {
        "_type": STATEMENT,
        "subject": subjects,
        "predicateType": PREDICATE,
        "predicate": {
            "result": next(word for word in ("FAILED", "WARNED", "PASSED") if of[word]),
            "configuration": tested,
            **({"url": report.implementation.ci_run} if report.implementation.ci_run else {}),
            "passedTests": of["PASSED"],
            "warnedTests": of["WARNED"],
            "failedTests": of["FAILED"],
        },
    }


def signed(document: Mapping[str, Any], key: Path) -> str:
    """The DSSE envelope of a statement, as JSON.

    Args:
        document: the statement.
        key: an SSH private key; or a public one, whose other half an agent has.

    Raises:
        UsageError: there is no ssh-keygen, or it cannot sign with that key.
    """
    payload = json.dumps(document, sort_keys=True).encode()
    armoured = _ssh_keygen(
        ["-Y", "sign", "-n", NAMESPACE, "-f", str(key)], _encoded(payload), f"--sign {key}"
    )
    body = armoured.replace(_BEGIN, "").replace(_END, "")
    envelope = {
        "payloadType": PAYLOAD,
        "payload": base64.b64encode(payload).decode(),
        "signatures": [{"keyid": "", "sig": "".join(body.split())}],
    }
    return json.dumps(envelope, indent=1) + "\n"


def verified(
    file: Path, report: ConformanceReport, files: Mapping[str, str], signers: Path | None
) -> Signature:
    """Check an envelope: its statement is the one on this submission, its signature is good.

    Args:
        file: the envelope.
        report: of the submission.
        files: name -> ``sha256:`` digest, as they are.
        signers: ssh-keygen's file of allowed signers; None: whoever signed it.

    Raises:
        AttestationError: it is no such envelope, says something else, or its signature is not good
            or of nobody who is allowed.
        UsageError: a file cannot be read, or there is no ssh-keygen.
    """
    envelope = read_object(file, MAX_BYTES)
    try:
        payload = base64.b64decode(envelope["payload"], validate=True)
        [signature] = envelope["signatures"]
        blob = base64.b64decode(signature["sig"], validate=True)
        said = loads(payload)
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise AttestationError(
            f"{file}: is no DSSE envelope with one signature ({one_line(error, 100)})"
        ) from None
    if envelope.get("payloadType") != PAYLOAD:
        raise AttestationError(f"{file}: $.payloadType: must be {PAYLOAD}")
    if said != statement(report, files):
        raise AttestationError(f"{file}: is not about this submission: its statement is another")
    if signers is not None and not signers.is_file():
        raise UsageError(f"{signers}: is no file of allowed signers; see ssh-keygen(1)")
    return _check(file, payload, blob, signers)


def _check(file: Path, payload: bytes, blob: bytes, signers: Path | None) -> Signature:
    text = base64.b64encode(blob).decode()
    lines = [text[at : at + 70] for at in range(0, len(text), 70)]
    with tempfile.NamedTemporaryFile("w", suffix=".sig") as armoured:
        armoured.write("\n".join([_BEGIN, *lines, _END, ""]))
        armoured.flush()
        of = ["-n", NAMESPACE, "-s", armoured.name]
        told = _ssh_keygen(["-Y", "check-novalidate", *of], _encoded(payload), str(file))
        key = next((word for word in told.split() if word.startswith("SHA256:")), "?")
        if signers is None:
            return Signature(key, None)
        allowed = ["-f", str(signers)]
        find = ["-Y", "find-principals", "-s", armoured.name, *allowed]
        identity = _ssh_keygen(find, b"", f"{file}: {key}").splitlines()[0]
        verify = ["-Y", "verify", *of, *allowed, "-I", identity]
        _ssh_keygen(verify, _encoded(payload), f"{file}: {identity}")
        return Signature(key, identity)


def _encoded(payload: bytes) -> bytes:
    """What is signed: DSSE's pre-authentication encoding."""
    kind = PAYLOAD.encode()
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


def _ssh_keygen(arguments: list[str], given: bytes, what: str) -> str:
    try:
        done = subprocess.run(
            ["ssh-keygen", *arguments], input=given, capture_output=True, timeout=60, check=False
        )
    except FileNotFoundError:
        raise UsageError("ssh-keygen is not installed; it is part of OpenSSH's client") from None
    except subprocess.TimeoutExpired:
        raise UsageError(f"{what}: ssh-keygen does not answer; is a passphrase wanted?") from None
    if done.returncode:
        told = one_line((done.stderr or done.stdout).decode("utf-8", "replace"), 200)
        raise AttestationError(f"{what}: ssh-keygen refuses it: {told or 'no reason given'}")
    return done.stdout.decode("utf-8", "replace")


def _described(name: str, digest: str) -> dict[str, Any]:
    """A ResourceDescriptor."""
    algorithm, _, value = digest.partition(":")
    return {"name": name, "digest": {algorithm: value}}


def _word(result: Result) -> str:
    return _RESULTS.get(result, "WARNED")
