"""What accounts may do: RBAC's rules of a namespace, and who may write what of a status.

Who runs the suite may do everything. An account may do what its rules say, in the namespace of its
rules alone (``RulesAllow`` of plugin/pkg/auth/authorizer/rbac).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from kube.errors import ApiError
from kube.values import Obj, User, device_key, selected_node
from kubesim.apiserver.kubelets import KubeletRights
from kubesim.apiserver.server import StatusCheck
from kubesim.cluster import Cluster
from kubesim.resources import Kind
from kubesim.validation.errors import FieldError, forbidden

_GRANULAR: Final = "DRAResourceClaimGranularStatusAuthorization"


@dataclass(frozen=True, slots=True)
class Attributes:
    """What a request wants, as an authorizer sees it.

    ``fields``: the field selector of a request for many objects.
    """

    verb: str
    kind: Kind
    subresource: str
    namespace: str
    name: str = ""
    fields: Mapping[str, str] = field(default_factory=dict)

    @property
    def resource(self) -> str:
        return f"{self.kind.plural}/{self.subresource}" if self.subresource else self.kind.plural

    @property
    def role_namespace(self) -> str:
        """The namespace whose Roles count beside ClusterRoles; empty: none's."""
        return self.namespace if self.kind.namespaced else ""

    def covered_by(self, rule: Obj) -> bool:
        """Return whether a PolicyRule covers it (``RuleAllows`` of the authorizer rbac)."""

        def has(field: str, *values: str) -> bool:
            return not {"*", *values}.isdisjoint(rule.get(field) or ())

        subresources = [f"*/{self.subresource}"] if self.subresource else []
        names = rule.get("resourceNames")
        return (
            has("verbs", self.verb)
            and has("apiGroups", self.kind.group)
            and has("resources", self.resource, *subresources)
            and (not names or self.name in names)
        )

    def explain_refusal(self, user: User) -> str:
        """Return the text of ``ForbiddenStatusError`` (k8s.io/apiserver, responsewriters)."""
        name = f' "{self.name}"' if self.name else ""
        scope = (
            f'in the namespace "{self.role_namespace}"'
            if self.role_namespace
            else "at the cluster scope"
        )
        return (
            f'{self.kind.resource}{name} is forbidden: User "{user}" cannot {self.verb} resource'
            f' "{self.resource}" in API group "{self.kind.group}" {scope}'
        )


@dataclass(frozen=True, slots=True)
class PathAttributes:
    """A request for a path that is no resource, as an authorizer sees it."""

    verb: str
    path: str
    role_namespace: str = ""

    def covered_by(self, rule: Obj) -> bool:
        """Return whether a PolicyRule covers it (``NonResourceURLMatches``: ``*`` at the end)."""
        verbs, paths = (rule.get(field) or () for field in ("verbs", "nonResourceURLs"))
        return not {"*", self.verb}.isdisjoint(verbs) and any(
            path in ("*", self.path)
            or (path.endswith("*") and self.path.startswith(path.rstrip("*")))
            for path in paths
        )

    def explain_refusal(self, user: User) -> str:
        return f'forbidden: User "{user}" cannot {self.verb} path "{self.path}"'


RequestAttributes = Attributes | PathAttributes


class Authorizer:
    """The rights of accounts."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.kubelets = KubeletRights(cluster)
        self._rules: dict[tuple[str, str], tuple[Obj, ...]] = {}

    def grant(self, user: User, rules: Sequence[Obj]) -> None:
        """Give an account rules of a Role in its own namespace."""
        self._rules[user.namespace, user.name] = tuple(rules)

    def allows(self, user: User, *wanted: RequestAttributes) -> bool:
        """Return whether some rule allows one of them; no Role allows what is in all namespaces."""
        if user.is_kubelet:
            return any(self._explain_refusal_of_kubelet(user.node, item) is None for item in wanted)
        rules = self._rules.get((user.namespace, user.name), ())
        return any(
            attributes.role_namespace == user.namespace and attributes.covered_by(rule)
            for attributes in wanted
            for rule in rules
        )

    def check(self, user: User, wanted: RequestAttributes) -> None:
        """Refuse what an account may not do. Raises ApiError: 403."""
        if user.is_kubelet:
            reason = self._explain_refusal_of_kubelet(user.node, wanted)
            if reason is not None:
                text = ": ".join(filter(None, (wanted.explain_refusal(user), reason)))
                raise ApiError(403, "Forbidden", text)
            return
        if not self.allows(user, wanted):
            raise ApiError(403, "Forbidden", wanted.explain_refusal(user))

    def _explain_refusal_of_kubelet(self, node: str, wanted: RequestAttributes) -> str | None:
        if isinstance(wanted, PathAttributes):
            return ""
        return self.kubelets.explain_refusal(
            node,
            wanted.verb,
            wanted.resource,
            wanted.namespace,
            wanted.name,
            wanted.fields,
        )

    def of_status(self, user: User, wanted: Attributes) -> StatusCheck | None:
        """Return the check of what a change of a status needs beside its own right.

        Of a claim: ``AuthorizedForBinding`` and ``AuthorizedForDeviceStatus``
        (pkg/registry/resource/utils.go). Of a kubelet's pod: the admission plugin NodeRestriction.
        """
        if user.is_kubelet and wanted.resource == "pods/status":

            def check_pod(new: Obj, old: Obj) -> list[FieldError]:
                self.kubelets.check_pod_status(user.node, new, old)
                return []

            return check_pod
        on = self._cluster.gates.get(_GRANULAR, False)
        if not on or wanted.kind.name != "ResourceClaim" or wanted.subresource != "status":
            return None

        def check(new: Obj, old: Obj) -> list[FieldError]:
            return [
                *self._check_binding(user, wanted, new["status"], old["status"]),
                *self._check_device_reports(user, wanted, new["status"], old["status"]),
            ]

        return check

    def _check_binding(
        self, user: User, wanted: Attributes, new: Mapping[str, Any], old: Mapping[str, Any]
    ) -> list[FieldError]:
        if all(new.get(field) == old.get(field) for field in ("allocation", "reservedFor")):
            return []
        binding_attributes = Attributes(wanted.verb, wanted.kind, "binding", "")
        if self.allows(user, binding_attributes):
            return []
        text = (
            "changing status.allocation or status.reservedFor requires"
            f' resource="resourceclaims/binding", verb="{wanted.verb}" permission:'
            f" {binding_attributes.explain_refusal(user)}"
        )
        return [forbidden("status.allocation", text)]

    def _check_device_reports(
        self, user: User, wanted: Attributes, new: Mapping[str, Any], old: Mapping[str, Any]
    ) -> list[FieldError]:
        if "allocation" not in new:
            return []  # what was reported goes with the allocation
        verbs = [f"arbitrary-node:{wanted.verb}"]
        if user.node and user.node == selected_node(new["allocation"].get("nodeSelector")):
            verbs.insert(0, f"associated-node:{wanted.verb}")
        errors = []
        for driver in sorted(_changed_drivers(new, old)):
            driver_attributes = [
                Attributes(verb, wanted.kind, "driver", wanted.namespace, driver) for verb in verbs
            ]
            if not self.allows(user, *driver_attributes):
                text = (
                    'changing status.devices requires resource="resourceclaims/driver",'
                    f' verb="[{" ".join(verbs)}]" permission: '
                    f"{driver_attributes[0].explain_refusal(user)}"
                )
                errors.append(forbidden("status.devices", text))
        return errors


def _changed_drivers(new: Mapping[str, Any], old: Mapping[str, Any]) -> set[str]:
    """Return drivers of devices whose report is new, changed or gone (``getModifiedDrivers``)."""
    old_reports, new_reports = (
        {device_key(item): item for item in status.get("devices") or []} for status in (old, new)
    )
    keys = old_reports.keys() | new_reports.keys()
    return {str(key[0]) for key in keys if old_reports.get(key) != new_reports.get(key)}
