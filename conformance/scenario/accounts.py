"""Service accounts in whose name a scenario sends requests, and what RBAC lets them do."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from conformance.scenario.base import Strict

AccountName = Literal["driver", "other-driver", "user"]
"""Fixed, so that who runs the suite need not be let act as any service account there is."""

IMPERSONATION = "impersonation"
"""The ability that a target needs for accounts."""


def service_account(name: str) -> str:
    """The name in the cluster of an account that scenarios call ``name``."""
    return f"dra-conformance-{name}"


class PolicyRule(Strict):
    """A PolicyRule (``rbac.authorization.k8s.io/v1``) of a Role in the scenario's namespace."""

    api_groups: tuple[str, ...] = Field(alias="apiGroups", min_length=1, description='"" is core')
    resources: tuple[str, ...] = Field(
        min_length=1, description="plural, with a subresource like resourceclaims/status"
    )
    resource_names: tuple[str, ...] = Field(
        default=(), alias="resourceNames", description="of these objects only"
    )
    verbs: tuple[str, ...] = Field(
        min_length=1, description="like get, patch, associated-node:patch"
    )

    @property
    def body(self) -> dict[str, Any]:
        return self.model_dump(mode="json", by_alias=True, exclude_defaults=True)


class Account(Strict):
    """A service account of the scenario's namespace, which may do nothing but what is said here."""

    rules: tuple[PolicyRule, ...] = Field(
        default=(), description="what it may do in the scenario's namespace; default: nothing"
    )
    node: str | None = Field(
        default=None, description="name of the node on which it acts, like a driver's pod"
    )
