"""The driver's requests, authorized by its vendor's roles or by none; and the least role for them.

On every server anybody with a token may ask for what there is, so that is never looked at.
"""

from __future__ import annotations

from typing import Any, Final

import yaml

from conformance.drivercheck.rbac.policy import Policy
from kube.values import User
from kubesim.apiserver.authorization import Authorizer, PathAttributes, RequestAttributes
from kubesim.cluster import Cluster

_MOST: Final = 1000
"""Different requests that are remembered; a driver that asks for more has no end of them."""
_VERBS: Final = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")
_DISCOVERY: Final = tuple(
    f"/{name}/" for name in ("api", "apis", "healthz", "livez", "openapi", "readyz", "version")
)
"""And what is below: ClusterRole system:discovery of everybody (bootstrappolicy/policy.go)."""
_GRANULAR: Final = ("binding", "driver")
"""Of claims: asked for by the feature gate DRAResourceClaimGranularStatusAuthorization only."""


class Rights(Authorizer):
    """Looks at every request of the driver.

    Attributes:
        refused: what the policy does not allow, in the API server's words, in order.
    """

    def __init__(self, cluster: Cluster, policy: Policy | None) -> None:
        super().__init__(cluster)
        self._policy = policy
        self._used: dict[tuple[str, str, str, str], None] = {}
        self._refused: dict[str, None] = {}

    @property
    def refused(self) -> list[str]:
        return list(self._refused)

    def take_over(self, other: Rights) -> None:
        """Take over what was asked of another server with the same policy."""
        self._used.update(other._used)
        self._refused.update(other._refused)

    def allows(self, user: User, *wanted: RequestAttributes) -> bool:
        match wanted[0]:
            case PathAttributes("get", path) if f"{path}/".startswith(_DISCOVERY):
                return True
        policy = self._policy
        allowed = next(
            (attributes for attributes in wanted if policy is None or policy.allows(attributes)),
            None,
        )
        if allowed is None and len(self._refused) < _MOST:
            self._refused[wanted[0].explain_refusal(user)] = None
        if len(self._used) < _MOST:
            self._used[_key(allowed or wanted[0])] = None
        return allowed is not None

    def least_role(self, name: str) -> str:
        """Return a ClusterRole, as YAML, for what was asked; empty: nothing was."""
        used = tuple(self._used)
        if not used:
            return ""
        head = {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {"name": name},
        }
        granular = [key for key in used if key[1] in map("resourceclaims/{}".format, _GRANULAR)]
        lines = [yaml.safe_dump(head, sort_keys=False), "rules:\n"]
        if ever := _format_rules([key for key in used if key not in granular]):
            lines.append(ever)
        if granular:
            lines += ["# Kubernetes 1.36 and newer (kubernetes#138149)\n", _format_rules(granular)]
        return "".join(lines)


def _key(wanted: RequestAttributes) -> tuple[str, str, str, str]:
    """Return group, resource (or path), name and verb; a name only where roles should have it."""
    if isinstance(wanted, PathAttributes):
        return "", wanted.path, "", wanted.verb
    name = wanted.name if wanted.subresource == "driver" else ""
    return wanted.kind.group, wanted.resource, name, wanted.verb


def _format_rules(keys: list[tuple[str, str, str, str]]) -> str:
    """Return rules as YAML, one for all resources of a group with the same verbs."""
    verbs: dict[tuple[str, str, str], set[str]] = {}
    for group, resource, name, verb in keys:
        # Who gets a list by a watch asks for the list where a server streams none (KEP-3157).
        verbs.setdefault((group, resource, name), set()).update(
            ("list", verb) if verb == "watch" else (verb,)
        )
    same: dict[tuple[str, str, tuple[str, ...]], list[str]] = {}
    for (group, resource, name), verb_set in sorted(verbs.items()):
        same.setdefault((group, name, tuple(sorted(verb_set, key=_order))), []).append(resource)
    rules: list[dict[str, Any]] = []
    for (group, name, verb_names), resources in same.items():
        paths = [entry for entry in resources if entry.startswith("/")]
        if plain := [entry for entry in resources if entry not in paths]:
            names = {"resourceNames": [name]} if name else {}
            rules.append(
                {"apiGroups": [group], "resources": plain, **names, "verbs": [*verb_names]}
            )
        if paths:
            rules.append({"nonResourceURLs": paths, "verbs": [*verb_names]})
    return yaml.safe_dump(rules, sort_keys=False, default_flow_style=None, width=100)


def _order(verb: str) -> tuple[int, str]:
    return (_VERBS.index(verb) if verb in _VERBS else len(_VERBS), verb)
