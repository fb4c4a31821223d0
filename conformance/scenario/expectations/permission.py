"""``permission``: what an account may do, without doing it."""

from __future__ import annotations

from pydantic import Field

from conformance.scenario.base import Strict
from conformance.scenario.changes import AccountName
from conformance.scenario.expectations.base import Cluster, Evaluation, Timed
from conformance.scenario.lint_context import LintContext


class Permission(Strict):
    """A request, in whose name, and whether it must be allowed."""

    account: AccountName = Field(alias="as", description="of spec.accounts")
    verb: str = Field(description="of a request: get, list, watch, create, update, patch, ...")
    kind: str
    name: str = Field(default="", description="of one object; default: all of the kind")
    fields: dict[str, str] = Field(
        default_factory=dict, description="a field selector, for all of a kind"
    )
    allowed: bool


class PermissionExpectation(Timed):
    """An account may do something, or not; asked of the authorizers (SelfSubjectAccessReview)."""

    permission: Permission

    def describe(self) -> str:
        asked = self.permission
        which = asked.name or ",".join(f"{k}={v}" for k, v in sorted(asked.fields.items()))
        may = "may" if asked.allowed else "may not"
        return f"{asked.account} {may} {asked.verb} {asked.kind} {which}".rstrip()

    def evaluate(self, cluster: Cluster) -> Evaluation:
        asked = self.permission
        allowed = cluster.may(asked.account, asked.verb, asked.kind, asked.name, asked.fields)
        observed = {"permission": cluster.make_canonical(self.describe()), "allowed": allowed}
        finding = f"it is {'allowed' if allowed else 'forbidden'}"
        return Evaluation(allowed is asked.allowed, finding, observed)

    def lint(self, lint: LintContext) -> None:
        lint.expects_account(("permission", "as"), self.permission.account)
