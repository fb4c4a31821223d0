"""``rejected``: the API server refuses to create, change or delete an object, and says why."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from conformance.scenario.base import Manifest
from conformance.scenario.changes import Changes, Delete
from conformance.scenario.expectations.base import Cluster, Evaluation, Expectation, Refusal
from conformance.scenario.lint_context import LintContext

# metav1.StatusReason (staging/src/k8s.io/apimachinery/pkg/apis/meta/v1/types.go).
StatusReason = Literal[
    "AlreadyExists",
    "BadRequest",
    "Conflict",
    "Expired",
    "Forbidden",
    "Gone",
    "InternalError",
    "Invalid",
    "MethodNotAllowed",
    "NotAcceptable",
    "NotFound",
    "RequestEntityTooLarge",
    "ServerTimeout",
    "ServiceUnavailable",
    "Timeout",
    "TooManyRequests",
    "Unauthorized",
    "UnsupportedMediaType",
]


class Rejected(Changes):
    """What must be refused, an object or a change; and how."""

    object: Manifest | None = None
    delete: Delete | None = Field(default=None, description="delete one object")
    code: int | None = Field(default=None, description="HTTP status, for example 422")
    reason: StatusReason | None = Field(default=None, description="reason of the Status")
    field: str | None = Field(
        default=None, description="path of a field in the Status's details.causes, or above one"
    )
    message: str | None = Field(
        default=None, description="a part of the Status's message, or of that of a cause"
    )

    @model_validator(mode="after")
    def _one(self) -> Rejected:
        verbs = {"patch", "update", "server_side_apply", "delete", "evict", "bind"}
        if len(({"object"} | verbs) & self.model_fields_set) != 1:
            raise ValueError(
                "give what must be refused: one of object, patch, update, serverSideApply, delete,"
                " evict, bind"
            )
        return self

    @property
    def what(self) -> str:
        if self.object is not None:
            return str(self.object.get("kind"))
        return (
            f"delete {self.delete.describe()}"
            if self.delete is not None
            else self.describe_change()
        )


class RejectedExpectation(Expectation):
    """The API server refuses to create, change or delete an object, and says why."""

    rejected: Rejected

    def describe(self) -> str:
        expected = self.rejected
        phrases = [
            expected.code is not None and f"with code {expected.code}",
            expected.reason is not None and f"for reason {expected.reason}",
            expected.field is not None and f"naming {expected.field}",
            expected.message is not None and f"saying {expected.message!r}",
        ]
        says = ", ".join(phrase for phrase in phrases if phrase)
        whose = f" as {expected.account}" if expected.account else ""
        return f"{expected.what}{whose} rejected {says}".strip()

    def evaluate(self, cluster: Cluster) -> Evaluation:
        expected = self.rejected
        observed = {"rejected": cluster.make_canonical(expected.what)}
        try:
            if expected.object is not None:
                refusal = cluster.try_create(expected.object, expected.account)
            else:
                deleted = (expected.delete,) if expected.delete is not None else ()
                refusal = cluster.try_change(expected, deleted)
        except LookupError as error:
            return Evaluation(False, f"not there: {error}", observed)
        if refusal is None:
            name = (expected.object or {}).get("metadata", {}).get("name")
            return Evaluation(False, "it was accepted" + (f" as {name}" if name else ""), observed)
        mismatches = self._find_mismatches(refusal)
        if mismatches:
            return Evaluation(False, f"{', '.join(mismatches)}: {refusal.message}", observed)
        return Evaluation(
            True,
            refusal.message,
            observed
            | {
                "code": refusal.code,
                "reason": refusal.reason,
                "fields": sorted({self._as_expected_field(field) for field, _ in refusal.causes}),
            },
        )

    def _find_mismatches(self, refusal: Refusal) -> list[str]:
        expected = self.rejected
        mismatches = []
        if expected.code is not None and refusal.code != expected.code:
            mismatches.append(f"code {refusal.code}")
        if expected.reason is not None and refusal.reason != expected.reason:
            mismatches.append(f"reason {refusal.reason}")
        causes = [
            text
            for field, text in refusal.causes
            if expected.field in {None, self._as_expected_field(field)}
        ]
        if expected.field is not None and not causes:
            fields = ", ".join(field for field, _ in refusal.causes) or "no field"
            mismatches.append(f"it names {fields}")
        texts = [refusal.message, *causes]
        if expected.message is not None and not any(expected.message in text for text in texts):
            mismatches.append("another message")
        return mismatches

    def _as_expected_field(self, field: str) -> str:
        """Return the expected field where one below it is named: minors differ in that.

        In 1.34 an entry with a name that is there already is ``requests[1].name``, since 1.35
        ``requests[1]`` (validateSet in pkg/apis/resource/validation/validation.go).
        """
        expected_field = self.rejected.field
        below = expected_field is not None and field.startswith(
            (f"{expected_field}.", f"{expected_field}[")
        )
        return expected_field if expected_field is not None and below else field

    def lint(self, lint: LintContext) -> None:
        expected = self.rejected
        expected.lint_changes(lint, ("rejected",))
        if expected.delete is not None:
            lint.expects_selection(("rejected", "delete"), expected.delete)
        if expected.object is None:
            return
        if expected.code == 404 or expected.reason == "NotFound":
            return  # Nobody looks into an object whose kind or version is not served.
        anyhow = expected.code in {None, 400} and expected.message is None
        message = None if anyhow else expected.message or ""
        lint.check_refused_object(("rejected", "object"), expected.object, message)
