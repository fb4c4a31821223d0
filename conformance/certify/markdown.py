"""Markdown of which no text from elsewhere can be a part: it stands in code."""

from __future__ import annotations

from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from conformance.redaction import redact
from conformance.text import inline_code, one_line, visible


def rendered(template: str, **values: Any) -> str:
    """A template of this package with its values; the same values give the same text."""
    environment = Environment(
        loader=PackageLoader("conformance.certify"),
        autoescape=False,  # noqa: S701 -- it is no HTML; the filters see to it
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(code=_code, block=_block)
    return environment.get_template(template).render(**values)


def _code(text: object) -> str:
    return inline_code(one_line(visible(redact(str(text))), 400))


def _block(text: object) -> str:
    safe = visible(redact(str(text))).replace("```", "'''")
    return f"```\n{safe}\n```"
