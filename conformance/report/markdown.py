"""The run in Markdown: the job summary of a CI system, or a comment.

Short: the verdict, what did not pass, and the features. Text from a target can form no markup: it
stands in code, and what would end the code is replaced.
"""

from __future__ import annotations

from conformance.redaction import redact
from conformance.report.html import render
from conformance.resultfile.read import RecordedRun
from conformance.text import shorten, visible

_MAX_LINES, _MAX_CHARACTERS = 20, 2_000


def render_markdown(result: RecordedRun) -> str:
    """The summary as text; the same result gives the same text."""
    return render("summary.md.j2", result, {"code": _code, "block": _block})


def _code(text: object) -> str:
    """Inline code, in a table cell too: one line without what could end it."""
    return "`" + _safe(text).replace("\n", " ").replace("|", "\u2223") + "`"


def _block(text: object) -> str:
    """A block of code, indented as in a list item."""
    lines = ["~~~", *_safe(text).split("\n"), "~~~"]
    return "\n".join(f"  {line}" for line in lines)


def _safe(text: object) -> str:
    shortened = shorten(visible(redact(str(text))), _MAX_LINES, _MAX_CHARACTERS)
    return shortened.replace("`", "'").replace("~~~", "---")
