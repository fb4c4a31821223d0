"""The pages that are made from a result file once it is complete."""

from __future__ import annotations

from pathlib import Path

from conformance.engine.dispatch import ReportError
from conformance.files import write_whole
from conformance.report.folder import HTML, RESULTS, SUMMARY
from conformance.report.html import render_html
from conformance.report.markdown import render_markdown
from conformance.resultfile.read import load_results


def write_pages(output: Path) -> None:
    """Write the HTML page and the summary beside the result file of a folder.

    Raises:
        ReportError: one of them cannot be written.
    """
    result = load_results(output / RESULTS)
    for name, text in ((HTML, render_html(result)), (SUMMARY, render_markdown(result))):
        try:
            write_whole(output / name, text.encode())
        except OSError as error:
            raise ReportError(f"{output / name}: cannot be written: {error.strerror}") from None
