"""The rights that a vendor's file gives to a driver's service account.

The file may be a whole rendered chart: what is no role or binding is passed over. It is not
trusted: it is read like a scenario (`conformance.scenario.documents.yamlfile`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from math import prod
from pathlib import Path
from typing import Any, Final

from conformance.errors import UsageError
from conformance.scenario.documents.yamlfile import (
    Document,
    PathTuple,
    Problem,
    YamlError,
    as_mapping,
    as_text,
    list_mappings,
    read_documents,
)
from conformance.targets.reference.apiserver.authorization import Attributes, Wanted
from conformance.targets.seam.values import Obj, User
from conformance.text import one_line

_GROUP: Final = "rbac.authorization.k8s.io"
_FIELDS: Final = ("verbs", "apiGroups", "resources", "resourceNames", "nonResourceURLs")
_RIGHT: Final = ("apiGroups", "resources", "verbs")
_MOST: Final = 1000
"""Rules of a role, and what one rule may list of each: every request is compared with them."""
_EVERYTHING: Final = [
    {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]},
    {"verbs": ["*"], "nonResourceURLs": ["*"]},
]
"""The rules of the cluster's own role cluster-admin (bootstrappolicy/policy.go)."""


@dataclass
class Granted:
    """A rule that the account has. ``place``: the namespace that it is for; empty: everywhere."""

    role: str
    place: str
    rule: Obj
    used: set[tuple[str, ...]] = field(default_factory=set)

    def allows(self, wanted: Wanted) -> bool:
        """Whether it does; which of its group, resource and verb that takes is remembered."""
        if self.place not in ("", wanted.place) or not wanted.covered_by(self.rule):
            return False
        if isinstance(wanted, Attributes):
            meant = (
                {wanted.kind.group},
                {wanted.resource, f"*/{wanted.subresource}"},
                {wanted.verb},
            )
            named = (
                [one for one in self.rule[key] if one in {"*", *words}]
                for key, words in zip(_RIGHT, meant, strict=True)
            )
            self.used.update(product(*named))
        return True

    def unused(self) -> Iterator[tuple[str, ...]]:
        """Each group, resource and verb that no request needed.

        Who watches needs to list, too, on a server that streams no list (KEP-3157).
        """
        needed = {*self.used, *((*one, "list") for *one, verb in self.used if verb == "watch")}
        every = product(*(self.rule.get(key) or () for key in _RIGHT))
        return (one for one in every if one not in needed)


@dataclass(frozen=True)
class Policy:
    """An account and its rules."""

    file: Path
    user: User
    granted: tuple[Granted, ...]

    def allows(self, wanted: Wanted) -> bool:
        return any(one.allows(wanted) for one in self.granted)

    def unused(self) -> tuple[str, ...]:
        """What no request needed, a line for each role and resource."""
        found: dict[str, list[str]] = {}
        for one in self.granted:
            for group, resource, verb in one.unused():
                named = f"{one.role}: {resource}{f'.{group}' if group else ''}"
                found.setdefault(named, []).append(verb)
        return tuple(
            one_line(f"{named}: {', '.join(dict.fromkeys(verbs))}", 200)
            for named, verbs in found.items()
        )


def read_policy(file: Path, account: str, node: str) -> Policy:
    """The rights of a driver's service account.

    Args:
        file: YAML documents with ClusterRoles, Roles and their bindings. Without any binding, all
            its roles are the account's.
        account: ``[NAMESPACE/]NAME`` of the service account; empty: the one of the DaemonSet in the
            file, or the only one that is bound.
        node: on which the driver runs, as the token of its pod says.

    Raises UsageError: the file cannot be used, or does not say whose rights are meant.
    """
    return _Reader(file).policy(account, node)


class _Reader:
    def __init__(self, file: Path) -> None:
        self._file = file
        self._roles: dict[tuple[str, str, str], tuple[Obj, ...]] = {}
        self._bindings: list[tuple[Document, PathTuple, Obj]] = []
        self._daemons: set[tuple[str, str]] = set()
        for document in read_documents(file):
            root = as_mapping(document.data)
            self._read(document, (), root)
            for index, item in list_mappings(root.get("items")):  # a List, as of kubectl get
                self._read(document, ("items", index), item)
        if not self._roles:
            raise UsageError(f"--rbac {file}: no ClusterRole or Role with rules is in it")

    def _read(self, document: Document, path: PathTuple, obj: Mapping[str, Any]) -> None:
        kind, meta = as_text(obj.get("kind")), as_mapping(obj.get("metadata"))
        name, place = as_text(meta.get("name")), as_text(meta.get("namespace")) or "default"
        if kind == "DaemonSet":
            spec = as_mapping(as_mapping(as_mapping(obj.get("spec")).get("template")).get("spec"))
            self._daemons.add((place, as_text(spec.get("serviceAccountName")) or "default"))
        if not as_text(obj.get("apiVersion")).startswith(f"{_GROUP}/"):
            return
        if kind in ("ClusterRole", "Role"):
            where = "" if kind == "ClusterRole" else place
            self._roles[kind, where, name] = _rules(document, path, obj)
        elif kind in ("ClusterRoleBinding", "RoleBinding"):
            self._bindings.append((document, path, dict(obj)))

    def policy(self, account: str, node: str) -> Policy:
        if not self._bindings:
            user = User(*(_parts(account) or ("default", "driver")), node)
            every = tuple(
                Granted(f"{kind} {name}", place, rule)
                for (kind, place, name), rules in self._roles.items()
                for rule in rules
            )
            return Policy(self._file, user, every)
        user = self._user(account, node)
        return Policy(self._file, user, tuple(self._granted(user)))

    def _granted(self, user: User) -> Iterator[Granted]:
        for document, path, binding in self._bindings:
            subjects = [one for _, one in list_mappings(binding.get("subjects"))]
            place = ""
            if binding["kind"] == "RoleBinding":
                place = as_text(as_mapping(binding.get("metadata")).get("namespace")) or "default"
            if not any(_is_meant(one, user, place) for one in subjects):
                continue
            role = as_mapping(binding.get("roleRef"))
            kind, name = as_text(role.get("kind")), as_text(role.get("name"))
            found = self._roles.get((kind, place if kind == "Role" else "", name))
            if found is None and (kind, name) == ("ClusterRole", "cluster-admin"):
                found = tuple(_EVERYTHING)
            if found is None:
                message = (
                    f"the {kind} {name!r:.100} is not in the file; add it, as "
                    f"kubectl get {kind.lower() or 'clusterrole'} prints it with -o yaml"
                )
                raise YamlError(document.tell(Problem((*path, "roleRef"), message)))
            yield from (Granted(f"{kind} {name}", place, rule) for rule in found)

    def _user(self, account: str, node: str) -> User:
        bound = {
            (as_text(one.get("namespace")) or "default", as_text(one.get("name")))
            for _, _, binding in self._bindings
            for _, one in list_mappings(binding.get("subjects"))
            if one.get("kind") == "ServiceAccount"
        }
        found = bound
        if wanted := _parts(account):
            found = {one for one in bound if one[1] == wanted[1] and wanted[0] in ("", one[0])}
        elif len(bound) > 1:
            found = bound & self._daemons
        if len(found) != 1:
            names = ", ".join(f"{place}/{name}"[:100] for place, name in sorted(bound)[:10])
            raise UsageError(
                f"--rbac {self._file}: give the driver's service account with --service-account"
                f" (found {len(found)} that could be it); bound are: {names or 'none'}"
            )
        [(place, name)] = found
        return User(place, name, node)


def _parts(account: str) -> tuple[str, str] | None:
    place, _, name = account.rpartition("/")
    return (place, name) if account else None


def _is_meant(subject: Mapping[str, Any], user: User, place: str) -> bool:
    """Whether a subject of a binding is an account (``AppliesTo``, registry/rbac/validation)."""
    name = subject.get("name")
    match subject.get("kind"):
        case "ServiceAccount":
            namespace = as_text(subject.get("namespace")) or place or "default"
            return (namespace, name) == (user.namespace, user.name)
        case "User":
            return name in ("*", str(user))
        case "Group":
            everybody = "system:serviceaccounts"
            return name in (everybody, f"{everybody}:{user.namespace}", "system:authenticated")
    return False


def _rules(document: Document, path: PathTuple, role: Mapping[str, Any]) -> tuple[Obj, ...]:
    """The rules of a role, each field a list of texts. Raises YamlError."""

    def wrong(where: PathTuple, message: str) -> YamlError:
        return YamlError(document.tell(Problem((*path, *where), message)))

    rules = role.get("rules") or []
    if role.get("aggregationRule") and not rules:
        raise wrong(
            ("aggregationRule",), "write the rules that the cluster collected, as kubectl prints it"
        )
    if not isinstance(rules, list) or len(rules) > _MOST:
        raise wrong(("rules",), f"must be a list of at most {_MOST} rules")
    for index, rule in enumerate(rules):
        if not isinstance(rule, dict) or not rule.get("verbs"):
            raise wrong(("rules", index), "must be a rule with verbs")
        if prod(len(values) for key in _RIGHT if isinstance(values := rule.get(key), list)) > _MOST:
            raise wrong(("rules", index), f"lists more than {_MOST} rights; split it")
        for name in _FIELDS:
            values = rule.get(name) or []
            if not isinstance(values, list) or not all(isinstance(one, str) for one in values):
                raise wrong(("rules", index, name), "must be a list of texts")
    return tuple(rules)
