"""The text of ``run --dry-run``: what would run, be skipped and be made."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from conformance.engine.plan import Plan
from conformance.targets.opening.target import Opened
from conformance.targets.seam.values import RUN_LABEL
from conformance.text import counted
from reference_allocator.api.schema import CLUSTER_SCOPED


def planned_lines(plans: Sequence[Plan], opened: Opened, run: str) -> Iterator[str]:
    """The lines of a terminal of 80 columns, without colour."""
    made, skipped = Counter[str](), 0
    for item in plans:
        made += item.objects
        skipped += bool(item.skipped)
        yield f"{'skip' if item.skipped else 'run '}  {item.id}"
        yield from _indented(item.skipped or _listed(item.objects))
        yield from _indented(f"would {fault}" for fault in item.disturbed)
    capabilities = opened.capabilities
    yield ""
    yield from textwrap.wrap(
        f"would run {counted(len(plans) - skipped, 'scenario')} and skip {skipped} on Kubernetes"
        f" {capabilities.kubernetes_version}, target {opened.target.name}",
        79,
    )
    everywhere = {kind: number for kind, number in made.items() if kind in CLUSTER_SCOPED}
    yield f"would make, each with the label {RUN_LABEL}={run}:"
    yield from _indented(f"cluster-wide: {_listed(everywhere)}")
    own = {kind: number for kind, number in made.items() if kind not in CLUSTER_SCOPED}
    yield from _indented(f"in namespaces of the run: {_listed(own)}")
    profile = opened.profile
    if profile is not None and profile.driver == capabilities.driver:
        both = [profile, *([opened.other] if opened.other is not None else [])]
        names = ", ".join(entry.name for one in both for entry in one.spec.classes.values())
        yield from _indented(f"where it is not there: DeviceClass {names}")
    yield "nothing was made"


def _listed(kinds: Mapping[str, int]) -> str:
    return ", ".join(f"{number} {kind}" for kind, number in sorted(kinds.items())) or "nothing"


def _indented(texts: str | Iterator[str]) -> Iterator[str]:
    for text in [texts] if isinstance(texts, str) else texts:
        yield from textwrap.wrap(text, 79, initial_indent="      ", subsequent_indent="      ")
