"""TLS as a kubeconfig asks for it, and what to do where it fails."""

from __future__ import annotations

import binascii
import ssl
import tempfile
from base64 import b64decode
from collections.abc import Mapping
from pathlib import Path

from conformance.kubeapi.kubeconfig import ClientConfig

_REMEDIES = (
    ("hostname mismatch", "use a server address that its certificate names, or tls-server-name"),
    ("ip address mismatch", "use a server address that its certificate names, or tls-server-name"),
    ("has expired", "renew the server's certificate, or correct this machine's clock"),
    ("not yet valid", "correct this machine's clock"),
    (
        "certificate_verify_failed",
        "it was not signed by the kubeconfig's certificate-authority: correct that",
    ),
    ("wrong_version_number", "this port does not speak TLS: is it an http:// address?"),
    ("record_layer_failure", "this port does not speak TLS: is it an http:// address?"),
    ("certificate_required", "the server wants a client certificate: see the context's user"),
)


def tls_context(config: ClientConfig, certificate: Mapping[str, str]) -> ssl.SSLContext:
    """How to speak TLS with a context's server.

    Args:
        config: of the context.
        certificate: ``client-certificate`` and ``client-key`` of the user, as files, or with
            ``-data`` as base64; {} without one.

    Raises:
        KubeconfigError: one of the certificates or keys cannot be used.
    """
    context = _with_authority(config)
    # client-go asks no more of a certificate than RFC 5280's must; many clusters' have no key ids.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if config.cluster.get("insecure-skip-tls-verify"):
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    _load_certificate(context, config, certificate)
    return context


def remedy(error: BaseException) -> str | None:
    """What a user can do about a failure of TLS; None where it is another failure."""
    found: BaseException | None = error
    while found is not None and not isinstance(found, ssl.SSLError):
        reason = getattr(found, "reason", None)
        found = reason if isinstance(reason, BaseException) else found.__cause__
    if found is None:
        return None
    text = str(found).lower()
    return next(
        (what for sign, what in _REMEDIES if sign in text),
        "check the certificates of the kubeconfig and of the server",
    )


def _with_authority(config: ClientConfig) -> ssl.SSLContext:
    file, data = (config.cluster.get(f"certificate-authority{suffix}") for suffix in ("", "-data"))
    name = "certificate-authority-data" if data else f"certificate-authority {file}"
    try:
        if data:
            return ssl.create_default_context(cadata=_pem(data))
        if file:
            return ssl.create_default_context(cadata=Path(file).read_text(encoding="ascii"))
        return ssl.create_default_context()  # the machine's own authorities
    except (ValueError, ssl.SSLError):
        raise config.wrong(
            f"{name} of the context's cluster is not a PEM certificate; "
            "take the right one from the cluster's administrator"
        ) from None
    except OSError as error:
        raise config.wrong(
            f"{name} of the context's cluster cannot be read: {error.strerror}"
        ) from None


def _load_certificate(
    context: ssl.SSLContext, config: ClientConfig, certificate: Mapping[str, str]
) -> None:
    """Python's ssl reads a client's certificate from files only, so data is written to some."""
    with tempfile.TemporaryDirectory() as folder:  # nobody else's to read
        paths: list[str] = []
        for name in ("client-certificate", "client-key"):
            if data := certificate.get(f"{name}-data"):
                path = Path(folder) / name
                try:
                    path.write_text(_pem(data))
                except ValueError:
                    raise config.wrong(
                        f"user {config.user_name!r}: {name}-data is not a PEM text in base64"
                    ) from None
                paths.append(str(path))
            elif file := certificate.get(name):
                paths.append(file)
        if not paths:
            return
        try:
            # No password: a key that has one is refused rather than asked for on the terminal.
            context.load_cert_chain(paths[0], paths[1] if paths[1:] else None, password="")
        except OSError as error:
            said = error.reason if isinstance(error, ssl.SSLError) else error.strerror
            raise config.wrong(
                f"user {config.user_name!r}: the client certificate or its key cannot be used"
                f"{f': {said}' if said else ''}"
            ) from None


def _pem(data: str) -> str:
    """Raises ValueError where it is not base64, or not text."""
    try:
        return b64decode(data, validate=False).decode("ascii")
    except binascii.Error as error:
        raise ValueError(str(error)) from None
