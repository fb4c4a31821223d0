"""The official client for one context of a kubeconfig, with credentials that work or fail loudly.

TLS, proxies, pool and headers are the client's. Who the user is, is found out here: the client logs
the failure of a credential plugin and goes on as nobody, waits for a plugin for ever, gives it the
terminal, and reads a token file only once (docs/decisions/0017-talking-to-an-api-server.md).
"""

from __future__ import annotations

import logging
import ssl
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
        _load(config, credentials.certificate(), configuration)
        if configuration.host.startswith("https:"):
            _check_certificates(configuration)
    except (ConfigException, ValueError, KeyError, TypeError, OSError) as error:
        raise config.wrong(
            f"the certificates of context {config.context!r} cannot be used: {reason_of(error)}"
        ) from None

    def renew(configuration: Any) -> None:  # is called before each request
        if authorization := credentials.authorization():
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
        raise config.wrong(f"its proxy cannot be used: {reason_of(error)}") from None


def _load(config: ClientConfig, certificate: dict[str, str], configuration: Any) -> None:
    """Have the client read the server, its certificates and the user's, and nothing else."""
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

    Raises:
        OSError: one of them cannot be used.
    """
    context = ssl.create_default_context(cafile=configuration.ssl_ca_cert or None)
    if configuration.cert_file:
        # No password: a key that has one is refused rather than asked for on the terminal.
        context.load_cert_chain(configuration.cert_file, configuration.key_file, password="")
