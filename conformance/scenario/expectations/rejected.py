"""``rejected``: the API server refuses to create an object, and says why."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from conformance.scenario.base import Manifest, Strict
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


class Rejected(Strict):
    """An object that must be refused, and what the refusal says."""

    object: Manifest
    code: int | None = Field(default=None, description="HTTP status, for example 422")
    reason: StatusReason | None = Field(default=None, description="reason of the Status")
    field: str | None = Field(
        default=None, description="path of a field in the Status's details.causes, or above one"
    )
    message: str | None = Field(
        default=None, description="a part of the Status's message, or of that of a cause"
    )


class RejectedExpectation(Expectation):
    """The API server refuses to create an object, and says why."""

    rejected: Rejected

    def describe(self) -> str:
        """In a line."""
        wanted = self.rejected
        parts = [
            wanted.code is not None and f"with code {wanted.code}",
            wanted.reason is not None and f"for reason {wanted.reason}",
            wanted.field is not None and f"naming {wanted.field}",
            wanted.message is not None and f"saying {wanted.message!r}",
        ]
        says = ", ".join(part for part in parts if part)
        return f"{wanted.object.get('kind')} rejected {says}".strip()

    def evaluate(self, cluster: Cluster) -> Seen:
        """Create the object, and compare the refusal."""
        observed = {"rejected": self.rejected.object.get("kind")}
        refusal = cluster.refusal(self.rejected.object)
        if refusal is None:
            name = self.rejected.object.get("metadata", {}).get("name")
            return Seen(False, f"it was accepted as {name}", observed)
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
        """The object, which is wrong only in the way that the refusal says."""
        wanted = self.rejected
        if wanted.code == 404 or wanted.reason == "NotFound":
            return  # Nobody looks into an object whose kind or version is not served.
        anyhow = wanted.code in {None, 400} and wanted.message is None
        message = None if anyhow else wanted.message or ""
        known.refused(("rejected", "object"), wanted.object, message)
