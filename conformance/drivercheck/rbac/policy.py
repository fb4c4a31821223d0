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
from kube.base.errors import UsageError
from kube.base.text import one_line
from kube.values import Obj, User
from kubesim.apiserver.authorization import Attributes, RequestAttributes

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
    """A rule that the account has. ``namespace``: where it is for; empty: everywhere."""

    role: str
    namespace: str
    rule: Obj
    used: set[tuple[str, ...]] = field(default_factory=set)

    def allows(self, wanted: RequestAttributes) -> bool:
        """Return whether the rule allows a request; remember what of the rule that takes."""
        if self.namespace not in ("", wanted.role_namespace) or not wanted.covered_by(self.rule):
            return False
        if isinstance(wanted, Attributes):
            meant = (
                {wanted.kind.group},
                {wanted.resource, f"*/{wanted.subresource}"},
                {wanted.verb},
            )
            named = (
                [name for name in self.rule[key] if name in {"*", *words}]
                for key, words in zip(_RIGHT, meant, strict=True)
            )
            self.used.update(product(*named))
        return True

    def unused(self) -> Iterator[tuple[str, ...]]:
        """Return each group, resource and verb that no request needed.

        Who watches needs to list, too, on a server that streams no list (KEP-3157).
        """
        needed = {*self.used, *((*right, "list") for *right, verb in self.used if verb == "watch")}
        every = product(*(self.rule.get(key) or () for key in _RIGHT))
        return (right for right in every if right not in needed)


@dataclass(frozen=True)
class Policy:
    """An account and its rules."""

    file: Path
    user: User
    granted: tuple[Granted, ...]

    def allows(self, wanted: RequestAttributes) -> bool:
        return any(rule.allows(wanted) for rule in self.granted)

    def unused(self) -> tuple[str, ...]:
        """Return what no request needed, a line for each role and resource."""
        verbs_of_resource: dict[str, list[str]] = {}
        for rule in self.granted:
            for group, resource, verb in rule.unused():
                resource_name = f"{rule.role}: {resource}{f'.{group}' if group else ''}"
                verbs_of_resource.setdefault(resource_name, []).append(verb)
        return tuple(
            one_line(f"{resource_name}: {', '.join(dict.fromkeys(verbs))}", 200)
            for resource_name, verbs in verbs_of_resource.items()
        )


def read_policy(file: Path, account: str, node: str) -> Policy:
    """Read the rights of a driver's service account.

    Args:
        file: YAML documents with ClusterRoles, Roles and their bindings. Without any binding, all
            its roles are the account's.
        account: ``[NAMESPACE/]NAME`` of the service account; empty: the one of the DaemonSet in the
            file, or the only one that is bound.
        node: on which the driver runs, as the token of its pod says.

    Raises UsageError: the file cannot be used, or does not say whose rights are meant.
    """
    return _Reader(file).build_policy(account, node)


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
        name, namespace = as_text(meta.get("name")), as_text(meta.get("namespace")) or "default"
        if kind == "DaemonSet":
            spec = as_mapping(as_mapping(as_mapping(obj.get("spec")).get("template")).get("spec"))
            self._daemons.add((namespace, as_text(spec.get("serviceAccountName")) or "default"))
        if not as_text(obj.get("apiVersion")).startswith(f"{_GROUP}/"):
            return
        if kind in ("ClusterRole", "Role"):
            where = "" if kind == "ClusterRole" else namespace
            self._roles[kind, where, name] = _read_rules(document, path, obj)
        elif kind in ("ClusterRoleBinding", "RoleBinding"):
            self._bindings.append((document, path, dict(obj)))

    def build_policy(self, account: str, node: str) -> Policy:
        if not self._bindings:
            user = User(*(_split_account(account) or ("default", "driver")), node)
            granted = tuple(
                Granted(f"{kind} {name}", namespace, rule)
                for (kind, namespace, name), rules in self._roles.items()
                for rule in rules
            )
            return Policy(self._file, user, granted)
        user = self._find_user(account, node)
        return Policy(self._file, user, tuple(self._granted_rules(user)))

    def _granted_rules(self, user: User) -> Iterator[Granted]:
        for document, path, binding in self._bindings:
            subjects = [subject for _, subject in list_mappings(binding.get("subjects"))]
            namespace = ""
            if binding["kind"] == "RoleBinding":
                meta = as_mapping(binding.get("metadata"))
                namespace = as_text(meta.get("namespace")) or "default"
            if not any(_is_meant(subject, user, namespace) for subject in subjects):
                continue
            role = as_mapping(binding.get("roleRef"))
            kind, name = as_text(role.get("kind")), as_text(role.get("name"))
            rules = self._roles.get((kind, namespace if kind == "Role" else "", name))
            if rules is None and (kind, name) == ("ClusterRole", "cluster-admin"):
                rules = tuple(_EVERYTHING)
            if rules is None:
                message = (
                    f"the {kind} {name!r:.100} is not in the file; add it, as "
                    f"kubectl get {kind.lower() or 'clusterrole'} prints it with -o yaml"
                )
                raise YamlError(document.tell(Problem((*path, "roleRef"), message)))
            yield from (Granted(f"{kind} {name}", namespace, rule) for rule in rules)

    def _find_user(self, account: str, node: str) -> User:
        bound = {
            (as_text(subject.get("namespace")) or "default", as_text(subject.get("name")))
            for _, _, binding in self._bindings
            for _, subject in list_mappings(binding.get("subjects"))
            if subject.get("kind") == "ServiceAccount"
        }
        candidates = bound
        if given_account := _split_account(account):
            namespace, name = given_account
            candidates = {
                bound_account
                for bound_account in bound
                if bound_account[1] == name and namespace in ("", bound_account[0])
            }
        elif len(bound) > 1:
            candidates = bound & self._daemons
        if len(candidates) != 1:
            names = ", ".join(f"{namespace}/{name}"[:100] for namespace, name in sorted(bound)[:10])
            raise UsageError(
                f"--rbac {self._file}: give the driver's service account with --service-account"
                f" (found {len(candidates)} that could be it); bound are: {names or 'none'}"
            )
        [(namespace, name)] = candidates
        return User(namespace, name, node)


def _split_account(account: str) -> tuple[str, str] | None:
    namespace, _, name = account.rpartition("/")
    return (namespace, name) if account else None


def _is_meant(subject: Mapping[str, Any], user: User, binding_namespace: str) -> bool:
    """Return whether a subject is an account (``AppliesTo``, registry/rbac/validation)."""
    name = subject.get("name")
    match subject.get("kind"):
        case "ServiceAccount":
            namespace = as_text(subject.get("namespace")) or binding_namespace or "default"
            return (namespace, name) == (user.namespace, user.name)
        case "User":
            return name in ("*", str(user))
        case "Group":
            everybody = "system:serviceaccounts"
            return name in (everybody, f"{everybody}:{user.namespace}", "system:authenticated")
    return False


def _read_rules(document: Document, path: PathTuple, role: Mapping[str, Any]) -> tuple[Obj, ...]:
    """Return the rules of a role, each field a list of texts. Raises YamlError."""

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
            if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
                raise wrong(("rules", index, name), "must be a list of texts")
    return tuple(rules)
