"""A client of the official ``kubernetes`` package for one context of a kubeconfig.

Only its TLS, proxies and pool are used. Reading the file and becoming its user is done here: the
package logs a plugin's failure and goes on as nobody, does the same where the user is not in the
file, waits for a plugin for ever, and raises whatever comes where a value is not as it expects.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from conformance.kubeapi.credentials import Credentials
from conformance.kubeapi.exchange import bound, reason_of
from conformance.kubeapi.kubeconfig import choose

_CLUSTER = (
    *("server", "certificate-authority", "certificate-authority-data"),
    *("insecure-skip-tls-verify", "tls-server-name", "proxy-url"),
)


def api_client(kubeconfig: Path, context: str) -> Any:
    """A client of the official ``kubernetes`` package for that context, not yet connected.

    The client's own retries are off (the caller knows which requests may be repeated), and its
    pool is large enough for one watch per kind of many scenarios at once.

    Raises:
        KubeconfigError: the file or the context is wrong.
        TargetError: the user's credential plugin failed.
    """
    chosen = choose(kubeconfig, context)
    credentials = Credentials(chosen)
    # A second to import, so only when a cluster is really used.
    from kubernetes.client import ApiClient, Configuration
    from kubernetes.config import ConfigException
    from kubernetes.config.kube_config import load_kube_config_from_dict

    logging.getLogger("urllib3.connectionpool").setLevel(logging.ERROR)
    configuration = Configuration()
    cluster = {name: chosen.cluster[name] for name in _CLUSTER if chosen.cluster.get(name)}
    reduced = {
        "contexts": [{"name": context, "context": {"cluster": "cluster", "user": "user"}}],
        "clusters": [{"name": "cluster", "cluster": cluster}],
        "users": [{"name": "user", "user": credentials.certificate()}],
    }
    try:
        load_kube_config_from_dict(reduced, context=context, client_configuration=configuration)
        configuration.retries = False
        configuration.connection_pool_maxsize = 128
        configuration.keep_alive = True
        client = ApiClient(configuration)
    except (ConfigException, ValueError, KeyError, TypeError, OSError) as error:
        raise chosen.wrong(f"context {context!r} cannot be used: {reason_of(error)}") from None

    def renew(changed: Configuration) -> None:
        changed.api_key["authorization"] = credentials.authorization()

    if credentials.authorization():
        configuration.refresh_api_key_hook = renew
        renew(configuration)
    return bound(client)
