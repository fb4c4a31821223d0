"""The parts of a conformance report: who submits it, what was run, counts and lists."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from enum import StrEnum
from typing import Annotated, Any

from pydantic import ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from conformance.scenario.base import Strict
from kube.base.errors import ExitCode, UsageError

Digest = Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")]
Number = Annotated[int, Field(ge=0)]
Text = Annotated[str, Field(min_length=1, max_length=400)]
Address = Annotated[str, Field(pattern=r"^https?://[^\s]+$", max_length=400)]


def find_repeated(names: Iterable[str]) -> list[str]:
    """Return the names that are there more than once, sorted.

    Of two things of one name one reader takes the first and another the last, or counts both.
    """
    return sorted(name for name, number in Counter(names).items() if number > 1)


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


class Hardware(StrEnum):
    """What a run shows of hardware behind the driver's devices."""

    SHOWN = "shown"
    """Scenarios of the tier ``device`` passed, and none failed: in containers the vendor's tool or
    the kernel showed the allocated devices, and no others."""

    NOT_SHOWN = "not shown"
    """No such scenario passed, or one did not."""

    SIMULATED = "simulated"
    """There is none, by the ResourceSlices or the driver's profile."""


class Model(Strict):
    """A part of a report, in camelCase."""

    model_config = ConfigDict(alias_generator=to_camel)


class Implementation(Model):
    """What is certified: stated by who submits the report; nothing here can be recomputed."""

    organization: Text
    project: Text
    url: Address
    version: Text
    contact: tuple[Text, ...] = ()
    image: str | None = Field(
        default=None,
        pattern=r"^[a-z0-9][a-zA-Z0-9._/:-]*@sha256:[0-9a-f]{64}$",
        max_length=400,
        description="the driver's image with its digest: NAME@sha256:HEX",
    )
    ci_run: Address | None = Field(default=None, description="the CI job that ran the suite")


_FORMS = {
    "url": "an address like https://example.com",
    "ci_run": "an address like https://example.com",
    "image": "NAME@sha256: and 64 hexadecimal digits",
}


def build_implementation(**options: object) -> Implementation:
    """Return the implementation that command-line options describe: field -> what was given.

    Raises UsageError: one of them has not its form; names the option.
    """
    try:
        return Implementation.model_validate(options)
    except ValidationError as error:
        item = error.errors()[0]
        name = str(item["loc"][0])
        hint = _FORMS.get(name, "1 to 400 characters")
        option = name.replace("_", "-")
        raise UsageError(f"--{option} {item['input']!r:.80}: must be {hint}") from None


class UsedProfile(Model):
    """The driver profile that was used."""

    name: str
    digest: Digest
    document: dict[str, Any]


class Suite(Model):
    """What was run: the suite's version and the digest of the planned scenarios."""

    version: str
    scenario_set_digest: Digest


class Evidence(Model):
    """The result file that the report was made from."""

    run: str
    digest: Digest
    interrupted: bool
    joined: tuple[str, ...] = Field(
        default=(),
        exclude_if=lambda runs: not runs,
        description="ids of the runs that were joined in it: of shards, or resumed; else left out",
    )


class Statistics(Model):
    """Scenarios of a profile by outcome."""

    passed: Number
    failed: Number
    known: Number = Field(description="failed by a known issue of Kubernetes, which does not count")
    flaky: Number = Field(
        default=0,
        exclude_if=lambda number: number == 0,
        description="passed only when repeated, which is not a success; 0 is left out",
    )
    error: Number
    skipped: Number
    lost: Number


class Skipped(Model):
    """A scenario that was skipped, and why."""

    scenario: str
    reason: str


class Known(Model):
    """A scenario that failed by a known issue of this Kubernetes, and by nothing else."""

    scenario: str
    issue: str
    link: str


class ComparisonSummary(Model):
    """What the comparison with the reference came to."""

    verdicts: dict[str, Number] = Field(description="verdict -> decisions, every verdict present")
    differences: Number = Field(description="places where observations differ")
    not_conformant: tuple[str, ...] = Field(description="scenarios with a decision against a rule")
    not_judged: tuple[str, ...] = Field(description="scenarios with a decision that was not judged")
