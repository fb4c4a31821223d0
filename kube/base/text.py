"""Text from elsewhere, made fit for a terminal, the log of a CI job or an XML file.

A message may hold whatever a driver, a log or a fuzzer put there: escape sequences that would move
the cursor, commands to a CI system, characters that XML forbids, direction marks that show
something else than what is there, or ten megabytes. What is unfit is shown, not dropped: silently
losing a character has sent people looking in the wrong place before.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath
from typing import Final

WIDTH: Final = 80
"""Columns of a terminal."""

MAX_NAMES: Final = 4
"""Names of many that are said."""

# C0 and C1 controls but tab and newline, the marks that change the direction of text, separators
# that some readers take for a newline, and lone surrogates, which no encoding has.
_UNFIT = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
# Commands that a line of a job's log is: GitHub's (ActionCommand.cs of actions/runner takes
# ::name::value after white space, and ##[name] anywhere), Azure's ##vso[ and ##teamcity[.
_COMMAND = re.compile(
    r"^[^\S\n]*:(?=:[a-z-]+(?:\s|::))|#(?=#(?:vso|teamcity)?\[)", re.MULTILINE | re.IGNORECASE
)
# What XML 1.0 forbids beyond these (production [2] Char).
_NOT_XML = re.compile("[\ufffe\uffff]")


def visible(text: str) -> str:
    r"""Return the text, control and direction characters shown as their escapes (x1b, u202e).

    So is the first character of what a CI system would take for a command: ``\x3a:error::``.
    """
    escaped = _UNFIT.sub(_escape, text.replace("\r\n", "\n"))
    return _COMMAND.sub(_escape, escaped)


def xml_text(text: str) -> str:
    """Return the text with everything that an XML 1.0 document cannot hold shown as an escape."""
    return _NOT_XML.sub(_escape, visible(text))


def _escape(match: re.Match[str]) -> str:
    """Return the match with its last character shown as an escape; before it is white space."""
    white_space, code = match.group()[:-1], ord(match.group()[-1])
    return white_space + (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}")


def shorten(text: str, lines: int, characters: int) -> str:
    """At most so many lines and characters, with a note on what was left out."""
    beginning = "\n".join(text[:characters].split("\n")[:lines])
    left_out = len(text) - len(beginning)
    return f"{beginning}\n... ({left_out} more characters)" if left_out else text


def cut(text: str, longest: int) -> str:
    """Return the text, or its beginning and dots where it has more characters than that."""
    return text if len(text) <= longest else f"{text[: longest - 3]}..."


def one_line(text: object, longest: int = 300) -> str:
    """Text from elsewhere as one line of printable characters."""
    line = " ".join("".join(c if c.isprintable() else " " for c in str(text)).split())
    return cut(line, longest)


def fold(text: str, head: str = "", indent: str = "  ") -> list[str]:
    """Return a text as lines of at most `WIDTH` characters, but for words that are longer.

    Args:
        head: begins the first line.
        indent: begins the others.
    """
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=head,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def inline_code(text: str) -> str:
    """Text as Markdown's inline code, in a table cell too: one line without what could end it."""
    return "`" + text.replace("`", "'").replace("\n", " ").replace("|", "\u2223") + "`"


def is_address(reference: str) -> bool:
    """Return whether a reference can be followed; a document's bare name cannot."""
    return reference.startswith(("https://", "http://"))


def counted(number: int, what: str) -> str:
    """``1 file``, ``2 files``."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def addresses_first(references: Iterable[str]) -> tuple[str, ...]:
    """References in their order, but those that can be followed before all others."""
    return tuple(sorted(references, key=lambda item: not is_address(item)))


def public_path(file: str, scenario_id: str) -> str:
    """Return a scenario's file as others may see it: below the scenario root, no local folders.

    Args:
        file: as the loader names it, often absolute.
        scenario_id: the public id, which is the path below the root without suffix.

    Returns ``core/name.yaml`` where the file is the one the id names, else the bare file name.
    """
    path = PurePosixPath(Path(file).as_posix())
    named = PurePosixPath(scenario_id)
    size = len(named.parts)
    if path.with_suffix("").parts[-size:] == named.parts:
        return str(named.with_name(path.name))
    return path.name


def public_text(text: str, file: str, scenario_id: str) -> str:
    """Return the text with the scenario's file named as :func:`public_path` names it."""
    return text.replace(file, public_path(file, scenario_id)) if file else text


def join_some(names: Sequence[str]) -> str:
    """Return the first few of some names in words, and how many there are beside them."""
    some = ", ".join(names[:MAX_NAMES])
    return f"{some} and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else some
