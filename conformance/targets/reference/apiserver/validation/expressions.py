"""Checks of CEL expressions: what does not compile, or could cost too much, is refused."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from conformance.targets.reference.apiserver.validation.errors import FieldError

if TYPE_CHECKING:
    from reference_allocator.cel import CelFeatures


@dataclass(frozen=True)
class Expressions:
    """What a new expression may use on one API server.

    Attributes:
        kubernetes: its minor, for example ``1.37``.
    """

    kubernetes: str
    gates: Mapping[str, bool]

    def check(self, expression: str, path: str, *, derived: bool = False) -> Iterator[FieldError]:
        """The expression of a selector, or of a derived attribute."""
        # CEL's compiler is only needed where there are expressions.
        from reference_allocator.cel import validate_new_expression

        for problem in validate_new_expression(expression, self._features, derived=derived):
            yield FieldError(path, problem.reason, problem.message)

    def check_together(self, devices: Mapping[str, Any], path: str) -> Iterator[FieldError]:
        """All derived attributes of a claim, whose ``spec.devices`` is at ``path``."""
        from reference_allocator.rules.derived_cost import derived_cost_problem

        problem = derived_cost_problem(devices, self._features)
        if problem is not None:
            yield FieldError(path, problem.reason, problem.message)

    @cached_property
    def _features(self) -> CelFeatures:
        from reference_allocator.cel import CelFeatures

        return CelFeatures(
            consumable_capacity=self.gates.get("DRAConsumableCapacity", False),
            list_type_attributes=self.gates.get("DRAListTypeAttributes", False),
            stored=False,
            kubernetes=self.kubernetes,
        )
