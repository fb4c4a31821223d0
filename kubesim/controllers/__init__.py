"""The controllers that DRA depends on, each one a function from the store's state to changes."""
