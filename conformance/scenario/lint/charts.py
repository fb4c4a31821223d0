"""Helm charts in a folder that is checked: which files are Helm's, and what a chart renders."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

from conformance.scenario.documents.yamlfile import MAX_BYTES, Document, YamlError, parse_documents
from kube.base.errors import UsageError
from kube.base.files import read_regular

CHART_FILE: Final = "Chart.yaml"
_SOURCE: Final = re.compile(r"^# Source: (.+)$", re.MULTILINE)
_VARIABLE: Final = re.compile(rb"\$\{[A-Z][A-Z0-9_]*\}")
_SECONDS: Final = 60


def find_chart(file: Path) -> Path | None:
    """Return the folder of the chart of which a file is a part that Helm alone reads, or None.

    These are ``Chart.yaml``, the values, and templates with ``{{``; any other file of a chart is
    what it says.
    """
    parent = file.parent
    if _is_chart(parent) and (file.name == CHART_FILE or file.name.startswith("values")):
        return _outermost(parent)
    chart = _find_chart_of_templates(parent)
    return chart if chart is not None and is_template(file) else None


@cache
def _find_chart_of_templates(folder: Path) -> Path | None:
    """Return the chart of which a folder lies below the templates; None for none."""
    for place in (folder, *folder.parents):
        if place.name == "templates" and _is_chart(place.parent):
            return _outermost(place.parent)
    return None


@cache
def _is_chart(folder: Path) -> bool:
    return (folder / CHART_FILE).is_file()


def _outermost(chart: Path) -> Path:
    """Return the chart that renders this one: a dependency lies in ``charts`` of another."""
    while chart.parent.name == "charts" and _is_chart(chart.parent.parent):
        chart = chart.parent.parent
    return chart


def is_template(file: Path) -> bool:
    """Return whether a file has what templates for Go have and YAML rarely: ``{{``."""
    try:
        return b"{{" in read_regular(file, MAX_BYTES)
    except OSError:
        return False


def has_variables(file: Path) -> bool:
    """Return whether a file has what `envsubst` fills in, so that it need not be YAML before."""
    try:
        return _VARIABLE.search(read_regular(file, MAX_BYTES)) is not None
    except OSError:
        return False


def render_chart(chart: Path) -> Iterator[list[Document]]:
    """Yield the documents that ``helm template`` makes of each file of a chart.

    Raises UsageError: Helm cannot be run, or says what is wrong; what is rendered is no YAML.
    """
    command = ["helm", "template", "checked", str(chart.absolute())]
    try:
        done = subprocess.run(command, capture_output=True, timeout=_SECONDS, check=False)
    except FileNotFoundError:
        text = "--helm: there is no `helm` command; install it from https://helm.sh/docs/intro/install/"
        raise UsageError(text) from None
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UsageError(f"{chart}: `helm template` was not run to its end: {error}") from None
    if done.returncode != 0:
        lines = done.stderr.decode(errors="replace").strip().splitlines() or ["it said nothing"]
        text = "values that it needs can be given to `helm template`, and its output to `lint -`"
        raise UsageError(f"{chart}: `helm template` failed: {lines[-1]}; {text}")
    try:
        rendered = done.stdout.decode()
    except UnicodeDecodeError:
        raise YamlError(f"{chart}: what `helm template` renders is not UTF-8 text") from None
    [head, *named_parts] = _SOURCE.split(rendered)
    parts = [(str(chart), head), *zip(named_parts[::2], named_parts[1::2], strict=True)]
    for source, text in parts:
        yield list(parse_documents(text, Path(f"{source} (rendered)")))
