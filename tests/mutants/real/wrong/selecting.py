"""Which devices a request could take: selectors of requests and classes."""

from __future__ import annotations

from tests.mutants.real.change import before, make_wrong
from tests.mutants.real.places import ALLOCATOR

_EACH_SELECTOR = "for i, selector := range selectors {"

WRONGS = (
    make_wrong(
        "only-first-selector",
        "only the first selector of a request is evaluated",
        before(
            ALLOCATOR,
            _EACH_SELECTOR,
            "if class == nil && len(selectors) > 1 && WRONG { selectors = selectors[:1] }",
        ),
        by="core/request-with-two-selectors",
        judged=True,
    ),
    make_wrong(
        "ignores-selectors",
        "selectors of requests are not evaluated",
        before(ALLOCATOR, _EACH_SELECTOR, "if class == nil && WRONG { selectors = nil }"),
        by=(
            "core/cel-semver-unreachable-stays-pending",
            "core/cel-semver-picks-newer-device",
            "extended/cel-selectors/cel-selector-picks-one-device",
        ),
        judged=True,
    ),
    make_wrong(
        "ignores-class-selectors",
        "selectors of classes are not evaluated",
        before(ALLOCATOR, _EACH_SELECTOR, "if class != nil && WRONG { selectors = nil }"),
        by="core/class-selector-reads-attributes",
        judged=True,
    ),
    make_wrong(
        "only-first-class-selector",
        "only the first selector of a class is evaluated",
        before(
            ALLOCATOR,
            _EACH_SELECTOR,
            "if class != nil && len(selectors) > 1 && WRONG { selectors = selectors[:1] }",
        ),
        by="core/class-with-two-selectors",
        judged=True,
    ),
)
