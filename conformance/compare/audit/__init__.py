"""Judge all allocations of a cluster: once by its snapshot, or again with each change."""
