"""Reads the driver's kubeconfig, or the service account of its pod, into the client's settings.

The client's own loader expects a well-formed file, and fails on any other with whatever Python
raises there. So the file is checked against its schema first, and each problem is one message.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml
from kubernetes import client, config
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from nvml_driver.errors import KubeError, problems

_LARGEST = 1 << 20


class _Part(BaseModel):
    model_config = ConfigDict(extra="allow", strict=True)


class _Server(_Part):
    server: str


class _Cluster(_Part):
    name: str
    cluster: _Server


class _Names(_Part):
    cluster: str
    user: str = ""
    namespace: str = "default"


class _Context(_Part):
    name: str
    context: _Names


class _User(_Part):
    name: str
    user: dict[str, Any] | None = None


class _Kubeconfig(_Part):
    """The fields of ``clientcmd/api/v1.Config`` without which nobody can be connected."""

    current_context: str = Field(alias="current-context", min_length=1)
    clusters: list[_Cluster]
    contexts: list[_Context]
    users: list[_User] | None = None


def load(path: Path | None) -> client.Configuration:
    """The settings of a client; no server is asked yet.

    Args:
        path: a kubeconfig file, of which the current context counts; None: the service account of
            the pod.

    Raises:
        KubeError: there is no such file, it is not a kubeconfig, or this is not a pod.
    """
    settings = client.Configuration()
    if path is None:
        try:
            config.load_incluster_config(client_configuration=settings)
        except config.ConfigException as error:
            raise KubeError(
                f"no --kubeconfig was given, and this is not a pod with a service account: {error}"
            ) from None
        return settings
    document = _read(path)
    try:
        loader = config.kube_config.KubeConfigLoader(document, config_base_path=str(path.parent))
        loader.load_and_set(settings)
    except Exception as error:  # noqa: BLE001 -- certificates and plugins fail in many ways there
        raise KubeError(f"kubeconfig {path} cannot be used: {error}") from None
    try:
        address = urlsplit(settings.host)
        valid = address.scheme in {"http", "https"} and address.hostname and address.port != 0
    except ValueError:  # a port that is not a number
        valid = False
    if not valid:
        raise KubeError(
            f"kubeconfig {path}: the server of context {document['current-context']!r} must be an "
            f"https:// URL, found {settings.host!r}"
        )
    return settings


def _read(path: Path) -> dict[str, Any]:
    """The document, checked as far as the client's loader takes it for granted."""
    try:
        if not path.exists():
            raise KubeError(f"kubeconfig {path} does not exist")
        if not path.is_file():  # a device or a pipe might never end
            raise KubeError(f"kubeconfig {path} is not a regular file")
        if path.stat().st_size > _LARGEST:
            raise KubeError(f"kubeconfig {path} is larger than {_LARGEST} bytes")
        document = yaml.safe_load(path.read_bytes())
    except OSError as error:
        raise KubeError(f"kubeconfig {path} cannot be read: {error.strerror}") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        line = "" if mark is None else f":{mark.line + 1}"
        raise KubeError(f"kubeconfig {path}{line}: not YAML: {error.problem}") from None
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        reason = (
            "nested too deeply"
            if isinstance(error, RecursionError)
            else " ".join(str(error).split())
        )
        raise KubeError(f"kubeconfig {path}: not YAML: {reason}") from None
    if not isinstance(document, dict):
        raise KubeError(f"kubeconfig {path}: a kubeconfig is a mapping with clusters and contexts")
    try:
        _Kubeconfig.model_validate(document)
    except ValidationError as error:
        raise KubeError(f"kubeconfig {path}: {problems(error, root='$')}") from None
    return document
