"""``rejected``: the API server refuses to create, change or delete an object, and says why."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from conformance.scenario.base import Manifest
from conformance.scenario.changes import Changes, Delete
from conformance.scenario.expectations.base import Cluster, Expectation, Known, Refusal, Seen

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
        return f"delete {self.delete.describe()}" if self.delete is not None else self.tell()


class RejectedExpectation(Expectation):
    """The API server refuses to create, change or delete an object, and says why."""

    rejected: Rejected

    def describe(self) -> str:
        wanted = self.rejected
        parts = [
            wanted.code is not None and f"with code {wanted.code}",
            wanted.reason is not None and f"for reason {wanted.reason}",
            wanted.field is not None and f"naming {wanted.field}",
            wanted.message is not None and f"saying {wanted.message!r}",
        ]
        says = ", ".join(part for part in parts if part)
        whose = f" as {wanted.account}" if wanted.account else ""
        return f"{wanted.what}{whose} rejected {says}".strip()

    def evaluate(self, cluster: Cluster) -> Seen:
        wanted = self.rejected
        observed = {"rejected": cluster.canonical(wanted.what)}
        try:
            if wanted.object is not None:
                refusal = cluster.refusal(wanted.object, wanted.account)
            else:
                deleted = (wanted.delete,) if wanted.delete is not None else ()
                refusal = cluster.refusal_of(wanted, deleted)
        except LookupError as error:
            return Seen(False, f"not there: {error}", observed)
        if refusal is None:
            name = (wanted.object or {}).get("metadata", {}).get("name")
            return Seen(False, "it was accepted" + (f" as {name}" if name else ""), observed)
        wrong = self._wrong(refusal)
        if wrong:
            return Seen(False, f"{', '.join(wrong)}: {refusal.message}", observed)
        return Seen(
            True,
            refusal.message,
            observed
            | {
                "code": refusal.code,
                "reason": refusal.reason,
                "fields": sorted({self._asked(field) for field, _ in refusal.causes}),
            },
        )

    def _wrong(self, refusal: Refusal) -> list[str]:
        wanted = self.rejected
        wrong = []
        if wanted.code is not None and refusal.code != wanted.code:
            wrong.append(f"code {refusal.code}")
        if wanted.reason is not None and refusal.reason != wanted.reason:
            wrong.append(f"reason {refusal.reason}")
        causes = [
            text for field, text in refusal.causes if wanted.field in {None, self._asked(field)}
        ]
        if wanted.field is not None and not causes:
            fields = ", ".join(field for field, _ in refusal.causes) or "no field"
            wrong.append(f"it names {fields}")
        texts = [refusal.message, *causes]
        if wanted.message is not None and not any(wanted.message in text for text in texts):
            wrong.append("another message")
        return wrong

    def _asked(self, field: str) -> str:
        """The field that is asked for, where one below it is named: minors differ in that.

        In 1.34 an entry with a name that is there already is ``requests[1].name``, since 1.35
        ``requests[1]`` (validateSet in pkg/apis/resource/validation/validation.go).
        """
        wanted = self.rejected.field
        below = wanted is not None and field.startswith((f"{wanted}.", f"{wanted}["))
        return wanted if wanted is not None and below else field

    def lint(self, known: Known) -> None:
        wanted = self.rejected
        known.changed(("rejected",), wanted)
        if wanted.delete is not None:
            known.selected(("rejected", "delete"), wanted.delete)
        if wanted.object is None:
            return
        if wanted.code == 404 or wanted.reason == "NotFound":
            return  # Nobody looks into an object whose kind or version is not served.
        anyhow = wanted.code in {None, 400} and wanted.message is None
        message = None if anyhow else wanted.message or ""
        known.refused(("rejected", "object"), wanted.object, message)
