"""One context of a kubeconfig, checked before it is used.

Several files are merged as kubectl does for ``$KUBECONFIG``: the first that has a name wins
(https://kubernetes.io/docs/concepts/configuration/organize-cluster-access-kubeconfig/).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit, urlunsplit

import yaml

from kube.base import strictyaml
from kube.base.text import one_line
from kube.errors import KubeconfigError

MAX_BYTES = 16 << 20

_Json = dict[str, Any]
_SECTIONS = ("contexts", "clusters", "users")
_FILES = {
    "clusters": ("cluster", ("certificate-authority",)),
    "users": ("user", ("client-certificate", "client-key", "tokenFile")),
}
_CLUSTER_TEXTS = (
    "server",
    "certificate-authority",
    "certificate-authority-data",
    "tls-server-name",
    "proxy-url",
)
_USER_TEXTS = (
    *("token", "tokenFile", "username", "password"),
    *("client-certificate", "client-certificate-data", "client-key", "client-key-data"),
)
_IMPERSONATION = ("as", "as-uid", "as-groups", "as-user-extra")


@dataclass(frozen=True)
class ClientConfig:
    """One context. Paths in it are absolute.

    Attributes:
        cluster: its ``cluster``; ``server`` without what stood before an ``@``.
        user: its ``user``; {} where the context names none, which is to be nobody in particular.
        login: user and password that stood in the server's address; () without.
        proxies: whether a proxy that the environment names may be used.
    """

    where: str
    context: str
    cluster: Mapping[str, Any]
    user_name: str
    user: Mapping[str, Any] = field(repr=False)
    login: tuple[str, str] | tuple[()] = field(default=(), repr=False)
    proxies: bool = True

    def __str__(self) -> str:
        return f"context {self.context!r} of {self.where}"

    def make_error(self, what: str) -> KubeconfigError:
        return KubeconfigError(f"{self.where}: {what}")


def default_kubeconfig(environment: Mapping[str, str]) -> Path:
    """Return where kubectl looks: ``$KUBECONFIG`` (files joined by ``:``) or ~/.kube/config."""
    named = environment.get("KUBECONFIG", "")
    return Path(named) if named.strip(os.pathsep) else Path.home() / ".kube" / "config"


def load_config(kubeconfig: Path, context: str) -> ClientConfig:
    """Return one context of the file.

    ``kubeconfig``: a file, or several joined by ``:``; of several, some may be missing.
    Raises KubeconfigError: a file cannot be read or is not a kubeconfig, or what it says about the
    context cannot be used; the message says what to do, and never shows a credential.
    """
    merged = _merged(kubeconfig)
    where = str(kubeconfig)
    available = ", ".join(sorted(merged["contexts"])) or "none"
    if not context:
        raise KubeconfigError(
            f"{where}: name the context to use with --context, the current one is never taken; "
            f"the file has: {available}"
        )
    if context not in merged["contexts"]:
        raise KubeconfigError(f"{where}: no context {context!r}; the file has: {available}")
    entry = _part(where, merged["contexts"][context], "context", f"context {context!r}")
    named = entry.get("cluster")
    if named not in merged["clusters"]:
        raise KubeconfigError(
            f"{where}: context {context!r} names cluster {named!r}, which is not defined"
        )
    cluster = _part(where, merged["clusters"][named], "cluster", f"cluster {named!r}")
    _check_texts(where, f"cluster {named!r}", cluster, _CLUSTER_TEXTS)
    server, login = _server(where, named, cluster)
    user_name = entry.get("user") or ""
    user: _Json = {}
    if user_name:
        if user_name not in merged["users"]:
            raise KubeconfigError(
                f"{where}: context {context!r} names user {user_name!r}, which is not defined"
            )
        user = _part(where, merged["users"][user_name], "user", f"user {user_name!r}")
        _check_texts(where, f"user {user_name!r}", user, _USER_TEXTS)
        if any(user.get(name) for name in _IMPERSONATION):
            raise KubeconfigError(
                f"{where}: user {user_name!r} impersonates another user (`as`), which is not "
                "supported; use a user that has the rights itself"
            )
    return ClientConfig(where, context, {**cluster, "server": server}, user_name, user, login)


def read_kubeconfig(path: Path) -> _Json:
    """Return one file as a mapping. Raises KubeconfigError."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise KubeconfigError(f"{path}: larger than {MAX_BYTES >> 20} MiB: not a kubeconfig")
        text = data.decode("utf-8")
    except FileNotFoundError:
        raise KubeconfigError(
            f"{path}: no such file; name the kubeconfig file with --kubeconfig"
        ) from None
    except OSError as error:
        raise KubeconfigError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise KubeconfigError(f"{path}: is not UTF-8 text (byte {error.start})") from None
    try:
        config = strictyaml.load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}" if mark is not None else ""
        # The problem, not the whole error: that one quotes the line, and a line may hold a token.
        problem = getattr(error, "problem", None) or "not readable"
        kind = "" if isinstance(error, strictyaml.BoundsError) else "not YAML: "
        raise KubeconfigError(f"{path}{line}: {kind}{problem}") from None
    if not isinstance(config, dict) or not all(
        isinstance(config.get(section) or [], list) for section in _SECTIONS
    ):
        raise KubeconfigError(
            f"{path}: not a kubeconfig: expected a mapping with clusters, contexts and users"
        )
    return config


def _merged(kubeconfig: Path) -> dict[str, dict[str, _Json]]:
    paths = [kubeconfig]
    if os.pathsep in str(kubeconfig) and not kubeconfig.exists():
        named = [Path(file) for file in str(kubeconfig).split(os.pathsep) if file]
        paths = [path for path in named if path.exists()] or named[:1]
    merged: dict[str, dict[str, _Json]] = {section: {} for section in _SECTIONS}
    for path in paths:
        config = read_kubeconfig(path)
        if len(paths) == 1 and not isinstance(config.get("contexts"), list):
            raise KubeconfigError(
                f"{path}: not a kubeconfig: expected a mapping with clusters, contexts and users"
            )
        for section in _SECTIONS:
            for name, entry in _named(path, section, config.get(section) or []).items():
                merged[section].setdefault(name, _located(section, entry, path))
    return merged


def _named(path: Path, section: str, entries: list[Any]) -> dict[str, _Json]:
    entries_by_name: dict[str, _Json] = {}
    for entry in entries:
        if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
            continue
        if entry["name"] in entries_by_name:
            raise KubeconfigError(f"{path}: {section} has {entry['name']!r} twice")
        entries_by_name[entry["name"]] = entry
    return entries_by_name


def _located(section: str, entry: _Json, path: Path) -> _Json:
    """Return the entry with absolute paths of its files, which are relative to the kubeconfig."""
    field, names = _FILES.get(section, ("", ()))
    inner = entry.get(field)
    if not isinstance(inner, dict):
        return entry
    base = path.absolute().parent
    moved: _Json = {
        name: str(base / inner[name])
        for name in names
        if isinstance(inner.get(name), str) and inner[name]
    }
    plugin = inner.get("exec")
    if isinstance(plugin, dict) and isinstance(plugin.get("command"), str):
        command = plugin["command"]
        if "/" in command:  # a bare name is looked for in $PATH, as kubectl does
            moved["exec"] = {**plugin, "command": str(base / command)}
    return {**entry, field: {**inner, **moved}}


def _part(where: str, entry: _Json, field: str, name: str) -> _Json:
    mapping = entry.get(field)
    if mapping is None:
        mapping = {}
    if not isinstance(mapping, dict):
        raise KubeconfigError(f"{where}: {name}: {field} must be a mapping")
    return mapping


def _check_texts(where: str, name: str, part: Mapping[str, Any], texts: tuple[str, ...]) -> None:
    for key in texts:
        if part.get(key) is not None and not isinstance(part[key], str):
            raise KubeconfigError(f"{where}: {name}: {key} must be a string; put it in quotes")


def _server(
    where: str, name: Any, cluster: Mapping[str, Any]
) -> tuple[str, tuple[str, str] | tuple[()]]:
    """Return the server's address without the user and password in it, and these."""
    server = cluster.get("server")
    if not server:
        raise KubeconfigError(f"{where}: cluster {name!r} has no server")
    try:
        address_parts = urlsplit(server)
        good = (
            address_parts.scheme in ("http", "https")
            and bool(address_parts.hostname)
            and address_parts.port != 0
        )
    except ValueError:
        good = False
    if not good or one_line(server, len(server)) != server:
        raise KubeconfigError(
            f"{where}: cluster {name!r}: server must be an https:// URL (https://HOST:PORT)"
        )
    login, _, address = address_parts.netloc.rpartition("@")
    user, _, password = login.partition(":")
    clean = urlunsplit((address_parts.scheme, address, address_parts.path, "", "")).rstrip("/")
    return clean, (unquote(user), unquote(password)) if login else ()
