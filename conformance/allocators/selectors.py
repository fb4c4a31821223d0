"""The shipped vectors of selectors: CEL expressions and Kubernetes' own answers, by minor."""

from __future__ import annotations

from typing import Any, Final, Literal

from pydantic import Field

from conformance.allocators.contract import WrittenVector
from conformance.data import scenarios_dir

SELECTORS: Final = scenarios_dir() / "vectors" / "selectors.ndjson"
"""The shipped vectors."""


class SelectorVector(WrittenVector):
    """A selector, a device, and what Kubernetes answers, for tests of other CEL implementations."""

    contract: Literal["cel/v1"] = Field("cel/v1", description="the form of question and answer")
    sentence: str = Field(description="what is shown, in one sentence")
    source: str = Field(description="where the rule is written")
    question: dict[str, Any] = Field(
        description="a line for `dra-conformance cel`: expression and device"
    )
    expected: dict[str, dict[str, Any]] = Field(
        description="Kubernetes minor -> match (true or false), error or compileError with"
        " Kubernetes' text; cost, what the evaluation costs; maxCost, what it may cost at most"
    )
