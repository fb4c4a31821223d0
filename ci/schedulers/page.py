"""Makes the page of schedulers from what is recorded in ci/schedulers/results.

Whose fault a failure is stands in ``explained.yaml``, by the scheduler's source; the page says so
where nobody has looked yet.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from kube.base.text import one_line

ROOT: Final = Path(__file__).resolve().parents[2]
RECORDS: Final = ROOT / "ci/schedulers/results"
EXPLAINED: Final = ROOT / "ci/schedulers/explained.yaml"
DEFAULT: Final = "default-scheduler"

HEAD: Final = """# Schedulers

Generated from `ci/schedulers/results`, which the commands in `ci/schedulers` write:
`ci/schedulers/NAME` builds a scheduler where it is not kube-scheduler (its Go module is pinned in
`ci/schedulers/modules/NAME`), and runs the core scenarios of the allocation tier with it on a
local control plane. How to run them with yours:
[clusters](clusters.md#another-scheduler).
"""

COLUMNS: Final = (
    "scheduler",
    "version",
    "Kubernetes",
    "dra-core-scheduler",
    "of it passed, failed, skipped",
    "core scenarios",
    "allocations",
    "date",
)

ABSENT: Final = """
## Two at once

`device-goes-between-schedulers` passes with kube-scheduler and `second-profile` of 1.37.1: each
sees what the other has allocated, and takes what it has released. Two that choose at the same
moment may take one device for two claims: with 16 pods each for four devices that came in 2 of 6
attempts (2026-11-26, local control plane). The API prevents it for one claim only (resource/v1
types.go, ResourceClaimStatus.ReservedFor: the update that comes first wins), so this is no
scenario; a run says `overlapping` where it sees it. Give each scheduler a driver or nodes of its
own.

## Not run

- YuniKorn v1.8.0: its predicate manager switches the gate DynamicResourceAllocation off
  (pkg/plugin/predicates/predicate_manager.go).
- KAI Scheduler: needs its binder, its pod grouper and admission webhooks beside the scheduler, as
  pods of a cluster with a network for services, which the local control plane has not.
"""


def version_of(module: Path) -> str:
    """The version of what a pinned module is there for; "" where there is none."""
    file = module / "go.mod"
    text = file.read_text(encoding="utf-8") if file.exists() else ""
    tool = re.search(r"^tool (?:\(\n\t)?(\S+)", text, re.MULTILINE)
    for name, version in re.findall(r"^(?:require )?\t?(\S+) (v\S+)", text, re.MULTILINE):
        if tool and tool[1].startswith(f"{name}/"):
            return str(version)
    return ""


def text() -> str:
    """The page."""
    records = {
        file.stem: json.loads(file.read_text("utf-8")) for file in sorted(RECORDS.glob("*.json"))
    }
    explained = yaml.safe_load(EXPLAINED.read_text(encoding="utf-8")) or {}
    cells = (COLUMNS, *(_cells(name, one) for name, one in records.items()))
    rows = [f"| {' | '.join(row)} |" for row in cells]
    rows.insert(1, "|---" * len(COLUMNS) + "|")
    sections = (
        line for name, one in records.items() for line in _section(name, one, explained.get(name))
    )
    return "\n".join([HEAD, *rows, "", *sections]) + ABSENT


def _cells(name: str, record: Mapping[str, Any]) -> Iterator[str]:
    counts, core = record["statistics"], record["core"]
    yield f"[{name}](#{name.replace('.', '')})"
    yield from (record["version"], core["kubernetes"], record["profile"])
    yield ", ".join(str(counts[key]) for key in ("passed", "failed", "skipped"))
    yield _counts(core["outcomes"])
    yield _counts(core["allocations"]) or "none"
    yield core["date"]


def _counts(numbers: Mapping[str, int]) -> str:
    return ", ".join(f"{number} {name}" for name, number in numbers.items())


def _section(
    name: str, record: Mapping[str, Any], explained: Mapping[str, Any] | None
) -> Iterator[str]:
    yield f"## {name}\n"
    if tier := record.get("tier"):
        yield (
            f"The whole allocation tier on Kubernetes {tier['kubernetes']}, {tier['date']}: "
            f"{_counts(tier['outcomes'])}; allocations: {_counts(tier['allocations'])}.\n"
        )
    if not record["core"]["bad"]:
        yield "Nothing failed.\n"
    else:
        yield "| what did not pass | outcome | what was seen | whose fault |"
        yield "|---|---|---|---|"
    for scenario, said in record["core"]["bad"].items():
        why = _why(scenario, explained or {})
        seen = one_line(said["message"], 200).replace("|", "\\|").replace("<", "&lt;")
        yield f"| `{scenario}` | {said['outcome']} | {seen} | {why} |"
    yield ""


def _why(scenario: str, explained: Mapping[str, Any]) -> str:
    for one in explained.values():
        if scenario in one["scenarios"]:
            return f"**{one['fault']}**: {' '.join(one['why'].split())}"
    return "nobody has looked yet"
