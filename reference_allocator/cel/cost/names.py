"""Functions whose cost follows one rule, in the estimate and in the evaluation alike.

Source: ``k8s.io/apiserver/pkg/cel/library/cost.go``, cel-go ``checker/cost.go``.
"""

from __future__ import annotations

from typing import Final

CONSTANT: Final = frozenset(
    """
        serviceAccount path group resource subresource namespace name allowed reason error
        errored masked prefixLength family isUnspecified isLoopback isLinkLocalMulticast
        isLinkLocalUnicast isGlobalUnicast format.named sign asInteger isInteger
        asApproximateFloat isGreaterThan isLessThan compareTo add sub major minor patch
        getScheme getHostname getHost getPort getEscapedPath getQuery
    """.split()
)
"""Functions that cost 1."""
TRAVERSALS: Final = frozenset(
    ["isSorted", "sum", "max", "min", "indexOf", "lastIndexOf", "includes"]
)
"""Functions that look at all of a list or string."""
ORDERED: Final = frozenset(
    f"{order}_{kind}"
    for order in ("less", "greater", "less_equals", "greater_equals")
    for kind in ("string", "bytes")
)
"""Overloads that compare two texts."""
