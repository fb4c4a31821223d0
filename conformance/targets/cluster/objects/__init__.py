"""The objects of a cluster: read, made, changed, kept alive, found again for removal."""
