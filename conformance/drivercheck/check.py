"""What a check is: a function of the bench with a name, a level and the source of its rule."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # A result is read without the bench and all that it needs.
    from conformance.drivercheck.bench import Bench

    Run = Callable[[Bench], str | None]
    """Makes a check; it may return what to say of it though the rule holds."""


class Level(StrEnum):
    """Whether a driver that breaks the rule breaks a cluster."""

    REQUIRED = "required"
    RECOMMENDED = "recommended"


@dataclass(frozen=True)
class Check:
    """One rule of the contract.

    Attributes:
        name: section and rule; public, and never used for another rule.
        source: where the rule is written, or the code that relies on it.
        starts_driver: it stops and starts the driver, so it needs the driver's command.
        waits: it may take long, nearly all of it until the driver has done something.
        looks_back: it judges what was seen before, and needs no driver that runs.
        run: raises if the rule does not hold.
    """

    name: str
    level: Level
    summary: str
    source: str
    starts_driver: bool
    run: Run = field(repr=False, compare=False)
    waits: bool = False
    looks_back: bool = False

    @property
    def section(self) -> str:
        return self.name.partition("/")[0]

    def __str__(self) -> str:
        return self.name


class Section:
    """The checks of one part of the contract, in order."""

    def __init__(self, name: str, *, starts_driver: bool = False, looks_back: bool = False) -> None:
        self.name = name
        self.checks: list[Check] = []
        self._starts_driver = starts_driver
        self._looks_back = looks_back

    def required(
        self, source: str, *, starts_driver: bool | None = None, waits: bool = False
    ) -> Callable[[Run], Run]:
        """Add a check of what a kubelet or a pod relies on; its summary is the docstring."""
        return self._add(Level.REQUIRED, source, starts_driver, waits)

    def recommended(
        self, source: str, *, starts_driver: bool | None = None, waits: bool = False
    ) -> Callable[[Run], Run]:
        """Add a check of what the contract advises."""
        return self._add(Level.RECOMMENDED, source, starts_driver, waits)

    def _add(
        self, level: Level, source: str, starts: bool | None, waits: bool
    ) -> Callable[[Run], Run]:
        def add(run: Run) -> Run:
            assert run.__doc__ is not None
            name = f"{self.name}/{run.__name__.replace('_', '-')}"
            summary = " ".join(run.__doc__.split())
            needs = self._starts_driver if starts is None else starts
            self.checks.append(
                Check(name, level, summary, source, needs, run, waits, self._looks_back)
            )
            return run

        return add
