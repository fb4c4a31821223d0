"""A small change to a Go file of Kubernetes, put where a short text of it stands exactly once."""

from __future__ import annotations

from dataclasses import dataclass

WRONG = "WRONG"
"""In the code of a change: whether the scheduler is to be wrong in this way."""

_PACKAGE = '"k8s.io/dynamic-resource-allocation/mutant"'


class LostAnchorError(Exception):
    """A change no longer knows its place: Kubernetes has changed there."""


@dataclass(frozen=True)
class Change:
    """Attributes of one change.

    Attributes:
        file: its module's short name (sources.MODULES), then the path in it.
        anchor: text that the file has exactly once.
        code: what stands there instead.
    """

    file: str
    anchor: str
    code: str


def instead(file: str, anchor: str, code: str) -> Change:
    """The anchor is replaced."""
    return Change(file, anchor, code)


def before(file: str, anchor: str, code: str) -> Change:
    """Statements before the line that begins with the anchor."""
    return Change(file, anchor, f"{code}\n{anchor}")


def after(file: str, anchor: str, code: str) -> Change:
    """Statements after the line that ends with the anchor."""
    return Change(file, anchor, f"{anchor}\n{code}\n")


@dataclass(frozen=True)
class Wrong:
    """One deliberate defect of the scheduler.

    Attributes:
        name: value of DRA_MUTANT.
        what: what is wrong, in one line.
        changes: all that makes it so.
        scenarios: ids of those that are expected to notice it.
        judged: whether the comparison with the reference must find a rule broken, too.
    """

    name: str
    what: str
    changes: tuple[Change, ...]
    scenarios: tuple[str, ...]
    judged: bool = False


def make_wrong(
    name: str, what: str, *changes: Change, by: str | tuple[str, ...], judged: bool = False
) -> Wrong:
    """Return a defect; ``by``: the scenario, or several, that are expected to notice it."""
    return Wrong(name, what, changes, (by,) if isinstance(by, str) else by, judged)


def changed(file: str, text: str, wrongs: tuple[Wrong, ...]) -> str:
    """The Go file with the changes that all of these make to it.

    Raises:
        LostAnchorError: an anchor is not there exactly once, before and after the other changes.
    """
    original = text
    for wrong in wrongs:
        for change in wrong.changes:
            if change.file != file:
                continue
            _check(original, change, wrong.name, "")
            _check(text, change, wrong.name, " after the changes of other mutants")
            text = text.replace(
                change.anchor, change.code.replace(WRONG, f"mutant.Is({_quoted(wrong.name)})")
            )
    if text != original:
        imports = Change(file, "import (", "")
        _check(original, imports, "every mutant", "")
        text = text.replace(imports.anchor, f"{imports.anchor}\n\t{_PACKAGE}", 1)
    return text


def _check(text: str, change: Change, name: str, when: str) -> None:
    found = text.count(change.anchor)
    if found != 1:
        raise LostAnchorError(
            f"mutant {name}: {change.file} has {found} times instead of once{when}: "
            f"{change.anchor!r}"
        )


def _quoted(name: str) -> str:
    return f'"{name}"'
