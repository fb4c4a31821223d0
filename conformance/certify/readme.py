"""The README of a submission: written from the evidence, and compared with it.

Whoever reads a pull request sees this file first: it must say no more than the evidence does.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import takewhile, zip_longest
from typing import Any, Final

from conformance import __version__
from conformance.certify.model import ConformanceReport, Support
from conformance.jsondiff import json_text
from conformance.report.templating import build_environment
from kube.base.redaction import redact
from kube.base.text import inline_code, one_line, visible

_COMMANDS: Final = re.compile(r"(?ms)^## How to make it again\n\n```\n(.*?)\n```\n")


@dataclass(frozen=True, slots=True)
class Readme:
    """What a README is made from.

    Attributes:
        options: the run's, from the header of its result file.
        reproduce: the submitter's commands that make the run again; empty for those of the suite;
            None in evidence that was written before they were kept there.
        evidence: name of the evidence file beside it.
    """

    report: ConformanceReport
    options: Mapping[str, Any]
    reproduce: str | None
    evidence: str

    @property
    def ours(self) -> bool:
        """Whether this version of the suite writes it; another may word it otherwise."""
        return self.report.suite.version == __version__

    def text(self) -> str:
        """Return the whole file."""
        features = {
            str(support): [item.name for item in self.report.features if item.support is support]
            for support in Support
        }
        commands = self.reproduce or (
            f"pip install dra-conformance=={self.report.suite.version}\n"
            "dra-conformance run --target cluster ... --compare -o results"
            "   # with the options below\n"
            "dra-conformance submit results/results.ndjson ..."
        )
        templates = build_environment(
            "conformance.certify"
        )  # it is Markdown; all foreign text becomes code
        templates.filters.update(code=_code, block=_block)
        return templates.get_template("README.md.j2").render(
            report=self.report,
            about=self.report.implementation,
            features=features,
            evidence=self.evidence,
            reproduce=commands,
            options=json.dumps(dict(self.options), sort_keys=True),
        )

    def with_commands_of(self, text: str) -> Readme:
        """This README with the commands of another text of it, where the evidence has none.

        Whatever that text has there becomes one block of code, as a submitter could have given it.
        """
        commands = _COMMANDS.search(text)
        if self.reproduce is not None or commands is None:
            return self
        return replace(self, reproduce=commands[1])

    def find_difference(self, content: bytes) -> str | None:
        """Return where a file is not this README, in words; None where it is."""
        try:
            text = content.decode()
        except UnicodeDecodeError as error:
            return f"is not UTF-8 (byte {error.start})"
        made_again = self.with_commands_of(text).text()
        pairs = zip_longest(text.split("\n"), made_again.split("\n"))
        for number, (is_there, expected) in enumerate(pairs, start=1):
            if is_there is None:
                return f"ends before line {number}, the evidence gives {json_text(expected, 200)}"
            if expected is None:
                return f"has line {number}, {json_text(is_there, 200)}; the evidence gives none"
            if is_there != expected:
                # A long line is shown from shortly before the place.
                same = takewhile(
                    lambda pair: pair[0] == pair[1], zip(is_there, expected, strict=False)
                )
                start = max(0, sum(1 for _ in same) - 40)
                return (
                    f"line {number} has {json_text(is_there[start:], 200)}, the evidence gives"
                    f" {json_text(expected[start:], 200)}"
                )
        return None


def _code(text: object) -> str:
    return inline_code(one_line(visible(redact(str(text))), 400))


def _block(text: object) -> str:
    safe = visible(redact(str(text))).replace("```", "'''")
    return f"```\n{safe}\n```"
