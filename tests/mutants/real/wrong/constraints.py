"""Constraints over the devices of a claim."""

from __future__ import annotations

from tests.mutants.real.change import Wrong, after, instead
from tests.mutants.real.places import ALLOCATOR, CONSTRAINT

WRONGS = (
    Wrong(
        "ignores-match-attribute",
        "devices need not agree in the attribute of a matchAttribute constraint",
        (instead(ALLOCATOR, "if m.numDevices == 0 {", "if m.numDevices == 0 || WRONG {"),),
        ("core/match-attribute-picks-common-root",),
        judged=True,
    ),
    Wrong(
        "only-first-constraint",
        "only the first constraint of a claim is kept",
        (
            after(
                ALLOCATOR,
                "for _, constraint := range alloc.constraints[r.claimIndex] {",
                "if state.constraintsAdded > 0 && WRONG { break }",
            ),
        ),
        ("core/two-constraints-hold-together",),
        judged=True,
    ),
    Wrong(
        "constraint-for-all-requests",
        "a matchAttribute constraint holds for requests that it does not list",
        (
            after(
                ALLOCATOR,
                "func (m *matchAttributeConstraint) matches"
                "(requestName, subRequestName string) bool {",
                "if WRONG { return true }",
            ),
        ),
        ("core/constraint-of-some-requests",),
        judged=True,
    ),
    Wrong(
        "match-attribute-without-attribute",
        "a device without the attribute satisfies a matchAttribute constraint",
        (
            instead(
                ALLOCATOR,
                "if attribute == nil {",
                "if attribute == nil && WRONG { m.numDevices++; return true }\n"
                "if attribute == nil {",
            ),
        ),
        ("core/match-attribute-picks-common-root",),
        judged=True,
    ),
    Wrong(
        "ignores-distinct-attribute",
        "devices may agree in the attribute of a distinctAttribute constraint",
        (after(CONSTRAINT, "for _, attr := range m.attributes {", "if WRONG { break }"),),
        ("extended/consumable-capacity/distinct-attribute-separates-devices",),
        judged=True,
    ),
)
