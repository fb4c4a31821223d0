"""Constraints over the devices of a claim."""

from __future__ import annotations

from tests.mutants.real.change import after, instead, make_wrong
from tests.mutants.real.places import ALLOCATOR, CONSTRAINT

WRONGS = (
    make_wrong(
        "ignores-match-attribute",
        "devices need not agree in the attribute of a matchAttribute constraint",
        instead(ALLOCATOR, "if m.numDevices == 0 {", "if m.numDevices == 0 || WRONG {"),
        by="core/match-attribute-picks-common-root",
        judged=True,
    ),
    make_wrong(
        "only-first-constraint",
        "only the first constraint of a claim is kept",
        after(
            ALLOCATOR,
            "for _, constraint := range alloc.constraints[r.claimIndex] {",
            "if state.constraintsAdded > 0 && WRONG { break }",
        ),
        by="core/two-constraints-hold-together",
        judged=True,
    ),
    make_wrong(
        "constraint-for-all-requests",
        "a matchAttribute constraint holds for requests that it does not list",
        after(
            ALLOCATOR,
            "func (m *matchAttributeConstraint) matches(requestName, subRequestName string) bool {",
            "if WRONG { return true }",
        ),
        by="core/constraint-of-some-requests",
        judged=True,
    ),
    make_wrong(
        "match-attribute-without-attribute",
        "a device without the attribute satisfies a matchAttribute constraint",
        instead(
            ALLOCATOR,
            "if attribute == nil {",
            "if attribute == nil && WRONG { m.numDevices++; return true }\nif attribute == nil {",
        ),
        by="core/match-attribute-picks-common-root",
        judged=True,
    ),
    make_wrong(
        "ignores-distinct-attribute",
        "devices may agree in the attribute of a distinctAttribute constraint",
        after(CONSTRAINT, "for _, attr := range m.attributes {", "if WRONG { break }"),
        by="extended/consumable-capacity/distinct-attribute-separates-devices",
        judged=True,
    ),
)
