"""What is kept of a driver's certification: small, dated, and the same for the same results."""

from __future__ import annotations

import json
import re
import subprocess
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from conformance.results.events.result import RunResult
from conformance.results.events.scenario import Outcome
from kube.base.text import one_line

ROOT: Final = Path(__file__).resolve().parents[2]
RECORDS: Final = ROOT / "ci/drivers/results"
_MESSAGE: Final = 400
_UUID: Final = re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")


def pinned(name: str, package: str) -> dict[str, str]:
    """The module of a package, and its version, as go.mod pins them."""
    text = (ROOT / "ci/drivers/modules" / name / "go.mod").read_text(encoding="utf-8")
    for module, version in re.findall(r"^(?:require )?\t?(\S+) (v\S+)", text, re.MULTILINE):
        if package.startswith(f"{module}/"):
            return {"module": module, "version": version}
    raise ValueError(f"ci/drivers/modules/{name}/go.mod has no module of {package}")


def checked_out(source: Path) -> dict[str, str]:
    """The module of a checkout, and its version, as git describes it."""
    [module] = re.findall(r"^module (\S+)", (source / "go.mod").read_text("utf-8"), re.MULTILINE)
    described = ("git", "-C", str(source), "describe", "--tags", "--always", "--dirty")
    version = subprocess.run(described, check=True, capture_output=True, text=True).stdout.strip()
    return {"module": module, "version": version}


def of_check(document: Mapping[str, Any]) -> dict[str, Any]:
    """From driver-check's result: name, devices, verdict, and the checks that did not pass."""
    counts = Counter(one["outcome"] for one in document["checks"] if one["level"] == "required")
    return {
        "driver": document["driver"],
        "devices": document["devices"],
        "check": {
            "date": document["startedAt"][:10],
            "verdict": document["verdict"],
            "required": dict(sorted(counts.items())),
            "bad": {
                one["name"]: {
                    "outcome": "advised"
                    if one["outcome"] == "failed" and one["level"] == "recommended"
                    else one["outcome"],
                    "message": _short(one["message"]),
                }
                for one in document["checks"]
                if one["outcome"] not in ("passed", "not offered")
            },
        },
    }


def of_run(result: RunResult) -> dict[str, Any]:
    """From a run: counts, what is bad, why scenarios were skipped, and the features that passed."""
    skipped: defaultdict[str, list[str]] = defaultdict(list)
    features: dict[str, bool] = {}
    bad: dict[str, dict[str, str]] = {}
    for one in result.scenarios:
        feature = one.scenario.feature
        if one.outcome is Outcome.SKIPPED:
            skipped[_short(one.message)].append(one.scenario.id)
            continue
        features[feature] = features.get(feature, True) and not one.bad
        if one.bad:
            bad[one.scenario.id] = {"outcome": one.outcome.value, "message": _short(one.reasons)}
    return {
        "date": result.run.started_at[:10],
        "kubernetes": result.run.kubernetes_version.removeprefix("v"),
        "outcomes": {
            outcome.value: len(names) for outcome, names in result.outcomes.items() if names
        },
        "allocations": {str(kind): number for kind, number in result.verdicts.items() if number},
        "bad": bad,
        "skipped": dict(skipped),
        "features": sorted(name for name, good in features.items() if good),
    }


def _short(message: str) -> str:
    """A message without what differs from run to run."""
    return one_line(_UUID.sub("<uid>", message), _MESSAGE)


def keep(file: Path, record: Mapping[str, Any], stages: Sequence[str], *, as_recorded: bool) -> int:
    """Write a record, or compare it with the one that is there; the exit code."""
    if as_recorded:
        old = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
        found = differences(old, record, stages)
        print(*found, sep="\n")
        return int(bool(found))
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"wrote {file.relative_to(ROOT)}, and the pages that are made of it")
    return 0


def differences(old: Mapping[str, Any], new: Mapping[str, Any], stages: Sequence[str]) -> list[str]:
    """What these stages say now and the record does not, or the other way round: one line each."""
    return [line for stage in stages for line in _of_stage(stage, old.get(stage), new[stage])]


def _of_stage(stage: str, old: Mapping[str, Any] | None, new: Mapping[str, Any]) -> Iterator[str]:
    if old is None:
        yield f"{stage}: nothing is recorded; run it without --as-recorded"
        return
    if old.get("verdict") != new.get("verdict"):
        yield f"{stage}: recorded {old.get('verdict')}; now {new.get('verdict')}"
    for name in sorted({*old["bad"], *new["bad"]}):
        was, now = (_outcome(side, name) for side in (old, new))
        if was != now:
            said = new["bad"].get(name, {}).get("message", "")
            yield f"{stage}: {name}: recorded {was}; now {now} {said}".rstrip()
    was_skipped, is_skipped = (_skipped(side) for side in (old, new))
    for name in sorted(was_skipped ^ is_skipped):
        yield f"{stage}: {name}: {'not skipped any more' if name in was_skipped else 'skipped now'}"


def _outcome(part: Mapping[str, Any], name: str) -> str:
    """As recorded; advice, and what Kubernetes is known for, come and go with the timing."""
    outcome: str = part["bad"].get(name, {}).get("outcome", "good")
    return "good" if outcome in ("advised", Outcome.KNOWN.value) else outcome


def _skipped(part: Mapping[str, Any]) -> set[str]:
    return {name for names in part.get("skipped", {}).values() for name in names}
