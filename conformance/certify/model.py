"""The conformance report as a document: what is claimed, by whom, on which evidence."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Literal

import yaml
from pydantic import ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from conformance.errors import ExitCode, UsageError
from conformance.scenario.base import API_VERSION, Strict

Digest = Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")]
Number = Annotated[int, Field(ge=0)]
Text = Annotated[str, Field(min_length=1, max_length=400)]


class _Dumper(yaml.SafeDumper):
    """A safe dumper that also writes the rarer line separators so that they are read back."""


def _represent_text(dumper: _Dumper, text: str) -> yaml.Node:
    # Plain and single-quoted scalars would break lines at these; in double quotes they are escaped.
    style = '"' if any(char in text for char in "\x85\u2028\u2029\ufeff") else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _represent_text)


class Result(StrEnum):
    """What a profile came to."""

    SUCCESS = "success"
    """Every scenario of it passed (skips allowed only where the profile says so)."""

    PARTIAL = "partial"
    """Nothing failed, and something that counts was skipped or not selected."""

    UNCERTIFIED = "uncertified"
    """Nothing failed, and the run is of a kind that certifies nothing: ``uncertified`` says why."""

    FAILURE = "failure"
    """A scenario failed, or an allocation broke a rule."""

    INCONCLUSIVE = "inconclusive"
    """Nothing failed, and something was lost, broke, could not be judged, or nothing ran."""

    @property
    def exit_code(self) -> ExitCode:
        """The exit code of this result."""
        return {
            Result.SUCCESS: ExitCode.CONFORMANT,
            Result.PARTIAL: ExitCode.PARTIAL,
            Result.UNCERTIFIED: ExitCode.PARTIAL,
            Result.FAILURE: ExitCode.NOT_CONFORMANT,
            Result.INCONCLUSIVE: ExitCode.INCONCLUSIVE,
        }[self]

    @classmethod
    def of(cls, code: ExitCode) -> Result:
        """The result with an exit code; ``uncertified`` shares that of ``partial``."""
        return next(item for item in cls if item.exit_code is code)


class _Model(Strict):
    model_config = ConfigDict(alias_generator=to_camel)


class Implementation(_Model):
    """What is certified: stated by who submits the report; nothing here can be recomputed."""

    organization: Text
    project: Text
    url: Annotated[str, Field(pattern=r"^https?://[^\s]+$", max_length=400)]
    version: Text
    contact: tuple[Text, ...] = ()


def implementation(**options: object) -> Implementation:
    """The implementation as described by command-line options: field -> what was given.

    Raises:
        UsageError: one of them has not its form; names the option.
    """
    try:
        return Implementation.model_validate(options)
    except ValidationError as error:
        item = error.errors()[0]
        name = str(item["loc"][0])
        hint = "an address like https://example.com" if name == "url" else "1 to 400 characters"
        raise UsageError(f"--{name} {item['input']!r:.80}: must be {hint}") from None


class UsedProfile(_Model):
    """The driver profile that was used; the result file has it whole."""

    name: str
    digest: Digest


class Suite(_Model):
    """What was run: the suite's version and the digest of the planned scenarios."""

    version: str
    scenario_set_digest: Digest


class Evidence(_Model):
    """The result file that the report was made from."""

    run: str
    digest: Digest
    interrupted: bool


class Statistics(_Model):
    """Scenarios of a profile by outcome."""

    passed: Number
    failed: Number
    known: Number = Field(description="failed by a known issue of Kubernetes, which does not count")
    error: Number
    skipped: Number
    lost: Number


class Skipped(_Model):
    """A scenario that was skipped, and why."""

    scenario: str
    reason: str


class Known(_Model):
    """A scenario that failed by a known issue of this Kubernetes, and by nothing else."""

    scenario: str
    issue: str
    link: str


class ComparisonSummary(_Model):
    """What the comparison with the reference came to."""

    verdicts: dict[str, Number] = Field(description="verdict -> decisions, every verdict present")
    differences: Number = Field(description="places where observations differ")
    not_conformant: tuple[str, ...] = Field(description="scenarios with a decision against a rule")
    not_judged: tuple[str, ...] = Field(description="scenarios with a decision that was not judged")


class ProfileResult(_Model):
    """What one profile came to; every list is sorted."""

    name: str
    result: Result
    statistics: Statistics
    failed: tuple[str, ...] = ()
    known: tuple[Known, ...] = ()
    error: tuple[str, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    lost: tuple[str, ...] = ()
    not_selected: tuple[str, ...] = Field(
        default=(), description="scenarios of the profile that were not selected for the run"
    )
    comparison: ComparisonSummary | None = None


class ConformanceReport(_Model):
    """A document of kind ConformanceReport."""

    api_version: Literal["dra-conformance/v1"] = API_VERSION
    kind: Literal["ConformanceReport"] = "ConformanceReport"
    date: str = Field(description="when the run ended, RFC 3339")
    implementation: Implementation
    kubernetes_version: str
    target: str
    driver: str | None
    driver_profile: UsedProfile | None
    feature_gates: dict[str, bool] = Field(description="gates known to be on or off")
    components: dict[str, str] = Field(description="component -> version")
    simulated: tuple[str, ...] = Field(description="what was simulated, in words")
    suite: Suite
    evidence: Evidence
    uncertified: tuple[str, ...] = Field(
        description="why no profile can be a success, whatever passed; usually empty"
    )
    profiles: tuple[ProfileResult, ...] = Field(min_length=1)

    @property
    def exit_code(self) -> ExitCode:
        """That of the worst profile: failure, then inconclusive, then partial."""
        order = [1, 3, 4, 0]
        codes = [item.result.exit_code for item in self.profiles]
        return min(codes, key=order.index)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON, keys in the order of the model."""
        return self.model_dump(mode="json", by_alias=True)

    def to_yaml(self) -> str:
        """The report as a file; the same report gives the same text."""
        return yaml.dump(
            self.to_json(), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100
        )
