"""Which devices a request could take: selectors of requests and classes."""

from __future__ import annotations

from tests.mutants.real.change import Wrong, before
from tests.mutants.real.places import ALLOCATOR

_EACH_SELECTOR = "for i, selector := range selectors {"

WRONGS = (
    Wrong(
        "only-first-selector",
        "only the first selector of a request is evaluated",
        (
            before(
                ALLOCATOR,
                _EACH_SELECTOR,
                "if class == nil && len(selectors) > 1 && WRONG { selectors = selectors[:1] }",
            ),
        ),
        ("core/request-with-two-selectors",),
        judged=True,
    ),
    Wrong(
        "ignores-selectors",
        "selectors of requests are not evaluated",
        (before(ALLOCATOR, _EACH_SELECTOR, "if class == nil && WRONG { selectors = nil }"),),
        (
            "core/cel-semver-unreachable-stays-pending",
            "core/cel-semver-picks-newer-device",
            "extended/cel-selectors/cel-selector-picks-one-device",
        ),
        judged=True,
    ),
    Wrong(
        "ignores-class-selectors",
        "selectors of classes are not evaluated",
        (before(ALLOCATOR, _EACH_SELECTOR, "if class != nil && WRONG { selectors = nil }"),),
        ("core/class-selector-reads-attributes",),
        judged=True,
    ),
    Wrong(
        "only-first-class-selector",
        "only the first selector of a class is evaluated",
        (
            before(
                ALLOCATOR,
                _EACH_SELECTOR,
                "if class != nil && len(selectors) > 1 && WRONG { selectors = selectors[:1] }",
            ),
        ),
        ("core/class-with-two-selectors",),
        judged=True,
    ),
)
