"""What binds in Kubernetes' sources and KEPs, who owes it, and the defects that break it.

A row is a statement in words of our own and where it is said: a file and line of Kubernetes
`VERSION`, or a KEP. It has defects of the reference, which scenarios must notice, or a reason why
there is none. The files are by what was read; scenarios had no part in writing them.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Final, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, model_validator

VERSION: Final = "v1.37.1"

FOLDER: Final = Path(__file__).parent
BEHAVIOURS: Final = FOLDER / "behaviours.yaml"

Source = Annotated[str, Field(pattern=r"^(kep:\d+(#\S+)?|[\w./-]+\.(go|proto|yaml|json|md):\d+)$")]
"""``pkg/kubelet/cm/dra/manager.go:210``, or ``kep:4381#a-heading``."""


class Behaviour(BaseModel):
    """One thing that DRA promises; its statements say how."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    feature: str
    """A name from scenarios/features.yaml, which says the enhancement."""
    summary: str
    upstream: Mapping[str, tuple[int, ...]] = {}
    """Short name of a file -> lines at which Kubernetes' own tests of it begin."""
    missing: str = ""
    """What no scenario shows of it, and why; empty if all is shown."""


class Statement(BaseModel):
    """One thing that must be so."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    says: str
    source: Source | tuple[Source, ...]
    owed: Literal["api-server", "controllers", "scheduler", "kubelet", "driver"]
    """Which component is guilty where it is not so."""
    behaviour: str
    """The behaviour of behaviours.yaml to which it belongs."""
    defects: Mapping[str, str] = {}
    """Name of a defect in `tests.mutants`, and what goes wrong with it."""
    untested: str = ""
    """Why it has no defect, or none that a scenario could notice."""

    @model_validator(mode="after")
    def _has_a_defect_or_says_why_not(self) -> Statement:
        if not (self.defects or self.untested):
            raise ValueError(f"{self.says!r} has neither defects nor a reason in `untested`")
        return self


@cache
def statements() -> tuple[Statement, ...]:
    """All rows, file by file."""
    files = sorted({*FOLDER.glob("*.yaml")} - {BEHAVIOURS})
    return tuple(
        Statement.model_validate(row)
        for file in files
        for row in yaml.safe_load(file.read_text(encoding="utf-8"))
    )


@cache
def behaviours() -> Mapping[str, Behaviour]:
    """What DRA promises, by the ids that statements name."""
    rows = yaml.safe_load(BEHAVIOURS.read_text(encoding="utf-8"))["behaviours"]
    return {name: Behaviour.model_validate(row) for name, row in rows.items()}


@cache
def wrongs() -> Mapping[str, str]:
    """Name of a defect -> what goes wrong with it."""
    return {name: wrong for row in statements() for name, wrong in row.defects.items()}
