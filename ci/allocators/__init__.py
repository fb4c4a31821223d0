"""Allocators of others, pinned as modules, and what came of asking them."""
