"""Requests in the name of service accounts: impersonation, and the rights that accounts get.

What is needed for that is little: to make Roles and RoleBindings, which grant nothing that who
makes them may not do, and to impersonate service accounts of the few names that scenarios use. They
need not exist: RBAC and impersonation know names alone, so no token is ever made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, get_args
from urllib.parse import quote

from conformance.scenario.changes import KUBELET, AccountName, service_account
from kube.api import Api
from kube.connection import Connection
from kube.errors import ApiError
from kube.values import NODES_GROUP, Obj, User

_LEASES = "coordination.k8s.io"
_REVIEWS = "authorization.k8s.io/v1"
_RBAC = "rbac.authorization.k8s.io"
_NODE = "authentication.kubernetes.io/node-name"
"""Extra field of users with a token that is bound to a pod (``serviceaccount.NodeNameKey``)."""


def headers_of(user: User | None) -> dict[str, str]:
    """Return headers that have a request made in an account's name (user impersonation)."""
    if user is None:
        return {}
    if user.is_kubelet:
        return {"Impersonate-User": str(user), "Impersonate-Group": ",".join(user.groups)}
    node = {f"Impersonate-Extra-{quote(_NODE, safe='')}": user.node} if user.node else {}
    return {"Impersonate-User": str(user), **node}


def give_rights(
    connection: Connection, user: User, rules: Sequence[Obj], labels: Mapping[str, str], agent: str
) -> None:
    """Make a Role and its RoleBinding, which go with the namespace.

    Raises ApiError: refused; TargetError: no answer.
    """
    meta = {"name": user.name, "labels": dict(labels)}
    account = {"kind": "ServiceAccount", "name": user.name, "namespace": user.namespace}
    role = {"apiGroup": _RBAC, "kind": "Role", "name": user.name}
    for kind, body in (
        ("Role", {"rules": list(rules)}),
        ("RoleBinding", {"roleRef": role, "subjects": [account]}),
    ):
        obj = {"apiVersion": f"{_RBAC}/v1", "kind": kind, "metadata": meta, **body}
        path = f"/apis/{_RBAC}/v1/namespaces/{user.namespace}/{kind.lower()}s"
        connection.request("POST", path, None, obj, agent=agent)


def may(
    connection: Connection, user: User | None, attributes: Mapping[str, Any], agent: str = ""
) -> bool:
    """Return whether a user may do something, by a SelfSubjectAccessReview in their name.

    Args:
        user: None is the suite's own.
        attributes: ``ResourceAttributes`` of authorization.k8s.io/v1.

    Raises ApiError: refused; TargetError: no answer.
    """
    review = {
        "apiVersion": _REVIEWS,
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": dict(attributes)},
    }
    path = f"/apis/{_REVIEWS}/selfsubjectaccessreviews"
    answer = connection.request("POST", path, None, review, agent=agent, headers=headers_of(user))
    return bool(answer.get("status", {}).get("allowed"))


def is_allowed(connection: Connection, user: User | None, rule: Obj, agent: str = "") -> bool:
    """Return whether an account, or the suite's own user, may do the first that a rule names."""
    resource, _, subresource = rule["resources"][0].partition("/")
    attributes: dict[str, Any] = {
        "namespace": user.namespace if user is not None else "",
        "verb": rule["verbs"][0],
        "group": rule["apiGroups"][0],
        "resource": resource,
        "subresource": subresource,
        "name": (rule.get("resourceNames") or [""])[0],
    }
    return may(connection, user, attributes, agent)


def why_no_accounts(api: Api) -> str:
    """Explain why requests cannot be made in the name of accounts; empty if they can."""
    if f"{_RBAC}/v1" not in api.discovery.list_served():
        return f"{_RBAC}/v1 is not served"
    needed = [_rule(_RBAC, kind, "create") for kind in ("roles", "rolebindings")]
    needed += [
        _rule("", "serviceaccounts", "impersonate", service_account(name))
        for name in get_args(AccountName)
        if name != KUBELET
    ]
    needed.append(_rule("authentication.k8s.io", f"userextras/{_NODE}", "impersonate"))
    return _explain_refusal(api, needed)


def why_no_kubelet_account(api: Api, *, only_read: bool = False) -> str:
    """Explain why requests in a kubelet's name would show nothing of its rights; empty if they do.

    The authorizer Node and the admission plugin NodeRestriction are options of kube-apiserver.

    Args:
        only_read: do not look for NodeRestriction, which takes a dry run.
    """
    if _REVIEWS not in api.discovery.list_served():
        return f"{_REVIEWS} is not served"
    needed = [_rule("", "users", "impersonate"), _rule("", "groups", "impersonate", NODES_GROUP)]
    if refused := _explain_refusal(api, needed, "ci/rbac lets nobody speak for nodes"):
        return refused
    kubelet = User.kubelet_of("dra-conformance-nobody")
    own_node = {"verb": "get", "resource": "nodes", "name": kubelet.node}
    if not may(api.connection, kubelet, own_node):
        return "the API server has not the authorizer Node: a kubelet may not read its node"
    if may(api.connection, kubelet, {"verb": "list", "resource": "secrets"}):
        return "another authorizer than Node lets kubelets do everything"
    if only_read or not _accepts_lease_of_another(api, kubelet):
        return ""
    return "the API server has not the admission plugin NodeRestriction"


def _accepts_lease_of_another(api: Api, kubelet: User) -> bool:
    """Return whether a kubelet may make the Lease of another node; nothing is stored."""
    name = f"{kubelet.node}-else"
    lease = {"apiVersion": f"{_LEASES}/v1", "kind": "Lease", "metadata": {"name": name}}
    path = f"/apis/{_LEASES}/v1/namespaces/kube-node-lease/leases"
    try:
        api.connection.request("POST", path, {"dryRun": "All"}, lease, headers=headers_of(kubelet))
    except ApiError as error:
        return error.code != 403
    return True


def why_no_hollow_nodes(api: Api) -> str:
    """Explain why no node without a kubelet can be made; empty if one can, or none can tell."""
    if _REVIEWS not in api.discovery.list_served():
        return ""
    needed = [_rule("", "nodes", verb) for verb in ("create", "patch", "delete")]
    return _explain_refusal(api, [*needed, _rule("", "nodes/status", "patch")])


def _explain_refusal(
    api: Api, needed: Sequence[Obj], remedy: str = "see ci/rbac/suite.yaml"
) -> str:
    """Say what the user who runs the suite may not do of this; empty if all is allowed."""
    for rule in needed:
        if not is_allowed(api.connection, None, rule):
            action = " ".join(
                [rule["verbs"][0], rule["resources"][0], *rule.get("resourceNames", ())]
            )
            return f"your user is not allowed to {action} ({remedy})"
    return ""


def _rule(group: str, resource: str, verb: str, name: str = "") -> dict[str, list[str]]:
    rule = {"apiGroups": [group], "resources": [resource], "verbs": [verb]}
    return {**rule, "resourceNames": [name]} if name else rule
