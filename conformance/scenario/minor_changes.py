"""The changes of Kubernetes minors that concern DRA, from the table beside this file."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter
from pydantic.alias_generators import to_camel

Reader = Literal["operators", "authors", "drivers", "schedulers"]
"""Those whom a change concerns: operators of clusters, authors of claims and templates, of drivers,
of schedulers."""


class MinorChange(BaseModel):
    """One change of a Kubernetes minor."""

    model_config = ConfigDict(extra="forbid", frozen=True, alias_generator=to_camel)

    name: str
    minor: str = Field("", description="the first minor that has it; empty: each minor can")
    readers: tuple[Reader, ...]
    change: str = Field(description="what is otherwise")
    advice: str = Field(description="what to do")
    source: str = Field(description="what in Kubernetes makes it so")
    shown_by: str = Field(
        default="",
        description="the scenario, test or page that shows it; empty: it was read, and nothing that"
        " has it can be run yet",
    )
    found: bool = Field(
        description="whether `conformance.scenario.upgrades` finds what it is about"
    )


@cache
def load_changes() -> dict[str, MinorChange]:
    """Return name -> change, latest minors first."""
    text = files("conformance.scenario").joinpath("minor_changes.yaml").read_text(encoding="utf-8")
    rows = TypeAdapter(list[MinorChange]).validate_python(yaml.safe_load(text))
    return {row.name: row for row in rows}
