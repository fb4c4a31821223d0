"""The evidence bundle: all that a report was made from, in one file that needs no cluster.

It holds the report, the result file (with the driver's profile, snapshots, observations and logs,
redacted as they were written), the profiles that the report is about, and each of the suite's
scenarios in full. So a bundle can be checked by another suite than wrote it, which says where its
own scenarios differ.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from conformance.certify.archive import ArchiveError, read_archive, write_archive
from conformance.certify.model import ConformanceReport
from conformance.certify.profiles import ProfileSet, load_profiles
from conformance.digest import document_digest
from conformance.engine.events import ANY_VERSION, PlannedScenario
from conformance.errors import UsageError
from conformance.resultfile.read import RecordedRun
from conformance.scenario.base import VersionRange
from conformance.scenario.loader import LoadedScenario
from conformance.strictjson import loads
from conformance.text import cut

SUFFIX: Final = ".tar.xz"
REPORT: Final = "report.yaml"
RESULTS: Final = "results.ndjson"
PROFILES: Final = "profiles.yaml"
SCENARIOS: Final = "scenarios/"


@dataclass(frozen=True, slots=True)
class Bundle:
    """A bundle that was unpacked.

    Attributes:
        report: file of the report.
        results: the result file.
        profiles: the profiles that it names.
        catalogue: the scenarios in it.
    """

    report: Path
    results: Path
    profiles: ProfileSet
    catalogue: tuple[PlannedScenario, ...]


def write_bundle(
    path: Path,
    report: ConformanceReport,
    result: RecordedRun,
    profiles: ProfileSet,
    scenarios: Sequence[LoadedScenario],
) -> None:
    """Write a bundle; the same contents give the same bytes.

    Args:
        path: the file.
        report: what was made of the result.
        result: the run.
        profiles: those that the suite ships; the bundle has those that the report names.
        scenarios: all that the suite ships.

    Raises:
        OSError: it cannot be written.
    """
    named = profiles.named([item.name for item in report.profiles])
    used = profiles.model_copy(update={"profiles": named})
    files = {
        REPORT: report.to_yaml(),
        PROFILES: yaml.safe_dump(used.model_dump(mode="json", by_alias=True), sort_keys=False),
        **{
            f"{SCENARIOS}{item.id}.json": json.dumps(item.document.data, indent=1)
            for item in scenarios
        },
    }
    content = {name: text.encode() for name, text in files.items()}
    write_archive(path, content | {RESULTS: Path(result.path).read_bytes()})


@contextmanager
def opened_bundle(path: Path) -> Iterator[Bundle]:
    """A bundle, unpacked into a folder that is gone afterwards.

    Raises:
        UsageError: it cannot be read, is not as the suite writes one, or a part of it is malformed.
    """
    files = read_archive(path)
    for name in (REPORT, RESULTS, PROFILES):
        if name not in files:
            raise ArchiveError(path, f"has no {name}")
    with tempfile.TemporaryDirectory(prefix="dra-conformance-") as folder:
        for name in (REPORT, RESULTS, PROFILES):
            (Path(folder) / name).write_bytes(files[name])
        try:
            yield Bundle(
                report=Path(folder) / REPORT,
                results=Path(folder) / RESULTS,
                profiles=load_profiles(Path(folder) / PROFILES),
                catalogue=tuple(_catalogue(path, files)),
            )
        except UsageError as error:
            raise UsageError(str(error).replace(folder, str(path))) from None


class _Part(BaseModel):
    """Of another version's document: what is not known is passed over."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class _Needs(_Part):
    kubernetes: VersionRange = ANY_VERSION


class _Spec(_Part):
    summary: str
    level: str
    feature: str
    tier: str
    provisional: bool = False
    references: tuple[str, ...] = ()
    requires: _Needs = Field(default_factory=_Needs)


class _Named(_Part):
    name: str


class _Scenario(_Part):
    metadata: _Named
    spec: _Spec


def _catalogue(path: Path, files: dict[str, bytes]) -> Iterator[PlannedScenario]:
    for name, content in sorted(files.items()):
        if not name.startswith(SCENARIOS):
            continue
        try:
            document = loads(content)
            found = _Scenario.model_validate(document)
        except (ValueError, RecursionError) as error:
            said = error.errors()[0]["msg"] if isinstance(error, ValidationError) else str(error)
            raise ArchiveError(path, f"{name} is no scenario ({cut(said, 100)})") from None
        spec = found.spec
        identity = name.removeprefix(SCENARIOS).removesuffix(".json")
        yield PlannedScenario(
            id=identity,
            name=found.metadata.name,
            summary=spec.summary,
            level=spec.level,
            feature=spec.feature,
            tier=spec.tier,
            references=spec.references,
            file=name,
            line=1,
            digest=document_digest(document),
            kubernetes=spec.requires.kubernetes,
            provisional=spec.provisional,
        )
