"""Who vouches for a submission: an SSH signature of its evidence file.

``ssh-keygen -Y`` signs and verifies, offline; there is no cryptography here, and anybody can check
a signature with that command alone. What a signature is worth is in docs/certifying.md.
"""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from conformance.errors import ExitCode, UsageError
from conformance.text import one_line

NAMESPACE: Final = "dra-conformance"
"""Of SSH signatures: one that was made for something else is refused."""


class SignatureError(UsageError):
    """A signature that is not good; names the file and what is wrong."""

    exit_code = ExitCode.NOT_CONFORMANT


@dataclass(frozen=True, slots=True)
class Signature:
    """A signature that is good.

    Attributes:
        identity: the signer's name in the file of allowed signers; None where none was given.
    """

    key: str
    identity: str | None


def signed(content: bytes, key: Path) -> bytes:
    """The SSH signature of these bytes, armoured.

    Args:
        key: an SSH private key; or a public one whose private key is in an agent.

    Raises:
        UsageError: there is no ssh-keygen, or it cannot sign with that key.
    """
    return _ssh_keygen(
        ["-Y", "sign", "-n", NAMESPACE, "-f", str(key)], content, f"--sign {key}"
    ).encode()


def verified(signature: Path, content: bytes, signers: Path | None) -> Signature:
    """Check the signature of these bytes.

    Args:
        signers: ssh-keygen's file of allowed signers; None: anybody may have signed.

    Raises:
        SignatureError: it is no good signature of these bytes, or its signer is not allowed.
        UsageError: there is no such file of signers, or no ssh-keygen.
    """
    about = ["-n", NAMESPACE, "-s", str(signature)]
    said = _ssh_keygen(["-Y", "check-novalidate", *about], content, str(signature))
    key = next((word for word in said.split() if word.startswith("SHA256:")), "?")
    if signers is None:
        return Signature(key, None)
    if not signers.is_file():
        raise UsageError(f"{signers}: is not an allowed signers file; see ssh-keygen(1)")
    allowed = ["-s", str(signature), "-f", str(signers)]
    find = ["-Y", "find-principals", *allowed]
    identity = _ssh_keygen(find, b"", f"{signature}: {key}").splitlines()[0]
    verify = ["-Y", "verify", "-n", NAMESPACE, *allowed, "-I", identity]
    _ssh_keygen(verify, content, f"{signature}: {identity}")
    return Signature(key, identity)


def _ssh_keygen(arguments: list[str], given: bytes, what: str) -> str:
    try:
        done = subprocess.run(
            ["ssh-keygen", *arguments], input=given, capture_output=True, timeout=60, check=False
        )
    except FileNotFoundError:
        raise UsageError("ssh-keygen is not installed; it is part of OpenSSH's client") from None
    except subprocess.TimeoutExpired:
        raise UsageError(
            f"{what}: ssh-keygen does not answer; does it ask for a passphrase?"
        ) from None
    if done.returncode:
        said = one_line((done.stderr or done.stdout).decode("utf-8", "replace"), 200)
        raise SignatureError(f"{what}: ssh-keygen refuses it: {said or 'no reason given'}")
    return done.stdout.decode("utf-8", "replace")
