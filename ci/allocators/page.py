"""Makes the page of allocators from what is recorded in ci/allocators/results.json."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from ci.allocators.measure import RESULTS
from kube.base.text import one_line
from tests.vectors.make import HAND_MADE

_HEAD: Final = """\
# Implementations of the rules

Generated from `ci/allocators/results.json`, which `make allocators` writes: each allocator is asked
the [vectors](allocators.md#vectors) of its Kubernetes minor and random questions, at level `fits`.
A wrong *yes* says that claims fit a node that they do not fit; a wrong *no* the other way round;
*timeouts* are searches that it gave up. Random questions ask for rare things far more often than
people do: their shares say what a rule weighs in them, not what users see. What Karpenter's
differences mean for its users: [found](found/karpenter.md).

Volcano hands claims to the plugin of kube-scheduler 1.34.1 with its gates as they are by default:
what is asked is that version's library. Not asked are KAI-Scheduler and cluster-autoscaler, whose
modules could not be had through the Go module proxy (refused in November 2026), and Kueue v0.17.0:
as its source says, it chooses no devices, but counts those that claims ask for by class against a
quota, and refuses selectors, constraints, alternatives, All and adminAccess.
"""
_HEADS: Final = ("wrong yes, no", "timeouts")
_SHOWN: Final = 25


def text() -> str:
    """The page."""
    kept: dict[str, Any] = json.loads(RESULTS.read_text(encoding="utf-8"))
    return "\n".join((_HEAD, *_table(kept), "", *_classes(kept), *_differences(kept), ""))


def _table(kept: dict[str, Any]) -> Iterator[str]:
    heads = ("allocator", "rules of", "vectors", *_HEADS, "random questions", *_HEADS, "date")
    yield f"| {' | '.join(heads)} |"
    yield "|---" * len(heads) + "|"
    for name, item in kept.items():
        cells = [name, item["kubernetes"]]
        for part in ("vectors", "random"):
            counts = item[part]["counts"]
            unsupported = item[part]["unsupported"]
            more = f" ({unsupported} more not supported)" if unsupported else ""
            errors = f", {counts['errors']} without an answer" if counts["errors"] else ""
            cells += [
                f"{counts['asked']}{more}",
                f"{counts['wrongYes']}, {counts['wrongNo']}{errors}",
                str(counts["timeouts"]),
            ]
        yield f"| {' | '.join((*cells, item['date']))} |"


def _classes(kept: dict[str, Any]) -> Iterator[str]:
    """Yield which of the written vectors an allocator answers wrong."""
    sentences = {item.id: item.sentence for item in HAND_MADE}
    for name, item in kept.items():
        wrong = [identifier for identifier in item["vectors"]["wrong"] if identifier in sentences]
        if wrong:
            yield f"## {name}: vectors that it fails\n"
            yield "| vector | right is |"
            yield "|---|---|"
            for identifier in wrong:
                yield f"| {identifier} | {sentences[identifier]} |"
            yield ""


def _differences(kept: dict[str, Any]) -> Iterator[str]:
    for name, item in kept.items():
        found = item["random"]["differences"]
        if found:
            yield f"## {name}: differences in random questions, made small\n"
            yield "| it | about | questions |"
            yield "|---|---|---|"
            for each in found[:_SHOWN]:
                sentence = one_line(each["sentence"], 200).replace("|", "\\|")
                yield f"| {sentence} | {', '.join(each['features'])} | {each['questions']} |"
            yield ""
