"""The official client for one context of a kubeconfig, with credentials that work or fail loudly.

TLS, proxies, pool and headers are the client's. Who the user is, is found out here: the client logs
the failure of a credential plugin and goes on as nobody, waits for a plugin for ever, gives it the
terminal, and reads a token file only once (docs/decisions/0017-talking-to-an-api-server.md).
"""

from __future__ import annotations

import base64
import binascii
import json
import logging
import os
import ssl
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kubernetes.client import ApiClient, Configuration
from kubernetes.config import ConfigException
from kubernetes.config.kube_config import KubeConfigLoader

from kube.base.errors import TargetError
from kube.errors import reason_of
from kube.execplugin import expiry_of, run_plugin
from kube.kubeconfig import ClientConfig

_EARLY, _AT_LEAST = 30.0, 10.0  # seconds before its end; and at least from one to the next
_FILE_SECONDS = 60.0  # client-go reads a token file once a minute (transport/token_source.go)


@dataclass(frozen=True, slots=True)
class _Issued:
    """A credential: the ``Authorization`` header ("" for none), and until when it is valid."""

    authorization: str = field(default="", repr=False)
    certificate: str = field(default="", repr=False)
    key: str = field(default="", repr=False)
    until: float | None = None


class Credentials:
    """The credentials of one context's user, renewed before they expire. Safe for threads.

    The order of a user's kinds of credentials is client-go's: a token file, a token, a plugin,
    user and password.

    Raises:
        KubeconfigError: the kubeconfig does not say properly who the user is.
        TargetError: a plugin failed, or its credential cannot be used.
    """

    def __init__(self, config: ClientConfig) -> None:
        self._config = config
        self._lock = threading.Lock()
        self._issued = _issue(config)
        self._renew_at = _renewal(self._issued)

    def make_authorization(self) -> str:
        """Return the ``Authorization`` header, "" for none. Raises KubeconfigError, TargetError."""
        with self._lock:
            if self._renew_at is not None and time.time() >= self._renew_at:
                self._issued = _issue(self._config)
                self._renew_at = _renewal(self._issued)
            return self._issued.authorization

    def find_certificate(self) -> dict[str, str]:
        """Return the fields of a kubeconfig user that carry the client's certificate."""
        issued, user = self._issued, self._config.user
        if issued.certificate:
            return {
                "client-certificate-data": _base64(issued.certificate),
                "client-key-data": _base64(issued.key),
            }
        return {
            name: value
            for name, value in user.items()
            if value and name.startswith(("client-certificate", "client-key"))
        }


def _renewal(issued: _Issued) -> float | None:
    if issued.until is None:
        return None
    return max(issued.until - _EARLY, time.time() + _AT_LEAST)


def _issue(config: ClientConfig) -> _Issued:
    user = config.user
    if user.get("tokenFile"):
        try:
            token = Path(user["tokenFile"]).read_text().strip()
        except (OSError, ValueError) as error:
            raise config.make_error(
                f"user {config.user_name!r}: tokenFile {user['tokenFile']} cannot be read: "
                f"{reason_of(error)}"
            ) from None
        return _bearer(config, token, time.time() + _EARLY + _FILE_SECONDS)
    if user.get("token"):
        return _bearer(config, user["token"].strip())
    if user.get("exec") is not None:
        return _from_plugin(config)
    if user.get("auth-provider") is not None:
        return _from_provider(config)
    if user.get("username") or config.login:
        name, password = config.login or (user["username"], user.get("password") or "")
        return _Issued("Basic " + _base64(f"{name}:{password}"))
    return _Issued()


def _bearer(config: ClientConfig, token: str, until: float | None = None) -> _Issued:
    if not token or not all("!" <= character <= "~" for character in token):
        raise config.make_error(
            f"user {config.user_name!r}: the token is empty or has characters that are not allowed"
        )
    return _Issued(f"Bearer {token}", until=until)


def _from_plugin(config: ClientConfig) -> _Issued:
    status = run_plugin(config, os.environ)
    wrong = f"{config.where}: user {config.user_name!r}: the credential plugin printed "
    try:
        until = expiry_of(status)
    except (ValueError, OverflowError):
        raise TargetError(f"{wrong}an expirationTimestamp that is not an RFC 3339 time") from None
    texts = [status.get(name) for name in ("token", "clientCertificateData", "clientKeyData")]
    if not all(isinstance(text, str | None) for text in texts):
        raise TargetError(f"{wrong}a token or certificate that is not a string")
    token, certificate, key = (text or "" for text in texts)
    if bool(certificate) != bool(key) or not (token or certificate):
        raise TargetError(f"{wrong}neither a token nor a certificate with its key")
    authorization = _bearer(config, token).authorization if token else ""
    return _Issued(authorization, certificate, key, until)


def _from_provider(config: ClientConfig) -> _Issued:
    """Return an OpenID token that still holds; all else of ``auth-provider`` is kubectl's past."""
    provider: Any = config.user["auth-provider"]
    name = provider.get("name") if isinstance(provider, dict) else None
    user = f"user {config.user_name!r}: auth-provider"
    if name != "oidc":
        raise config.make_error(
            f"{user} {name!r} is not supported (Kubernetes removed all but oidc in 1.26); use a "
            "credential plugin (exec) or a token"
        )
    settings = provider.get("config")
    token = settings.get("id-token") if isinstance(settings, dict) else None
    if not isinstance(token, str) or not token:
        raise config.make_error(f"{user} oidc has no id-token; log in with kubectl first")
    try:
        body = token.split(".")[1]
        end = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4))).get("exp")
        over = end is not None and float(end) <= time.time()
    except (IndexError, ValueError, TypeError, AttributeError, binascii.Error, RecursionError):
        raise config.make_error(f"{user} oidc: the id-token is not a JWT") from None
    if over:
        raise config.make_error(
            f"{user} oidc: the id-token has expired; run any kubectl command with the context "
            f"{config.context!r} to renew it"
        )
    return _bearer(config, token)


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


_CLUSTER = (
    *("server", "certificate-authority", "certificate-authority-data"),
    *("insecure-skip-tls-verify", "tls-server-name", "proxy-url"),
)
_CONNECTIONS = 128  # Kept open: one watch per kind of many scenarios at once.


def api_client(config: ClientConfig) -> Any:
    """Return a client of the official package, not yet connected, that repeats nothing by itself.

    Raises:
        KubeconfigError: the context's certificates or its user cannot be used.
        TargetError: the user's credential plugin failed.
    """
    credentials = Credentials(config)
    logging.getLogger("urllib3.connectionpool").setLevel(logging.ERROR)
    configuration = Configuration()
    try:
        _load(config, credentials.find_certificate(), configuration)
        if configuration.host.startswith("https:"):
            _check_certificates(configuration)
    except (ConfigException, ValueError, KeyError, TypeError, OSError) as error:
        raise config.make_error(
            f"the certificates of context {config.context!r} cannot be used: {reason_of(error)}"
        ) from None

    def renew(configuration: Any) -> None:  # is called before each request
        if authorization := credentials.make_authorization():
            configuration.api_key["BearerToken"] = authorization

    renew(configuration)
    configuration.refresh_api_key_hook = renew
    if not config.cluster.get("proxy-url"):
        configuration.no_proxy = _without_proxy(configuration.no_proxy) if config.proxies else "*"
    configuration.retries = False
    configuration.connection_pool_maxsize = _CONNECTIONS
    configuration.keep_alive = True
    try:
        return ApiClient(configuration)
    except (ValueError, ImportError) as error:
        raise config.make_error(f"its proxy cannot be used: {reason_of(error)}") from None


def _load(config: ClientConfig, certificate: dict[str, str], configuration: Any) -> None:
    """Make the client read the server, its certificates and the user's, and nothing else."""
    cluster = {name: config.cluster[name] for name in _CLUSTER if config.cluster.get(name)}
    document = {
        "contexts": [{"name": "only", "context": {"cluster": "only", "user": "only"}}],
        "clusters": [{"name": "only", "cluster": cluster}],
        "users": [{"name": "only", "user": certificate}],
    }
    KubeConfigLoader(document, active_context="only").load_and_set(configuration)


def _without_proxy(named: str | None) -> str:
    """Hosts that no proxy of the environment is for: this machine never (as Go's net/http)."""
    return ",".join(filter(None, [named, "localhost", "127.0.0.0/8", "::1"]))


def _check_certificates(configuration: Any) -> None:
    """Read them once as the client will: it would fail at its first request only.

    Raises OSError: one of them cannot be used.
    """
    context = ssl.create_default_context(cafile=configuration.ssl_ca_cert or None)
    if configuration.cert_file:
        # No password: a key that has one is refused rather than asked for on the terminal.
        context.load_cert_chain(configuration.cert_file, configuration.key_file, password="")
