"""The errors with which an allocation can end, beside the answer that there is none here."""

from __future__ import annotations


class AllocationError(Exception):
    """A fatal error: the pod cannot be scheduled anywhere until some object is corrected.

    The text is what the upstream allocator returns.
    """


class NodeAllocationError(Exception):
    """An error of one node (upstream's ErrFailedAllocationOnNode): other nodes may still do."""


class SearchTimeoutError(Exception):
    """The deadline passed before the search ended."""

    def __str__(self) -> str:
        return "filter operation aborted: context deadline exceeded"
