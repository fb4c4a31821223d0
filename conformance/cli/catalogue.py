"""The page with all scenarios (docs/scenarios.md), from the scenarios alone."""

from __future__ import annotations

from collections.abc import Sequence

from conformance.scenario.loader import LoadedScenario


def catalogue(found: Sequence[LoadedScenario]) -> str:
    """The scenarios as a Markdown page, by folder."""
    lines = [
        "# Scenario catalogue",
        "",
        "Generated: `dra-conformance list --markdown > docs/scenarios.md`. How to write one:",
        "[writing-scenarios.md](writing-scenarios.md). What a scenario needs that not every",
        "cluster has is in the last column ([clusters.md](clusters.md#what-cannot-be-seen)).",
    ]
    folder = None
    for item in found:
        head, _, leaf = item.id.rpartition("/")
        if head != folder:
            folder = head
            lines += [
                "",
                f"## {head}",
                "",
                "| scenario | tier | feature | shows | needs |",
                "|---|---|---|---|---|",
            ]
        spec = item.scenario.spec
        link = f"[{leaf}](../scenarios/{item.id}.yaml)"
        needs = ", ".join(spec.requires.abilities)
        lines.append(f"| {link} | {spec.tier} | {spec.feature} | {spec.summary} | {needs} |")
    return "\n".join(lines) + "\n"
