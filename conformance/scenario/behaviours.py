"""The behaviour list: what DRA promises, so that it can be said what the scenarios show of it."""

from __future__ import annotations

from functools import cache
from typing import Literal

from pydantic import Field, model_validator

from conformance.data import scenarios_dir
from conformance.scenario.base import Strict
from conformance.scenario.near import hint
from conformance.scenario.validate import load_document


class Behaviour(Strict):
    """One thing that DRA promises."""

    feature: str = Field(description="a name from features.yaml, which says the enhancement")
    summary: str = Field(description="what is promised, in a sentence")
    upstream: dict[str, tuple[int, ...]] = Field(
        default_factory=dict,
        description="short name of a file -> lines at which Kubernetes' own tests of it begin",
    )
    missing: str | None = Field(
        default=None, description="what no scenario shows of it, and why; none if all is shown"
    )


class BehaviourList(Strict):
    """All of them, by the ids that scenarios name in ``covers``."""

    api_version: Literal["dra-conformance/v1"] = Field(alias="apiVersion")
    kind: Literal["BehaviourList"]
    version: str = Field(description="of Kubernetes' sources, for `files` and `upstream`")
    files: dict[str, str] = Field(description="short name -> path of a file with tests")
    behaviours: dict[str, Behaviour]

    @model_validator(mode="after")
    def _files_known(self) -> BehaviourList:
        for name, behaviour in self.behaviours.items():
            for file in behaviour.upstream.keys() - self.files.keys():
                raise ValueError(f"{name}: unknown file {file!r}; {hint(file, self.files)}")
        return self


@cache
def load_behaviours() -> BehaviourList:
    """The list that the suite ships, ``scenarios/behaviours.yaml``."""
    return load_document(BehaviourList, scenarios_dir() / "behaviours.yaml", "behaviour list")
