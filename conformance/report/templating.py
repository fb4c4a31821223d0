"""How every page is made of its template: what a target says forms no markup."""

from __future__ import annotations

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

from kube.base.redaction import redact
from kube.base.text import shorten, visible

MAX_CHARACTERS = 200_000
"""The most that a page shows of one attachment; the result file has all of it."""


def fit(text: object) -> str:
    """Return a text that a page can show: visible, without credentials, and not endless."""
    return shorten(visible(redact(str(text))), 5_000, MAX_CHARACTERS)


def build_environment(package: str = "conformance.report") -> Environment:
    """Of the templates of a package, with the filter ``fit``; in Markdown nothing is escaped."""
    templates = Environment(
        loader=PackageLoader(package),
        autoescape=select_autoescape(disabled_extensions=("md.j2",), default=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters["fit"] = fit
    return templates
