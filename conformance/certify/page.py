"""A static page of submissions: which driver shows which feature, on which Kubernetes minor.

It needs no script and nothing from elsewhere, and takes only submissions that verify. Text of
submitters forms no markup: the template engine escapes it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final

from conformance.certify.model import ConformanceReport, FeatureResult, Support
from conformance.certify.shown import UNKNOWN
from conformance.certify.submission import folder_of
from conformance.certify.values import Hardware, Result
from conformance.report.templating import build_environment
from conformance.scenario.base import parse_release
from kube.base.files import write_whole
from kube.base.text import counted

BADGES: Final = "badges"
INDEX: Final = "index.html"
MARKS: Final = {
    Support.SUPPORTED: "\u2713",
    Support.UNSUPPORTED: "\u2013",
    Support.FAILED: "\u2717",
    Support.NOT_TESTED: "?",
}
_COLOURS: Final = {Result.SUCCESS: "#1a7f37", Result.FAILURE: "#c62828"}
_GREY: Final = "#57606a"
_BLUE: Final = "#0969da"  # A success that says nothing of hardware.
_CHARACTER: Final = 7  # Pixels; of Verdana at 11, about which a badge's texts are laid out.


@dataclass(frozen=True, slots=True)
class Entry:
    """One submission on the page.

    Attributes:
        folder: where it is.
        signed_by: whoever signed it, in words; empty where nobody did.
        departures: where its scenarios and profiles are not those of this suite: it was judged by
            its own, which may ask for less.
    """

    folder: Path
    report: ConformanceReport
    signed_by: str = ""
    departures: tuple[str, ...] = ()

    @property
    def minor(self) -> str:
        return str(folder_of(self.report).parent)

    @property
    def name(self) -> str:
        """The name of its folder, the same for each minor."""
        return folder_of(self.report).name

    @property
    def title(self) -> str:
        return self.report.implementation.project

    def feature(self, name: str) -> FeatureResult | None:
        """Return its result for a feature; None where the suite had no scenario of it."""
        return next((item for item in self.report.features if item.name == name), None)

    def badge(self, profile: str) -> str:
        """Return the path of a profile's badge below the page.

        Each submission has a folder of its own: names joined by a dash could be cut in two ways.
        """
        return f"{BADGES}/{self.minor}/{self.name}/{profile}.svg"


@dataclass(frozen=True, slots=True)
class Change:
    """What became of a feature from one minor to the next."""

    feature: str
    before: Support | None
    after: Support | None


def find_clashes(entries: Sequence[Entry]) -> dict[Path, list[Path]]:
    """Return folder -> the other folders of each submission whose name and minor others have, too.

    A name is made of organization and project, so that it can be that of two implementations. Whose
    the badges are cannot be seen: they are nobody's.
    """
    by_name: dict[tuple[str, str], list[Path]] = {}
    for entry in entries:
        by_name.setdefault((entry.minor, entry.name), []).append(entry.folder)
    return {
        folder: [other for other in folders if other != folder]
        for folders in by_name.values()
        if len(folders) > 1
        for folder in folders
    }


def render_pages(entries: Sequence[Entry]) -> dict[str, str]:
    """Return path below the site -> text of every file; the same entries give the same texts.

    Raises ValueError: two of them clash, see :func:`find_clashes`.
    """
    if clashes := find_clashes(entries):
        raise ValueError(f"submissions of one name: {', '.join(map(str, clashes))}")
    ordered = sorted(entries, key=lambda one: (_order(one.minor), one.name))
    by_minor: dict[str, list[Entry]] = {}
    for entry in ordered:
        by_minor.setdefault(entry.minor, []).append(entry)
    files = {
        INDEX: _render(
            "page.html.j2",
            minors={minor: by_minor[minor] for minor in reversed(by_minor)},
            features={minor: _features(some) for minor, some in by_minor.items()},
            changes=list(_all_changes(ordered)),
            unknown=UNKNOWN,
        )
    }
    for entry in ordered:
        for item in entry.report.profiles:
            summary = f"{item.name}: {item.result}"
            colour = _COLOURS.get(item.result, _GREY)
            if item.without:
                summary = f"{summary} without {counted(len(item.without), 'rule')}"
            if item.driver_check is not None and entry.report.hardware is not Hardware.SHOWN:
                summary = f"{summary}, hardware {entry.report.hardware}"
                colour = _BLUE if item.result is Result.SUCCESS else colour
            if entry.departures:  # whoever makes a bundle could have asked for less
                summary, colour = f"{summary} (other suite)", _GREY
            about = f"DRA, Kubernetes {entry.minor}"
            files[entry.badge(item.name)] = _render(
                "badge.svg.j2",
                about=about,
                said=summary,
                left=len(about) * _CHARACTER + 12,
                right=len(summary) * _CHARACTER + 12,
                colour=colour,
            )
    return files


def without(report: ConformanceReport) -> list[str]:
    """Return what the profiles are without, each reason once, with its number of scenarios."""
    counts = Counter(skipped.reason for item in report.profiles for skipped in item.without)
    return [f"{reason} ({counted(number, 'scenario')})" for reason, number in counts.items()]


def find_changes(earlier: Entry, later: Entry) -> Iterator[Change]:
    """Yield the features that two submissions show differently, by name."""
    names = {item.name for entry in (earlier, later) for item in entry.report.features}
    for name in sorted(names):
        old, new = earlier.feature(name), later.feature(name)
        change = Change(name, old.support if old else None, new.support if new else None)
        if change.before is not change.after:
            yield change


def _all_changes(ordered: Sequence[Entry]) -> Iterator[tuple[Entry, Entry, list[Change]]]:
    by_implementation: dict[tuple[str, str, str], list[Entry]] = {}
    for entry in ordered:
        about = entry.report.implementation
        key = (entry.name, about.organization, about.project)  # two may have one name
        by_implementation.setdefault(key, []).append(entry)
    for _, own_entries in sorted(by_implementation.items()):
        for earlier, later in pairwise(own_entries):
            yield earlier, later, list(find_changes(earlier, later))


def _features(entries: Sequence[Entry]) -> list[FeatureResult]:
    """Return one of each feature that any of them has, by name, for its stage and summary."""
    features = {item.name: item for entry in entries for item in entry.report.features}
    return [features[name] for name in sorted(features)]


def _order(minor: str) -> tuple[int, ...]:
    version = parse_release(minor)
    return version.release if version is not None else ()


def _render(template: str, **values: object) -> str:
    templates = build_environment("conformance.certify")
    templates.globals["without"] = without
    templates.globals["marks"] = {str(key): mark for key, mark in MARKS.items()}
    return templates.get_template(template).render(**values)


def write_pages(folder: Path, files: dict[str, str]) -> None:
    """Write the site. Raises OSError: it cannot be written."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, text.encode())
