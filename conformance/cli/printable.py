"""What is printed about an error: whoever wrote the text, it is safe for a terminal and a CI log.

Error messages quote files, servers and drivers' logs. Escape sequences in them are shown, not sent
to the terminal, and credentials are left out.
"""

from __future__ import annotations

from conformance.redaction import redact, redact_log
from conformance.text import visible

_QUOTED = "  "
"""How the lines of a log begin that a message quotes."""


def printable(text: object) -> str:
    """The text of an error, fit to be printed.

    In lines that are quoted from elsewhere everything after ``token:`` and the like is left out,
    wherever it stands; in the suite's own sentences that would hit prose.
    """
    lines = redact(str(text)).split("\n")
    quoted = (redact_log(line) if line.startswith(_QUOTED) else line for line in lines)
    return visible("\n".join(quoted))
