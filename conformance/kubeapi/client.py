"""The official client for one context of a kubeconfig, with credentials that work or fail loudly.

TLS, proxies, pool and headers are the client's. Who the user is, is found out here: the client logs
the failure of a credential plugin and goes on as nobody, waits for a plugin for ever, gives it the
terminal, and reads a token file only once (docs/decisions/0017-talking-to-an-api-server.md).
"""

from __future__ import annotations

import logging
import ssl
from datetime import UTC, datetime
from typing import Any

from kubernetes.client import ApiClient, Configuration
from kubernetes.config import ConfigException
from kubernetes.config.kube_config import KubeConfigLoader

from conformance.kubeapi.credentials import Credentials
from conformance.kubeapi.errors import reason_of
from conformance.kubeapi.kubeconfig import ClientConfig

_CLUSTER = (
    *("server", "certificate-authority", "certificate-authority-data"),
    *("insecure-skip-tls-verify", "tls-server-name", "proxy-url"),
)
_CONNECTIONS = 128
"""Kept open: one watch per kind of many scenarios at once."""

_ALWAYS = datetime(1970, 1, 1, tzinfo=UTC)


def api_client(config: ClientConfig) -> Any:
    """A client of the official package, not yet connected, that repeats nothing by itself.

    Raises:
        KubeconfigError: the context's certificates or its user cannot be used.
        TargetError: the user's credential plugin failed.
    """
    credentials = Credentials(config)
    logging.getLogger("urllib3.connectionpool").setLevel(logging.ERROR)
    configuration = Configuration()
    try:
        _Loader(config, credentials).load_and_set(configuration)
        if configuration.host.startswith("https:"):
            _check_certificates(configuration)
    except (ConfigException, ValueError, KeyError, TypeError, OSError) as error:
        raise config.wrong(
            f"the certificates of context {config.context!r} cannot be used: {reason_of(error)}"
        ) from None
    if not config.cluster.get("proxy-url"):
        configuration.no_proxy = _without_proxy(configuration.no_proxy) if config.proxies else "*"
    configuration.retries = False
    configuration.connection_pool_maxsize = _CONNECTIONS
    configuration.keep_alive = True
    try:
        return ApiClient(configuration)
    except (ValueError, ImportError) as error:
        raise config.wrong(f"its proxy cannot be used: {reason_of(error)}") from None


class _Loader(KubeConfigLoader):  # type: ignore[misc]  # the package has no types
    """The client's loader, which asks our `Credentials` before each request."""

    def __init__(self, config: ClientConfig, credentials: Credentials) -> None:
        self._credentials = credentials
        self.expiry = _ALWAYS  # so that `_load_authentication` is called before each request
        cluster = {name: config.cluster[name] for name in _CLUSTER if config.cluster.get(name)}
        super().__init__(
            {
                "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
                "clusters": [{"name": "it", "cluster": cluster}],
                "users": [{"name": "it", "user": credentials.certificate()}],
            },
            active_context="it",
        )

    def _load_authentication(self) -> None:
        if authorization := self._credentials.authorization():
            self.token = authorization


def _without_proxy(named: str | None) -> str:
    """Hosts that no proxy of the environment is for: this machine never (as Go's net/http)."""
    return ",".join(filter(None, [named, "localhost", "127.0.0.0/8", "::1"]))


def _check_certificates(configuration: Any) -> None:
    """Read them once as the client will: it would fail at its first request only.

    Raises:
        OSError: one of them cannot be used.
    """
    context = ssl.create_default_context(cafile=configuration.ssl_ca_cert or None)
    if configuration.cert_file:
        # No password: a key that has one is refused rather than asked for on the terminal.
        context.load_cert_chain(configuration.cert_file, configuration.key_file, password="")
