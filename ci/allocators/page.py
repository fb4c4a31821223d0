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
differences mean for its users: [found](found/karpenter.md); what Kueue's do is told below.

Volcano hands claims to the plugin of kube-scheduler 1.35.3 with its gates as they are by default:
what is asked is that version's library. That of 1.34 knows no distinctAttribute with its gates as
they are by default, though its API server stores it, and until 1.36 it is kept for the last device
of a request only (kubernetes#140600); until 1.35 a later alternative with All gets one device
(#137347). Kueue chooses no devices: it was asked whether it admits a pod where the quota of a class
is the number of the node's devices that the class selects.

Not asked, because their modules cannot be had through the Go module proxy (each was tried again on
2026-11-28): cluster-autoscaler v1.35.0, KAI-Scheduler v0.12.0 and v0.14.0, YuniKorn's k8shim
v1.7.0. Koordinator v1.7.0 can be had and reads no resource.k8s.io/v1 (it is of Kubernetes 1.28).
"""
_KUEUE: Final = RESULTS.parent / "kueue/README.md"
_HEADS: Final = ("wrong yes, no", "timeouts")
_SHOWN: Final = 25


def text() -> str:
    """The page."""
    kept: dict[str, Any] = json.loads(RESULTS.read_text(encoding="utf-8"))
    kueue = _KUEUE.read_text(encoding="utf-8").replace("\n## ", "\n### ")
    parts = (_HEAD, *_table(kept), "", f"#{kueue}", *_classes(kept), *_differences(kept), "")
    return "\n".join(parts)


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
