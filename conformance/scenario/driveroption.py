"""What a driver does only where whoever installed it has asked for it: its own feature gates."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, model_validator

from conformance.scenario.base import Strict

Trait = Literal[
    "cdiPerClaim",
    "deviceMetadata",
    "nodeLocal",
    "refusesDevicesInUse",
    "rollingUpdate",
    "taintsUnhealthyDevices",
]
"""What a driver may do or not, and scenarios may ask for."""


class DriverOption(Strict):
    """A feature gate or a setting of the driver, and what the profile has with it.

    It is off unless ``--driver-option`` names it: of a driver that runs, nobody can see its gates.
    """

    description: str = Field(
        min_length=10, description="what it is in the driver, and how it is switched on there"
    )
    config: dict[str, dict[str, Any]] = Field(
        default={}, description="configurations that the driver knows with it, as in `config`"
    )
    traits: tuple[Trait, ...] = Field(
        default=(), description="what the driver does with it, as in `traits`"
    )

    @model_validator(mode="after")
    def _brings_something(self) -> DriverOption:
        if not self.config and not self.traits:
            raise ValueError("brings neither config nor traits, so nothing depends on it")
        return self
