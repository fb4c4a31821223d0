"""The text of ``run --dry-run``: what a run would do, of a plan of it."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from conformance.engine.plan import Plan
from conformance.targets.opening.target import Opened
from kube.base.text import counted
from kube.nodes import RUN_LABEL
from reference_allocator.api.schema import CLUSTER_SCOPED


def describe_plans(plans: Sequence[Plan], opened: Opened, run_id: str) -> Iterator[str]:
    """List what a run would do, as lines for a terminal of 80 columns, without colour."""
    object_counts, skipped = Counter[str](), 0
    for plan in plans:
        object_counts += plan.objects
        skipped += bool(plan.skipped)
        yield f"{'skip' if plan.skipped else 'run '}  {plan.id}"
        yield from _indent(plan.skipped or _list_counts(plan.objects))
        yield from _indent(f"would {fault}" for fault in plan.disturbed)
    capabilities = opened.capabilities
    yield ""
    yield from textwrap.wrap(
        f"would run {counted(len(plans) - skipped, 'scenario')} and skip {skipped} on Kubernetes"
        f" {capabilities.kubernetes_version}, target {opened.target.name}",
        79,
    )
    cluster_wide = {kind: n for kind, n in object_counts.items() if kind in CLUSTER_SCOPED}
    yield f"would make, each with the label {RUN_LABEL}={run_id}:"
    yield from _indent(f"cluster-wide: {_list_counts(cluster_wide)}")
    namespaced = {kind: n for kind, n in object_counts.items() if kind not in CLUSTER_SCOPED}
    yield from _indent(f"in namespaces of the run: {_list_counts(namespaced)}")
    profile = opened.profile
    if profile is not None and profile.driver == capabilities.driver:
        profiles = [profile, *([opened.other] if opened.other is not None else [])]
        names = ", ".join(
            device_class.name
            for each_profile in profiles
            for device_class in each_profile.spec.classes.values()
        )
        yield from _indent(f"where it is not there: DeviceClass {names}")
    yield "nothing was made"


def _list_counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{number} {kind}" for kind, number in sorted(counts.items())) or "nothing"


def _indent(texts: str | Iterator[str]) -> Iterator[str]:
    for text in [texts] if isinstance(texts, str) else texts:
        yield from textwrap.wrap(text, 79, initial_indent="      ", subsequent_indent="      ")
