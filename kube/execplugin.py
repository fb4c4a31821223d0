"""Credential plugins (``users[].user.exec``), run with bounded time and output.

The protocol is ``client.authentication.k8s.io`` (Kubernetes documentation: Authenticating,
"client-go credential plugins"). A plugin is never given the terminal: a run must not wait for
somebody to type.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from kube.base.errors import TargetError
from kube.base.redaction import redact_log
from kube.base.text import one_line
from kube.kubeconfig import ClientConfig

_LOG = logging.getLogger(__name__)

SECONDS = 60.0
"""Longest that a plugin may take; one that logs in over the network takes some seconds."""

_GROUP = "client.authentication.k8s.io/"
_EXTENSION = "client.authentication.k8s.io/exec"
_Json = dict[str, Any]


def run_plugin(config: ClientConfig, environment: Mapping[str, str]) -> _Json:
    """Return the ``status`` of the ExecCredential that the plugin of a user prints.

    Args:
        config: its user has ``exec``.
        environment: of this program; the plugin's own variables are added.

    Raises:
        KubeconfigError: the kubeconfig does not say properly what to run.
        TargetError: the plugin failed, took too long or printed something else.
    """
    plugin = config.user["exec"]
    command, variables, version = _checked(config, plugin)
    info = {
        "apiVersion": version,
        "kind": "ExecCredential",
        "spec": {"interactive": False, **_cluster_info(config, plugin)},
    }
    variables = {**environment, **variables, "KUBERNETES_EXEC_INFO": json.dumps(info)}
    name = f"{config.where}: user {config.user_name!r}: the credential plugin {command[0]!r}"
    _LOG.debug("running %s", name)
    try:
        process = subprocess.Popen(
            command,
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,  # so that it can be ended with all that it started
        )
    except (OSError, ValueError) as error:
        hint = one_line(plugin.get("installHint") or "install it, or correct exec.command")
        problem = error.strerror if isinstance(error, OSError) else error
        raise config.make_error(
            f"user {config.user_name!r}: the credential plugin {command[0]!r} cannot be started: "
            f"{problem}; {hint}"
        ) from None
    output, errors = _finish(process, name)
    if process.returncode != 0:
        raise TargetError(
            f"{name} ended with status {process.returncode}: {_said(errors)}; try "
            f"`kubectl --context {config.context} get nodes`"
        )
    return _status(output, version, name)


def expiry_of(status: Mapping[str, Any]) -> float | None:
    """Return when a credential expires, in seconds of ``time.time``; None where it does not say.

    Raises ValueError: it says something that is not a time.
    """
    timestamp = status.get("expirationTimestamp")
    if timestamp is None:
        return None
    if not isinstance(timestamp, str):
        raise ValueError("expirationTimestamp is not a string")
    return datetime.fromisoformat(timestamp).timestamp()


def _checked(config: ClientConfig, plugin: Any) -> tuple[list[str], dict[str, str], str]:
    """Return command, environment variables and version of the protocol."""
    user = f"user {config.user_name!r}: exec"
    if not isinstance(plugin, dict):
        raise config.make_error(f"{user} must be a mapping with apiVersion and command")
    command, version = plugin.get("command"), plugin.get("apiVersion")
    if not isinstance(command, str) or not command:
        raise config.make_error(f"{user} has no command")
    if not isinstance(version, str) or not version.startswith(_GROUP):
        raise config.make_error(f"{user}.apiVersion must be {_GROUP}v1 or {_GROUP}v1beta1")
    arguments, variables = plugin.get("args") or [], plugin.get("env") or []
    if not isinstance(arguments, list) or not all(isinstance(item, str) for item in arguments):
        raise config.make_error(f"{user}.args must be a list of strings; put numbers in quotes")
    if not isinstance(variables, list) or not all(
        isinstance(item, dict)
        and isinstance(item.get("name"), str)
        and isinstance(item.get("value"), str)
        for item in variables
    ):
        raise config.make_error(f"{user}.env must be a list of name and value, both strings")
    if plugin.get("interactiveMode") == "Always":
        raise config.make_error(
            f"{user}.interactiveMode is Always, but a run is not interactive; use a "
            "user whose credentials need no questions"
        )
    return [command, *arguments], {item["name"]: item["value"] for item in variables}, version


def _cluster_info(config: ClientConfig, plugin: Mapping[str, Any]) -> _Json:
    if not plugin.get("provideClusterInfo"):
        return {}
    extensions = config.cluster.get("extensions")
    cluster = {name: value for name, value in config.cluster.items() if name != "extensions"}
    for extension in extensions if isinstance(extensions, list) else ():
        if isinstance(extension, dict) and extension.get("name") == _EXTENSION:
            cluster["config"] = extension.get("extension")
    return {"cluster": cluster}


def _finish(process: subprocess.Popen[bytes], name: str) -> tuple[bytes, bytes]:
    """Return both outputs of the plugin when it has ended; it and all it started ends in time."""
    try:
        output, errors = process.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        raise TargetError(
            f"{name} did not end within {SECONDS:g} s, so it was stopped; if it waits for a login, "
            "log in with kubectl first"
        ) from None
    finally:
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    return output, errors


def _said(errors: bytes) -> str:
    """Return the last line of the plugin's standard error."""
    lines = [line for line in errors.decode(errors="replace").splitlines() if line.strip()]
    return one_line(redact_log(lines[-1])) if lines else "no reason given"


def _status(output: bytes, version: str, name: str) -> _Json:
    try:
        credential = json.loads(output)
    except (ValueError, RecursionError):
        credential = None
    if not isinstance(credential, dict) or credential.get("kind") != "ExecCredential":
        raise TargetError(f"{name} did not print an ExecCredential as JSON")
    if credential.get("apiVersion") != version:
        printed_version = one_line(credential.get("apiVersion"))
        raise TargetError(
            f"{name} printed apiVersion {printed_version}, but the kubeconfig has {version}"
        )
    status = credential.get("status")
    if not isinstance(status, dict):
        raise TargetError(f"{name} printed an ExecCredential without status")
    return status
